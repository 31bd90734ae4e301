/* The other way, and cost by bytes. */
#include "config.h"

#include "beside.h"

struct upload {
  struct bench_transfer *transfer;
  clb_bytes *source;
};

static bool run_upload(void *user)
{
  struct upload *upload = user;
  struct bench_transfer *transfer = upload->transfer;
  const struct bench_layout *layout = &transfer->layout;
  clb_layout theirs = {layout->ndim, layout->shape, layout->strides,
                       layout->element, layout->offset};

  return bench_ok(clb_bytes_upload(upload->source,
                                   transfer->bench.session.context,
                                   transfer->buffer, &theirs),
                  "clb_bytes_upload");
}

static bool run_write(void *user)
{
  struct upload *upload = user;
  struct bench_transfer *transfer = upload->transfer;
  cl_command_queue queue = transfer->bench.session.queue;

  return bench_cl_ok(clEnqueueWriteBuffer(queue, transfer->buffer, CL_FALSE, 0,
                                          transfer->length,
                                          transfer->pinned.data, 0, NULL, NULL),
                     "clEnqueueWriteBuffer") &&
         bench_cl_ok(clFinish(queue), "clFinish");
}

/* What was uploaded last is looked at: the raw write is in the same place. */
static bool check_upload(struct upload *upload, uint32_t seed)
{
  struct bench_transfer *transfer = upload->transfer;
  struct bench_layout packed = {
      1, {transfer->length}, {1}, 1, 0};

  return run_upload(upload) && bench_check_stream("uploaded", &packed, seed,
                                                  transfer->handle);
}

static bool measure_source(struct upload *upload, size_t rounds, uint32_t seed,
                           struct bench_pair *pair)
{
  static struct bench_job ours, raw;
  struct bench_job *jobs[] = {&ours, &raw};

  ours = (struct bench_job){.run = run_upload,
                            .user = upload,
                            .batch = bench_batch(pair->bytes)};
  raw = (struct bench_job){.run = run_write,
                           .user = upload,
                           .batch = bench_batch(pair->bytes)};
  if (!bench_interleave(jobs, 2, rounds))
    return false;
  pair->ours = bench_time(&ours);
  pair->raw = bench_time(&raw);
  pair->ratio = bench_ratio(&ours, &raw);
  pair->data_ok = check_upload(upload, seed);
  return true;
}

bool bench_upload_measure(struct bench_transfer *transfer, const char *name,
                          const struct bench_layout *layout, uint32_t seed,
                          size_t rounds, struct bench_pair *out)
{
  clb_context *context = transfer->bench.session.context;
  struct upload upload = {transfer, NULL};
  struct bench_pair pair = {name, "write from pinned memory",
                            bench_layout_bytes(layout), .data_ok = false};
  void *pinned;
  bool done;

  if (!bench_transfer_take(transfer, layout) ||
      !bench_ok(clb_host_alloc(context, pair.bytes, &pinned), "clb_host_alloc"))
    return false;
  bench_fill_memory(pinned, 0, pair.bytes, seed);
  done = bench_ok(clb_bytes_from_host(pinned, pair.bytes, NULL, NULL,
                                      &upload.source),
                  "clb_bytes_from_host") &&
         measure_source(&upload, rounds, seed, &pair);
  clb_bytes_release(upload.source);
  clb_host_free(context, pinned);
  if (done)
    *out = pair;
  return done;
}

/* --- By bytes ------------------------------------------------------------- */

struct part {
  struct bench_transfer *transfer;
  clb_bytes *view;
  size_t bytes;
};

/* Where the device shares its memory a stream moves nothing. */
static bool run_part(void *user)
{
  struct part *part = user;

  if (part->transfer->shared)
    return bench_ok(clb_bytes_copy_into(part->view, 0, part->transfer->ours,
                                        part->bytes),
                    "clb_bytes_copy_into");
  return bench_ok(
      clb_bytes_stream(part->view, 0, part->bytes, bench_ignore, NULL),
      "clb_bytes_stream");
}

static void note_linear(const struct bench_job *jobs, struct bench_linear *out)
{
  double least = 0;
  double most = 0;

  for (size_t i = 0; i < BENCH_LINEAR; i++) {
    double cost;

    out->seconds[i] = bench_time(&jobs[i]);
    cost = out->seconds[i].median / (double)out->bytes[i];
    if (i == 0 || cost < least)
      least = cost;
    if (cost > most)
      most = cost;
  }
  out->apart = most / least - 1;
}

bool bench_linear_measure(struct bench_transfer *transfer, size_t bytes,
                          size_t rounds, struct bench_linear *out)
{
  static struct bench_job jobs[BENCH_LINEAR];
  struct bench_layout layout = bench_contiguous(bytes);
  struct part parts[BENCH_LINEAR] = {{NULL, NULL, 0}};
  struct bench_job *list[BENCH_LINEAR];
  bool done = bench_transfer_take(transfer, &layout);

  for (size_t i = 0; done && i < BENCH_LINEAR; i++) {
    parts[i].transfer = transfer;
    parts[i].bytes = out->bytes[i] =
        transfer->length >> (BENCH_LINEAR - 1 - i);
    jobs[i] = (struct bench_job){.run = run_part, .user = &parts[i]};
    list[i] = &jobs[i];
    done = bench_ok(clb_bytes_view(transfer->handle, 0, parts[i].bytes,
                                   &parts[i].view),
                    "clb_bytes_view");
  }
  done = done && bench_interleave(list, BENCH_LINEAR, rounds);
  if (done)
    note_linear(jobs, out);
  for (size_t i = 0; i < BENCH_LINEAR; i++)
    clb_bytes_release(parts[i].view);
  return done;
}
