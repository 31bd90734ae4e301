/*
 * read_field.c - reads a field with padded rows from an OpenCL buffer, checks
 * it and prints what it saw.
 *
 *     cc -o read_field read_field.c $(pkg-config --cflags --libs clbytes)
 *     ./read_field
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <clbytes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 1080, WIDTH = 1917, PITCH = 7936 /* bytes of a padded row */ };

static const char kernels[] =
  "kernel void fill(global float *field, uint pitch)\n"
  "{\n"
  "  size_t x = get_global_id(0), y = get_global_id(1);\n"
  "  field[y * (pitch / sizeof(float)) + x] = y * 10000.0f + x;\n"
  "}\n";

static void
check(cl_int error, const char *call)
{
  if (error != CL_SUCCESS) {
    fprintf(stderr, "read_field: %s: OpenCL error %d\n", call, (int)error);
    exit(EXIT_FAILURE);
  }
}

/* The first device of the first platform that has one. */
static cl_device_id
first_device(void)
{
  cl_platform_id platforms[16];
  cl_uint num_platforms = 0;
  cl_device_id device;

  check(clGetPlatformIDs(16, platforms, &num_platforms), "clGetPlatformIDs");
  for (cl_uint p = 0; p < num_platforms && p < 16; p++)
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL) ==
        CL_SUCCESS)
      return device;
  fprintf(stderr, "read_field: no OpenCL device\n");
  exit(EXIT_FAILURE);
}

/* Enqueues a kernel that fills the field; it may still run when this returns,
 * and a read sees what it wrote. */
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

/* Reads the field and compares each element; nonzero if all are right. */
static int
read_and_check(cl_command_queue queue, cl_mem buffer)
{
  size_t shape[2] = {HEIGHT, WIDTH};
  ptrdiff_t strides[2] = {PITCH, sizeof(cl_float)};
  clb_layout layout = {2, shape, strides, sizeof(cl_float), 0};
  clb_context *context = NULL;
  clb_bytes *field = NULL;
  const void *data;
  const cl_float *element;
  size_t wrong = 0;
  int done = 0;

  if (clb_context_create(queue, NULL, &context) != CLB_OK ||
      clb_bytes_from_buffer(context, buffer, &layout, &field) != CLB_OK ||
      clb_bytes_read(field, CLB_COPY, &data) != CLB_OK) {
    fprintf(stderr, "read_field: %s\n", clb_error_message());
    goto out;
  }
  element = data;
  for (size_t y = 0; y < HEIGHT; y++)
    for (size_t x = 0; x < WIDTH; x++)
      wrong += *element++ != (cl_float)y * 10000.0f + (cl_float)x;
  printf("%zu bytes, %zu of %d elements wrong; the last is %.0f\n",
         clb_bytes_length(field), wrong, HEIGHT * WIDTH, element[-1]);
  done = wrong == 0;
out:
  clb_bytes_release(field);
  clb_context_release(context);
  return done;
}

int
main(void)
{
  cl_device_id device = first_device();
  cl_context opencl;
  cl_command_queue queue;
  cl_mem buffer;
  cl_int error;
  int done;

  opencl = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  check(error, "clCreateContext");
  queue = clCreateCommandQueue(opencl, device, 0, &error);
  check(error, "clCreateCommandQueue");
  buffer = clCreateBuffer(opencl, CL_MEM_READ_WRITE, HEIGHT * PITCH, NULL,
                          &error);
  check(error, "clCreateBuffer");
  fill(opencl, device, queue, buffer);
  done = read_and_check(queue, buffer);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(opencl);
  return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
