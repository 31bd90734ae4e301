/*
 * What a handle costs: making and releasing one beside raw OpenCL's calls, a
 * view beside a sub-buffer, and what a great number of live ones takes.
 */
#include "config.h"

#include "measure.h"

#include "../tools/host_memory.h"
#include "../tools/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  ROUNDS = 9,
  BATCH = 10000, /* operations between two looks at the clock */
  BUFFER = 1 << 20,
  VIEW_FROM = 4096, /* aligned for sub-buffers everywhere */
  VIEW_TO = 8192
};

static const size_t shape[4] = {4, 8, 16, 32};
static const ptrdiff_t strides[4] = {8 * 16 * 256, 16 * 256, 256, 4};
static const clb_layout layout = {4, shape, strides, 4, 64};

struct handles {
  struct bench bench;
  cl_mem buffer;
  clb_bytes *whole; /* of the buffer */
  size_t count;
  clb_bytes **live;
};

static clb_status make(struct handles *handles, clb_bytes **out)
{
  return clb_bytes_from_buffer(handles->bench.session.context, handles->buffer,
                               &layout, out);
}

/* --- Pairs ---------------------------------------------------------------- */

static bool run_handle(void *user)
{
  for (size_t i = 0; i < BATCH; i++) {
    clb_bytes *bytes;

    if (!bench_ok(make(user, &bytes), "a handle"))
      return false;
    clb_bytes_release(bytes);
  }
  return true;
}

static bool run_retain(void *user)
{
  struct handles *handles = user;
  cl_int error = CL_SUCCESS;

  for (size_t i = 0; error == CL_SUCCESS && i < BATCH; i++) {
    error = clRetainMemObject(handles->buffer);
    if (error == CL_SUCCESS)
      error = clReleaseMemObject(handles->buffer);
  }
  return bench_cl_ok(error, "clRetainMemObject");
}

/* What must be known of a buffer before a layout can be checked against it. */
static bool run_retain_and_ask(void *user)
{
  struct handles *handles = user;
  cl_mem_object_type type;
  cl_context owner;
  cl_mem_flags flags;
  cl_mem parent;
  size_t size;
  cl_int error = CL_SUCCESS;

  for (size_t i = 0; error == CL_SUCCESS && i < BATCH; i++) {
    cl_mem mem = handles->buffer;

    error = clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof(type), &type, NULL);
    error |=
        clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof(owner), &owner, NULL);
    error |= clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(size), &size, NULL);
    error |= clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL);
    error |= clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT,
                                sizeof(parent), &parent, NULL);
    error |= clRetainMemObject(mem);
    error |= clReleaseMemObject(mem);
  }
  return bench_cl_ok(error, "clGetMemObjectInfo");
}

static bool run_view(void *user)
{
  struct handles *handles = user;

  for (size_t i = 0; i < BATCH; i++) {
    clb_bytes *view;

    if (!bench_ok(clb_bytes_view(handles->whole, VIEW_FROM, VIEW_TO, &view),
                  "a view"))
      return false;
    clb_bytes_release(view);
  }
  return true;
}

static bool run_sub_buffer(void *user)
{
  struct handles *handles = user;
  cl_buffer_region region = {VIEW_FROM, VIEW_TO - VIEW_FROM};

  for (size_t i = 0; i < BATCH; i++) {
    cl_int error;
    cl_mem part = clCreateSubBuffer(handles->buffer, CL_MEM_READ_WRITE,
                                    CL_BUFFER_CREATE_TYPE_REGION, &region,
                                    &error);

    if (!bench_cl_ok(error, "clCreateSubBuffer"))
      return false;
    clReleaseMemObject(part);
  }
  return true;
}

static void print_pair(const char *what, const struct bench_job *ours,
                       const struct bench_job *raw)
{
  char ours_text[BENCH_CELL], raw_text[BENCH_CELL];

  printf("| %s | %s | %s | %.2f |\n", what,
         bench_time_cell(ours, 1e9 / BATCH, ours_text),
         bench_time_cell(raw, 1e9 / BATCH, raw_text),
         bench_ratio(ours, raw).median);
}

static bool measure_pairs(struct handles *handles)
{
  static struct bench_job handle = {.run = run_handle};
  static struct bench_job retain = {.run = run_retain};
  static struct bench_job ask = {.run = run_retain_and_ask};
  static struct bench_job view = {.run = run_view};
  static struct bench_job sub_buffer = {.run = run_sub_buffer};
  struct bench_job *jobs[] = {&handle, &retain, &ask, &view, &sub_buffer};
  size_t count = sizeof(jobs) / sizeof(*jobs);

  for (size_t i = 0; i < count; i++)
    jobs[i]->user = handles;
  if (!bench_interleave(jobs, count, ROUNDS))
    return false;
  printf("| made and released, against | ns | raw, ns | ratio |\n"
         "| --- | --- | --- | --- |\n");
  print_pair("handle, retain and release", &handle, &retain);
  print_pair("handle, the same and five queries", &handle, &ask);
  print_pair("view, sub-buffer", &view, &sub_buffer);
  return true;
}

/* --- Many live ones ------------------------------------------------------- */

static bool measure_live(struct handles *handles)
{
  struct tool_growth growth;
  uint64_t grown = 0;
  size_t made = 0;
  double start, making, releasing;
  bool known;

  /* The array is the caller's: it is resident before the growth begins. */
  for (size_t i = 0; i < handles->count; i++)
    handles->live[i] = handles->whole;
  tool_growth_start(&growth);
  start = bench_seconds();
  while (made < handles->count &&
         bench_ok(make(handles, &handles->live[made]), "a handle"))
    made++;
  making = bench_seconds() - start;
  known = tool_growth_bytes(&growth, &grown);
  start = bench_seconds();
  for (size_t i = 0; i < made; i++)
    clb_bytes_release(handles->live[i]);
  releasing = bench_seconds() - start;
  if (made < handles->count)
    return false;
  printf("| live handles | bytes each | made, s | released, s |\n"
         "| --- | --- | --- | --- |\n| %zu | ",
         made);
  if (known)
    printf("%.0f", (double)grown / (double)made);
  else
    printf("-");
  printf(" | %.2f | %.2f |\n", making, releasing);
  return true;
}

static bool measure(struct handles *handles)
{
  cl_int error;

  handles->buffer = clCreateBuffer(handles->bench.session.cl, CL_MEM_READ_WRITE,
                                   BUFFER, NULL, &error);
  if (!bench_cl_ok(error, "clCreateBuffer") ||
      !bench_ok(clb_bytes_from_buffer(handles->bench.session.context,
                                      handles->buffer, NULL, &handles->whole),
                "a handle"))
    return false;
  handles->live = calloc(handles->count, sizeof(clb_bytes *));
  if (handles->live == NULL) {
    tool_error("out of memory");
    return false;
  }
  /* First: the memory that pairs leave behind would be used again. */
  return measure_live(handles) && printf("\n") > 0 && measure_pairs(handles);
}

int main(int argc, char **argv)
{
  struct handles handles = {.count = 1000000};
  const char *device = NULL;
  const struct bench_option options[] = {
      {.name = "device", .what = "index or part of a name", .text = &device},
      {.name = "count", .what = "live handles", .size = &handles.count}};
  bool done;

  bench_parse(argc, argv, "", options, sizeof(options) / sizeof(*options));
  done = bench_start(&handles.bench, device) && measure(&handles);
  free(handles.live);
  clb_bytes_release(handles.whole);
  if (handles.buffer != NULL)
    clReleaseMemObject(handles.buffer);
  bench_stop(&handles.bench);
  return done ? TOOL_OK : TOOL_FAILED;
}
