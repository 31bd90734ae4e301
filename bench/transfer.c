/* Moving one layout in each of the ways, and looking at what came. */
#include "config.h"

#include "transfer.h"

#include "../tools/report.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes of host memory of each kind where the device has memory of its
 * own, so that a tensor may be larger than the host's: what is larger is read
 * in pieces, or not by a way that needs it all. */
static const size_t most_host = (size_t)1 << 30;

/* What a driver likes best. */
enum { ALIGNMENT = 4096 };

/* --- Ours ----------------------------------------------------------------- */

int bench_ignore(const void *data, size_t length, void *user)
{
  (void)data;
  (void)length;
  (void)user;
  return 0;
}

static bool run_stream(void *user)
{
  struct bench_transfer *transfer = user;

  return bench_ok(clb_bytes_stream(transfer->handle, 0, transfer->length,
                                   bench_ignore, NULL),
                  "clb_bytes_stream");
}

static bool run_copy(void *user)
{
  struct bench_transfer *transfer = user;

  return bench_ok(clb_bytes_copy_into(transfer->handle, 0, transfer->ours,
                                      transfer->length),
                  "clb_bytes_copy_into");
}

/* --- Beside us ------------------------------------------------------------ */

static bool finish(const struct bench_transfer *transfer, cl_int error)
{
  return bench_cl_ok(error, "clEnqueueReadBuffer") &&
         bench_cl_ok(clFinish(transfer->bench.session.queue), "clFinish");
}

/* In pieces where the pinned memory is smaller; they overlap. */
static bool run_link(void *user)
{
  struct bench_transfer *transfer = user;
  size_t most = transfer->pinned_bytes;
  cl_int error = CL_SUCCESS;

  for (size_t at = 0; error == CL_SUCCESS && at < transfer->length;
       at += most) {
    size_t left = transfer->length - at;

    error = clEnqueueReadBuffer(transfer->bench.session.queue, transfer->buffer,
                                CL_FALSE, at, left < most ? left : most,
                                transfer->pinned.data, 0, NULL, NULL);
  }
  return finish(transfer, error);
}

static bool run_pageable(void *user)
{
  struct bench_transfer *transfer = user;

  return bench_cl_ok(clEnqueueReadBuffer(transfer->bench.session.queue,
                                         transfer->buffer, CL_TRUE, 0,
                                         transfer->length, transfer->raw, 0,
                                         NULL, NULL),
                     "clEnqueueReadBuffer");
}

static bool run_rect(void *user)
{
  struct bench_transfer *transfer = user;
  const struct bench_rect *rect = &transfer->rect;
  static const size_t to[3] = {0, 0, 0};
  size_t row = rect->region[0];
  void *data =
      transfer->rect_pageable ? transfer->raw : transfer->pinned.data;

  return bench_cl_ok(
      clEnqueueReadBufferRect(transfer->bench.session.queue, transfer->buffer,
                              CL_TRUE, rect->origin, to, rect->region,
                              rect->row_pitch, rect->slice_pitch, row,
                              row * rect->region[1], data, 0, NULL, NULL),
      "clEnqueueReadBufferRect");
}

/* Where the run of that number begins. */
static size_t run_at(const struct bench_transfer *transfer, size_t number)
{
  const struct bench_runs *runs = &transfer->runs;
  ptrdiff_t place = (ptrdiff_t)transfer->layout.offset;

  for (size_t i = runs->ndim; i > 0; i--) {
    place += (ptrdiff_t)(number % runs->shape[i - 1]) * runs->strides[i - 1];
    number /= runs->shape[i - 1];
  }
  return (size_t)place;
}

static bool run_rows(void *user)
{
  struct bench_transfer *transfer = user;
  size_t length = transfer->runs.length;
  unsigned char *to = transfer->pinned.data;
  cl_int error = CL_SUCCESS;

  for (size_t i = 0; error == CL_SUCCESS && i < transfer->runs.count; i++)
    error = clEnqueueReadBuffer(transfer->bench.session.queue, transfer->buffer,
                                CL_FALSE, run_at(transfer, i), length,
                                to + i * length, 0, NULL, NULL);
  return finish(transfer, error);
}

static bool run_memcpy(void *user)
{
  struct bench_transfer *transfer = user;

  memcpy(transfer->raw, transfer->pinned.data, transfer->length);
  return true;
}

/* --- Jobs ----------------------------------------------------------------- */

static bool is_there(const struct bench_transfer *transfer, enum bench_way way)
{
  bool pinned = transfer->length <= transfer->pinned_bytes;
  bool pageable = transfer->length <= transfer->pageable_bytes;

  switch (way) {
  case BENCH_STREAM:
  case BENCH_LINK:
    return true;
  case BENCH_COPY:
  case BENCH_PAGEABLE:
    return pageable;
  case BENCH_RECT:
    return pinned && transfer->has_rect;
  case BENCH_ROWS:
    return pinned && transfer->runs.count > 1 &&
           transfer->runs.count <= BENCH_MOST_ROWS;
  case BENCH_MEMCPY:
    return pinned && pageable && transfer->shared;
  default:
    return transfer->numpy.child.id != 0;
  }
}

bool bench_transfer_job(struct bench_transfer *transfer, enum bench_way way,
                        struct bench_job *job)
{
  static bool (*const runs[BENCH_WAYS])(void *) = {
      [BENCH_STREAM] = run_stream, [BENCH_COPY] = run_copy,
      [BENCH_LINK] = run_link,     [BENCH_RECT] = run_rect,
      [BENCH_ROWS] = run_rows,     [BENCH_PAGEABLE] = run_pageable,
      [BENCH_MEMCPY] = run_memcpy,
  };

  job->run = runs[way];
  job->run_timed = NULL;
  job->user = transfer;
  job->optional = way != BENCH_STREAM && way != BENCH_COPY;
  job->rounds = 0;
  if (!is_there(transfer, way))
    return false;
  if (way != BENCH_NUMPY)
    return true;
  job->run_timed = bench_numpy_run;
  job->user = &transfer->numpy;
  return bench_numpy_layout(&transfer->numpy, &transfer->layout);
}

bool bench_transfer_check(struct bench_transfer *transfer, bool copied)
{
  return (!copied ||
          bench_check_memory("copied", &transfer->layout, transfer->seed,
                             transfer->ours, transfer->length)) &&
         bench_check_stream("streamed", &transfer->layout, transfer->seed,
                            transfer->handle);
}

/* --- Making --------------------------------------------------------------- */

static unsigned char *warm_memory(size_t length)
{
  void *data = NULL;

  if (posix_memalign(&data, ALIGNMENT, length) != 0) {
    tool_error("out of memory");
    return NULL;
  }
  memset(data, 0xee, length);
  return data;
}

bool bench_transfer_make(struct bench_transfer *transfer, size_t bytes,
                         size_t reach, bool numpy)
{
  cl_bool unified = CL_FALSE;
  size_t host;

  clGetDeviceInfo(transfer->bench.device->id, CL_DEVICE_HOST_UNIFIED_MEMORY,
                  sizeof(unified), &unified, NULL);
  transfer->shared =
      unified || (transfer->bench.device->type & CL_DEVICE_TYPE_CPU) != 0;
  host = !transfer->shared && bytes > most_host ? most_host : bytes;
  transfer->reach = reach > bytes ? reach : bytes;
  transfer->pinned_bytes = transfer->pageable_bytes = host;
  transfer->ours = warm_memory(host);
  transfer->raw = warm_memory(host);
  if (transfer->ours == NULL || transfer->raw == NULL ||
      !bench_filled_buffer(&transfer->bench, transfer->reach, transfer->seed,
                           &transfer->buffer) ||
      !bench_pinned_make(&transfer->bench, host, &transfer->pinned))
    return false;
  if (numpy && transfer->shared)
    bench_numpy_start(&transfer->numpy);
  return true;
}

void bench_transfer_free(struct bench_transfer *transfer)
{
  bench_transfer_drop(transfer);
  bench_numpy_stop(&transfer->numpy);
  bench_pinned_free(&transfer->bench, &transfer->pinned);
  if (transfer->buffer != NULL)
    clReleaseMemObject(transfer->buffer);
  transfer->buffer = NULL;
  free(transfer->ours);
  free(transfer->raw);
  transfer->ours = transfer->raw = NULL;
}

bool bench_transfer_take(struct bench_transfer *transfer,
                         const struct bench_layout *layout)
{
  bench_transfer_drop(transfer);
  transfer->layout = *layout;
  transfer->length = bench_layout_bytes(layout);
  transfer->runs = bench_layout_runs(layout);
  transfer->has_rect = bench_layout_rect(layout, &transfer->rect);
  transfer->rect_pageable = false;
  return bench_handle(&transfer->bench, transfer->buffer, layout,
                      &transfer->handle);
}

void bench_transfer_drop(struct bench_transfer *transfer)
{
  clb_bytes_release(transfer->handle);
  transfer->handle = NULL;
}
