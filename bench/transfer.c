/*
 * How fast bytes of several layouts come off the device, streamed and copied,
 * beside raw OpenCL in the same run: a plain read into pinned memory, which is
 * what the link gives, and reads into warm pageable memory.  Then what a small
 * read and a mapping cost.  All that is timed is checked afterwards.
 */
#include "config.h"

#include "layouts.h"

#include "../tools/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PADDING = 128, /* bytes between padded rows */
  SMALL = 4096,  /* bytes of a small read */
  SMALL_ROUNDS = 501,
  PLAN_TEXT = 96
};

struct transfer {
  struct bench bench;
  size_t bytes; /* of every layout */
  size_t rounds;
  cl_mem buffer;
  struct bench_pinned pinned;
  unsigned char *ours, *raw; /* warm pageable memory */
  /* of the layout at hand: */
  struct bench_layout layout;
  size_t length;
  clb_bytes *handle;
};

/* --- Ways of moving a layout ---------------------------------------------- */

static int ignore(const void *data, size_t length, void *user)
{
  (void)data;
  (void)length;
  (void)user;
  return 0;
}

static bool run_stream(void *user)
{
  struct transfer *transfer = user;

  return bench_ok(clb_bytes_stream(transfer->handle, 0, transfer->length,
                                   ignore, NULL),
                  "clb_bytes_stream");
}

static bool run_copy(void *user)
{
  struct transfer *transfer = user;

  return bench_ok(clb_bytes_copy_into(transfer->handle, 0, transfer->ours,
                                      transfer->length),
                  "clb_bytes_copy_into");
}

static bool plain_read(struct transfer *transfer, void *to)
{
  return bench_cl_ok(clEnqueueReadBuffer(transfer->bench.session.queue,
                                         transfer->buffer, CL_TRUE, 0,
                                         transfer->length, to, 0, NULL, NULL),
                     "clEnqueueReadBuffer");
}

static bool run_link(void *user)
{
  struct transfer *transfer = user;

  return plain_read(transfer, transfer->pinned.data);
}

static bool run_pageable(void *user)
{
  struct transfer *transfer = user;

  return plain_read(transfer, transfer->raw);
}

/* Whether OpenCL can say the layout as one rectangle; a contiguous one it need
 * not. */
static bool rect_of(const struct bench_layout *layout, size_t region[3],
                    size_t *pitch)
{
  bool rows = layout->shape[0] > 1;
  ptrdiff_t between = rows ? layout->strides[0] : layout->strides[1];

  if ((rows && layout->strides[1] != BENCH_ELEMENT) || between < 0 ||
      between == BENCH_ELEMENT)
    return false;
  region[0] = (rows ? layout->shape[1] : 1) * BENCH_ELEMENT;
  region[1] = layout->shape[!rows];
  region[2] = 1;
  *pitch = (size_t)between;
  return *pitch > region[0];
}

static bool run_rect(void *user)
{
  struct transfer *transfer = user;
  size_t from[3] = {transfer->layout.offset, 0, 0};
  size_t to[3] = {0, 0, 0};
  size_t region[3];
  size_t pitch;

  if (!rect_of(&transfer->layout, region, &pitch))
    return false;
  return bench_cl_ok(
      clEnqueueReadBufferRect(transfer->bench.session.queue, transfer->buffer,
                              CL_TRUE, from, to, region, pitch,
                              pitch * region[1], region[0],
                              region[0] * region[1], transfer->raw, 0, NULL,
                              NULL),
      "clEnqueueReadBufferRect");
}

/* --- Checking ------------------------------------------------------------- */

static bool check(const char *what, const struct bench_walk *walk,
                  size_t length)
{
  if (walk->at == length)
    return true;
  tool_error("%s: byte %zu of %zu is wrong", what, walk->at, length);
  return false;
}

static bool check_memory(struct transfer *transfer, const char *what,
                         const void *data)
{
  struct bench_walk walk = {.layout = &transfer->layout};

  bench_walk_on(data, transfer->length, &walk);
  return check(what, &walk, transfer->length);
}

static bool check_stream(struct transfer *transfer)
{
  struct bench_walk walk = {.layout = &transfer->layout};
  clb_status status = clb_bytes_stream(transfer->handle, 0, transfer->length,
                                       bench_walk_on, &walk);

  return check("streamed", &walk, transfer->length) &&
         bench_ok(status, "clb_bytes_stream");
}

/* --- Layouts -------------------------------------------------------------- */

static struct bench_job stream = {.run = run_stream};
static struct bench_job copy = {.run = run_copy};
static struct bench_job link_read = {.run = run_link};
static struct bench_job pageable = {.run = run_pageable};
static struct bench_job rect = {.run = run_rect};

static void print_layout(const struct transfer *transfer, const char *name,
                         const struct bench_job *rectangle)
{
  char plan[PLAN_TEXT], cell[8][BENCH_CELL];
  size_t length = transfer->length;

  if (clb_bytes_plan(transfer->handle, plan, sizeof(plan)) != CLB_OK)
    snprintf(plan, sizeof(plan), "?");
  printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, plan,
         bench_rate_cell(&link_read, length, cell[0]),
         bench_rate_cell(&stream, length, cell[1]),
         bench_speed_cell(&stream, &link_read, cell[2]),
         bench_rate_cell(&pageable, length, cell[3]),
         bench_rate_cell(rectangle, length, cell[4]),
         bench_rate_cell(&copy, length, cell[5]),
         bench_speed_cell(&copy, &pageable, cell[6]),
         bench_speed_cell(rectangle != NULL ? &copy : NULL, rectangle,
                          cell[7]));
  fflush(stdout);
}

/* The rectangle comes last, so that what it left is there to be checked; it is
 * left out where the driver does not take it. */
static bool measure_handle(struct transfer *transfer, const char *name)
{
  struct bench_job *jobs[] = {&link_read, &stream, &pageable, &copy, &rect};
  size_t count = sizeof(jobs) / sizeof(*jobs);
  bool rectangle;

  for (size_t i = 0; i < count; i++)
    jobs[i]->user = transfer;
  memset(transfer->ours, 0xee, transfer->length);
  memset(transfer->raw, 0xee, transfer->length);
  rectangle = run_rect(transfer);
  if (!bench_interleave(jobs, rectangle ? count : count - 1, transfer->rounds))
    return false;
  if (!check_memory(transfer, "copied", transfer->ours) ||
      (rectangle &&
       !check_memory(transfer, "read as a rectangle", transfer->raw)) ||
      !check_stream(transfer))
    return false;
  print_layout(transfer, name, rectangle ? &rect : NULL);
  return true;
}

static bool measure_layout(struct transfer *transfer, const char *name,
                           struct bench_layout layout)
{
  bool done;

  transfer->layout = layout;
  transfer->length = bench_layout_bytes(&layout);
  if (!bench_handle(&transfer->bench, transfer->buffer, &layout,
                    &transfer->handle))
    return false;
  done = measure_handle(transfer, name);
  if (!done)
    tool_error("%s: not measured", name);
  clb_bytes_release(transfer->handle);
  transfer->handle = NULL;
  return done;
}

static bool measure_layouts(struct transfer *transfer)
{
  static const struct {
    const char *name;
    size_t row;
  } padded[] = {{"rows of 128 B, padded", 128},
                {"rows of 1 KiB, padded", 1024},
                {"rows of 8 KiB, padded", 8192},
                {"rows of 64 KiB, padded", 65536}};
  size_t bytes = transfer->bytes;
  bool done;

  printf("%zu bytes, GB/s; a padding is %d bytes\n\n"
         "| layout | plan | link | streamed | of link | raw pageable "
         "| raw rectangle | copied | of pageable | of rectangle |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
         bytes, (int)PADDING);
  done = measure_layout(transfer, "contiguous", bench_contiguous(bytes));
  for (size_t i = 0; done && i < sizeof(padded) / sizeof(*padded); i++)
    if (padded[i].row <= bytes)
      done = measure_layout(transfer, padded[i].name,
                            bench_padded(bytes, padded[i].row, PADDING));
  return done &&
         measure_layout(transfer, "transposed", bench_transposed(bytes)) &&
         measure_layout(transfer, "reversed", bench_reversed(bytes)) &&
         measure_layout(transfer, "step 2", bench_stepped(bytes, 2));
}

/* --- Small reads ---------------------------------------------------------- */

/* A handle that has not been looked at, as a program that reads once has it. */
static bool run_fresh(void *user)
{
  struct transfer *transfer = user;
  clb_bytes *fresh;
  const void *data;
  bool done;

  if (!bench_handle(&transfer->bench, transfer->buffer, &transfer->layout,
                    &fresh))
    return false;
  done = bench_ok(clb_bytes_read(fresh, CLB_COPY, &data), "clb_bytes_read");
  clb_bytes_release(fresh);
  return done;
}

static bool measure_small(struct transfer *transfer)
{
  static struct bench_job fresh = {.run = run_fresh};
  struct bench_job *jobs[] = {&pageable, &copy, &fresh};
  char cell[3][BENCH_CELL];
  bool done;

  transfer->layout = bench_contiguous(SMALL);
  transfer->length = SMALL;
  fresh.user = transfer;
  memset(transfer->ours, 0xee, SMALL);
  if (!bench_handle(&transfer->bench, transfer->buffer, &transfer->layout,
                    &transfer->handle))
    return false;
  done = bench_interleave(jobs, 3, SMALL_ROUNDS) &&
         check_memory(transfer, "a small copy", transfer->ours);
  clb_bytes_release(transfer->handle);
  transfer->handle = NULL;
  if (!done)
    return false;
  printf("\n| %d bytes | us | of raw |\n| --- | --- | --- |\n"
         "| raw blocking read | %s | 1.00 |\n",
         (int)SMALL, bench_time_cell(&pageable, 1e6, cell[0]));
  printf("| copied | %s | %.2f |\n", bench_time_cell(&copy, 1e6, cell[1]),
         bench_ratio(&copy, &pageable).median);
  printf("| handle made, read and released | %s | %.2f |\n",
         bench_time_cell(&fresh, 1e6, cell[2]),
         bench_ratio(&fresh, &pageable).median);
  return true;
}

/* --- Mappings ------------------------------------------------------------- */

struct mapping {
  struct transfer *transfer;
  size_t length;
  clb_bytes *handle;
};

static clb_status map(struct mapping *mapping, const void **data)
{
  struct bench_layout layout = bench_contiguous(mapping->length);

  if (!bench_handle(&mapping->transfer->bench, mapping->transfer->buffer,
                    &layout, &mapping->handle))
    return CLB_DEVICE_ERROR;
  return clb_bytes_read(mapping->handle, CLB_MAP, data);
}

static bool run_map(void *user)
{
  const void *data;

  return bench_ok(map(user, &data), "CLB_MAP");
}

static void after_map(void *user)
{
  struct mapping *mapping = user;

  clb_bytes_release(mapping->handle);
  mapping->handle = NULL;
}

static bool check_mapping(struct mapping *mapping, bool *maps)
{
  struct bench_layout layout = bench_contiguous(mapping->length);
  struct bench_walk walk = {.layout = &layout};
  const void *data;
  clb_status status = map(mapping, &data);
  bool done = true;

  *maps = status == CLB_OK;
  if (*maps) {
    bench_walk_on(data, mapping->length, &walk);
    done = check("mapped", &walk, mapping->length);
  } else if (status != CLB_WOULD_COPY) {
    done = bench_ok(status, "CLB_MAP");
  }
  after_map(mapping);
  return done;
}

static bool measure_mappings(struct transfer *transfer)
{
  struct mapping mappings[2] = {{.transfer = transfer, .length = SMALL},
                                {.transfer = transfer,
                                 .length = transfer->bytes}};
  static struct bench_job small = {.run = run_map, .after = after_map};
  static struct bench_job large = {.run = run_map, .after = after_map};
  struct bench_job *jobs[] = {&small, &large};
  char cell[2][BENCH_CELL];
  bool maps;

  small.user = &mappings[0];
  large.user = &mappings[1];
  if (!check_mapping(&mappings[1], &maps))
    return false;
  if (!maps) {
    printf("\nThis device does not map without a copy.\n");
    return true;
  }
  if (!bench_interleave(jobs, 2, SMALL_ROUNDS))
    return false;
  printf("\n| mapped | us | of the small one |\n| --- | --- | --- |\n"
         "| %d bytes | %s | 1.00 |\n| %zu bytes | %s | %.2f |\n",
         (int)SMALL, bench_time_cell(&small, 1e6, cell[0]), transfer->bytes,
         bench_time_cell(&large, 1e6, cell[1]),
         bench_ratio(&large, &small).median);
  return true;
}

/* --- The program ---------------------------------------------------------- */

static bool measure(struct transfer *transfer)
{
  size_t bytes = transfer->bytes;

  if (bytes < SMALL || bytes % SMALL != 0) {
    tool_error("--bytes: not a multiple of %d", (int)SMALL);
    return false;
  }
  transfer->ours = malloc(bytes);
  transfer->raw = malloc(bytes);
  if (transfer->ours == NULL || transfer->raw == NULL) {
    tool_error("out of memory");
    return false;
  }
  return bench_filled_buffer(&transfer->bench, bench_layout_room(bytes), 0,
                             &transfer->buffer) &&
         bench_pinned_make(&transfer->bench, bytes, &transfer->pinned) &&
         measure_layouts(transfer) && measure_small(transfer) &&
         measure_mappings(transfer);
}

int main(int argc, char **argv)
{
  struct transfer transfer = {.bytes = (size_t)256 << 20, .rounds = 9};
  const char *device = NULL;
  const struct bench_option options[] = {
      {.name = "device", .what = "index or part of a name", .text = &device},
      {.name = "bytes", .what = "of each layout", .size = &transfer.bytes},
      {.name = "rounds", .what = "of which the median is taken",
       .size = &transfer.rounds}};
  bool done;

  bench_parse(argc, argv, "", options, sizeof(options) / sizeof(*options));
  done = bench_start(&transfer.bench, device) && measure(&transfer);
  bench_pinned_free(&transfer.bench, &transfer.pinned);
  if (transfer.buffer != NULL)
    clReleaseMemObject(transfer.buffer);
  free(transfer.ours);
  free(transfer.raw);
  bench_stop(&transfer.bench);
  return done ? TOOL_OK : TOOL_FAILED;
}
