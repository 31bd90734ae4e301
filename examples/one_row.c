/*
 * one_row.c - reads single rows of a big matrix with padded rows, and shows
 * from the counters that no other byte of it crossed the link.
 *
 *     cc -o one_row one_row.c $(pkg-config --cflags --libs clbytes)
 *     ./one_row [PLATFORM]       (a part of an OpenCL platform's name)
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <clbytes.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  EXIT_NO_DEVICE = 3,
  HEIGHT = 1024,
  WIDTH = 1500,
  PITCH = 6144 /* bytes of a padded row */
};

static const char kernels[] =
  "kernel void fill(global float *matrix, uint pitch)\n"
  "{\n"
  "  size_t x = get_global_id(0), y = get_global_id(1);\n"
  "  matrix[y * (pitch / sizeof(float)) + x] = y * 2000.0f + x;\n"
  "}\n";

static void
check(cl_int error, const char *call)
{
  if (error != CL_SUCCESS) {
    fprintf(stderr, "one_row: %s: OpenCL error %d\n", call, (int)error);
    exit(EXIT_FAILURE);
  }
}

static void
check_bytes(clb_status status)
{
  if (status != CLB_OK) {
    fprintf(stderr, "one_row: %s: %s\n", clb_status_name(status),
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
  fprintf(stderr, "one_row: no OpenCL device of a platform \"%s\"\n", part);
  exit(EXIT_NO_DEVICE);
}

/* Enqueues a kernel that fills the matrix. */
static void
fill(cl_context opencl, cl_device_id device, cl_command_queue queue,
     cl_mem buffer)
{
  const size_t size[2] = {WIDTH, HEIGHT};
  const char *source = kernels;
  cl_uint pitch = PITCH;
  cl_program program;
  cl_kernel kernel;
  cl_int error;

  program = clCreateProgramWithSource(opencl, 1, &source, NULL, &error);
  check(error, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  kernel = clCreateKernel(program, "fill", &error);
  check(error, "clCreateKernel");
  check(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
  check(clSetKernelArg(kernel, 1, sizeof pitch, &pitch), "clSetKernelArg");
  check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL,
                               NULL),
        "clEnqueueNDRangeKernel");
  clReleaseKernel(kernel);
  clReleaseProgram(program);
}

static uint64_t
crossed(const clb_context *context)
{
  clb_stats stats;

  clb_context_stats(context, &stats, sizeof stats);
  return stats.link_bytes;
}

/* Reads a row and releases it; the number of elements that are wrong, and one
 * more if anything but the row crossed the link. */
static size_t
read_row(clb_context *context, clb_bytes *row, size_t y, const char *how)
{
  uint64_t before = crossed(context), moved;
  const cl_float *element;
  const void *data;
  size_t length = clb_bytes_length(row), wrong = 0;

  check_bytes(clb_bytes_read(row, CLB_COPY, &data));
  element = data;
  for (size_t x = 0; x < WIDTH; x++)
    wrong += element[x] != (cl_float)y * 2000.0f + (cl_float)x;
  moved = crossed(context) - before;
  printf("row %zu by %s: %zu bytes, of which %" PRIu64
         " crossed the link; %zu wrong\n", y, how, length, moved, wrong);
  wrong += moved != length || length != WIDTH * sizeof(cl_float);
  clb_bytes_release(row);
  return wrong;
}

int
main(int argc, char **argv)
{
  cl_device_id device = find_device(argc > 1 ? argv[1] : "");
  size_t shape[2] = {HEIGHT, WIDTH};
  ptrdiff_t strides[2] = {PITCH, sizeof(cl_float)};
  clb_layout layout = {2, shape, strides, sizeof(cl_float), 0};
  size_t first[2] = {700, 0}, taken[2] = {1, WIDTH};
  size_t length = WIDTH * sizeof(cl_float), wrong = 0;
  clb_context *context = NULL;
  clb_bytes *matrix = NULL, *row = NULL;
  cl_command_queue queue;
  cl_context opencl;
  cl_mem buffer;
  cl_int error;

  opencl = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  check(error, "clCreateContext");
  queue = clCreateCommandQueue(opencl, device, 0, &error);
  check(error, "clCreateCommandQueue");
  buffer = clCreateBuffer(opencl, CL_MEM_READ_WRITE, HEIGHT * PITCH, NULL,
                          &error);
  check(error, "clCreateBuffer");
  fill(opencl, device, queue, buffer);
  check_bytes(clb_context_create(queue, NULL, &context));
  check_bytes(clb_bytes_from_buffer(context, buffer, &layout, &matrix));
  printf("a matrix of %zu bytes, in a buffer of %d\n",
         clb_bytes_length(matrix), HEIGHT * PITCH);

  /* By its indices, with the dimensions kept: 1 x WIDTH. */
  check_bytes(clb_bytes_slice(matrix, first, taken, NULL, &row));
  wrong += read_row(context, row, first[0], "slice");

  /* By its bytes, which are counted as if there were no padding. */
  check_bytes(clb_bytes_view(matrix, 41 * length, 42 * length, &row));
  wrong += read_row(context, row, 41, "view");

  clb_bytes_release(matrix);
  clb_context_release(context);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(opencl);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
