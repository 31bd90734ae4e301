/*
 * overlap.c - the device computes, results cross the link and the host works on
 * them: one after the other, and all at the same time.  Prints both times.
 *
 *     cc -o overlap overlap.c $(pkg-config --cflags --libs clbytes)
 *     ./overlap [PLATFORM]       (a part of an OpenCL platform's name)
 *
 * The kernels of the rounds write two buffers in turn.  What a round has
 * written is prefetched, and the kernel that writes the buffer next waits for
 * the event of that: so the device runs ahead of the host by two rounds, and
 * nobody waits but for what is needed.  Where the device is the host's own
 * processor they share its cores, and there is little to gain.
 *
 * heat.c, beside this file, keeps results on the device by
 * clb_bytes_snapshot() instead, and saves them while it goes on stepping.
 */
#define _POSIX_C_SOURCE 200809L
#define CL_TARGET_OPENCL_VERSION 120

#include <clbytes.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  EXIT_NO_DEVICE = 3,
  ROUNDS = 16,
  BUFFERS = 2,
  ELEMENTS = 1 << 21,
  DRAWS = 8 /* of each element's random numbers; the last is its value */
};

#define FACTOR 1664525u
#define SUMMAND 1013904223u

static const char kernels[] =
  "kernel void draw(global uint *out, uint seed, uint draws, uint factor,\n"
  "                 uint summand)\n"
  "{\n"
  "  uint value = get_global_id(0) + seed;\n"
  "  while (draws-- > 0)\n"
  "    value = value * factor + summand;\n"
  "  out[get_global_id(0)] = value;\n"
  "}\n";

struct device {
  cl_device_id id;
  cl_context opencl;
  cl_command_queue queue;
  cl_kernel kernel;
  cl_mem buffers[BUFFERS];
  clb_context *bytes;
};

/* A round whose kernel is enqueued, and whose results may be on their way. */
struct round {
  clb_bytes *results;
  cl_event arrived; /* or NULL */
};

static void
check(cl_int error, const char *call)
{
  if (error != CL_SUCCESS) {
    fprintf(stderr, "overlap: %s: OpenCL error %d\n", call, (int)error);
    exit(EXIT_FAILURE);
  }
}

static void
check_bytes(clb_status status)
{
  if (status != CLB_OK) {
    fprintf(stderr, "overlap: %s: %s\n", clb_status_name(status),
            clb_error_message());
    exit(EXIT_FAILURE);
  }
}

/* The first device of a platform whose name has this part. */
static cl_device_id
find_device(const char *part)
{
  cl_platform_id platforms[16];
  cl_uint num_platforms = 0;
  cl_device_id device;
  char name[256];

  if (clGetPlatformIDs(16, platforms, &num_platforms) != CL_SUCCESS)
    num_platforms = 0;
  for (cl_uint p = 0; p < num_platforms && p < 16; p++)
    if (clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name, name,
                          NULL) == CL_SUCCESS && strstr(name, part) != NULL &&
        clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL) ==
          CL_SUCCESS)
      return device;
  fprintf(stderr, "overlap: no OpenCL device of a platform \"%s\"\n", part);
  exit(EXIT_NO_DEVICE);
}

static void
open_device(struct device *device)
{
  const cl_uint draws = DRAWS, factor = FACTOR, summand = SUMMAND;
  const char *source = kernels;
  cl_program program;
  cl_int error;

  device->opencl = clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
  check(error, "clCreateContext");
  device->queue = clCreateCommandQueue(device->opencl, device->id, 0, &error);
  check(error, "clCreateCommandQueue");
  program = clCreateProgramWithSource(device->opencl, 1, &source, NULL, &error);
  check(error, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device->id, "", NULL, NULL),
        "clBuildProgram");
  device->kernel = clCreateKernel(program, "draw", &error);
  check(error, "clCreateKernel");
  clReleaseProgram(program);
  check(clSetKernelArg(device->kernel, 2, sizeof draws, &draws),
        "clSetKernelArg");
  check(clSetKernelArg(device->kernel, 3, sizeof factor, &factor),
        "clSetKernelArg");
  check(clSetKernelArg(device->kernel, 4, sizeof summand, &summand),
        "clSetKernelArg");
  for (int i = 0; i < BUFFERS; i++) {
    device->buffers[i] = clCreateBuffer(device->opencl, CL_MEM_READ_WRITE,
                                        ELEMENTS * sizeof(cl_uint), NULL,
                                        &error);
    check(error, "clCreateBuffer");
  }
  check_bytes(clb_context_create(device->queue, NULL, &device->bytes));
}

static void
close_device(struct device *device)
{
  clb_context_release(device->bytes);
  for (int i = 0; i < BUFFERS; i++)
    clReleaseMemObject(device->buffers[i]);
  clReleaseKernel(device->kernel);
  clReleaseCommandQueue(device->queue);
  clReleaseContext(device->opencl);
}

/* --- A round ------------------------------------------------------------- */

static cl_uint
seed_of(unsigned number)
{
  return number * 2654435761u;
}

/* Enqueues the kernel of a round into the buffer that its turn gives it, after
 * what was there has left; makes a handle on what it will have written. */
static void
begin(const struct device *device, unsigned number, struct round *round)
{
  const size_t size = ELEMENTS;
  const cl_mem *buffer = &device->buffers[number % BUFFERS];
  cl_uint seed = seed_of(number);
  cl_uint waits = round->arrived != NULL ? 1 : 0;

  check(clSetKernelArg(device->kernel, 0, sizeof *buffer, buffer),
        "clSetKernelArg");
  check(clSetKernelArg(device->kernel, 1, sizeof seed, &seed),
        "clSetKernelArg");
  check(clEnqueueNDRangeKernel(device->queue, device->kernel, 1, NULL, &size,
                               NULL, waits, waits > 0 ? &round->arrived : NULL,
                               NULL),
        "clEnqueueNDRangeKernel");
  if (waits > 0)
    check(clReleaseEvent(round->arrived), "clReleaseEvent");
  round->arrived = NULL;
  check_bytes(clb_bytes_from_buffer(device->bytes, *buffer, NULL,
                                    &round->results));
}

/* The host's part of the work. */
static uint64_t
digest(uint64_t so_far, cl_uint value)
{
  return (so_far ^ value) * 1099511628211u;
}

/* Reads a round's results, waiting for them where they are not there yet. */
static uint64_t
finish(uint64_t so_far, clb_bytes **results)
{
  const cl_uint *value;
  const void *data;

  check_bytes(clb_bytes_read(*results, CLB_COPY, &data));
  value = data;
  for (size_t i = 0; i < ELEMENTS; i++)
    so_far = digest(so_far, value[i]);
  clb_bytes_release(*results);
  *results = NULL;
  return so_far;
}

/* --- Both ways ----------------------------------------------------------- */

static uint64_t
one_after_the_other(const struct device *device)
{
  struct round round = {NULL, NULL};
  uint64_t result = 0;

  for (unsigned number = 0; number < ROUNDS; number++) {
    begin(device, number, &round);
    result = finish(result, &round.results);
  }
  return result;
}

static uint64_t
overlapped(const struct device *device)
{
  struct round rounds[BUFFERS] = {{NULL, NULL}};
  uint64_t result = 0;

  for (unsigned number = 0; number < ROUNDS + BUFFERS; number++) {
    struct round *round = &rounds[number % BUFFERS];
    clb_bytes *results = round->results; /* of BUFFERS rounds ago */

    if (number < ROUNDS) {
      begin(device, number, round);
      check_bytes(clb_bytes_prefetch(round->results, &round->arrived));
    }
    if (results != NULL)
      result = finish(result, &results);
  }
  for (int i = 0; i < BUFFERS; i++)
    check(clReleaseEvent(rounds[i].arrived), "clReleaseEvent");
  return result;
}

/* What both have to give: all draws of an element are one multiplication and
 * one addition. */
static uint64_t
expected(void)
{
  cl_uint factor = 1, summand = 0;
  uint64_t result = 0;

  for (int i = 0; i < DRAWS; i++) {
    factor *= FACTOR;
    summand = summand * FACTOR + SUMMAND;
  }
  for (unsigned number = 0; number < ROUNDS; number++)
    for (cl_uint i = 0; i < ELEMENTS; i++)
      result = digest(result, (i + seed_of(number)) * factor + summand);
  return result;
}

/* Runs one way, prints how long it took, and says whether it was right: the
 * results, and that each crossed the link once. */
static bool
measure(const struct device *device, const char *how,
        uint64_t (*work)(const struct device *device), uint64_t right)
{
  struct timespec begin, end;
  clb_stats before, after;
  uint64_t result;
  double seconds;
  bool good;

  clb_context_stats(device->bytes, &before, sizeof before);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  result = work(device);
  clock_gettime(CLOCK_MONOTONIC, &end);
  clb_context_stats(device->bytes, &after, sizeof after);
  seconds = (double)(end.tv_sec - begin.tv_sec) +
            1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  good = result == right && after.reads - before.reads == ROUNDS;
  printf("%-20s %7.1f ms, %" PRIu64 " reads, %s\n", how, seconds * 1e3,
         after.reads - before.reads, good ? "right" : "wrong");
  return good;
}

int
main(int argc, char **argv)
{
  struct device device = {.id = find_device(argc > 1 ? argv[1] : "")};
  uint64_t right = expected();
  bool good;

  open_device(&device);
  /* The first time pays for what is made once: kernels, pinned memory. */
  good = one_after_the_other(&device) == right;
  good &= measure(&device, "one after the other", one_after_the_other, right);
  good &= measure(&device, "overlapped", overlapped, right);
  close_device(&device);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
