/*
 * sub_buffer.c - one buffer holds the layers of a model, one after the other;
 * each is given to a kernel by itself.
 *
 *     cc -o sub_buffer sub_buffer.c $(pkg-config --cflags --libs clbytes)
 *     ./sub_buffer [PLATFORM]    (a part of an OpenCL platform's name)
 *
 * Where a layer begins decides what clb_bytes_buffer() can give: a sub-buffer
 * of it, or the whole buffer and an offset.  A kernel that takes an offset
 * works with both.
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <clbytes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_NO_DEVICE = 3 };

/* Elements.  The second layer begins where every device allows a sub-buffer,
 * the third where hardly one does. */
static const size_t layers[] = {1024, 1000, 1500};

enum { NUM_LAYERS = sizeof layers / sizeof *layers };

static const char kernels[] =
  "kernel void add(global int *layer, ulong first, int what)\n"
  "{\n"
  "  layer[first + get_global_id(0)] += what;\n"
  "}\n";

static void
check(cl_int error, const char *call)
{
  if (error != CL_SUCCESS) {
    fprintf(stderr, "sub_buffer: %s: OpenCL error %d\n", call, (int)error);
    exit(EXIT_FAILURE);
  }
}

static void
check_bytes(clb_status status)
{
  if (status != CLB_OK) {
    fprintf(stderr, "sub_buffer: %s: %s\n", clb_status_name(status),
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
  fprintf(stderr, "sub_buffer: no OpenCL device of a platform \"%s\"\n", part);
  exit(EXIT_NO_DEVICE);
}

static cl_kernel
make_kernel(cl_context opencl, cl_device_id device)
{
  const char *source = kernels;
  cl_program program;
  cl_kernel kernel;
  cl_int error;

  program = clCreateProgramWithSource(opencl, 1, &source, NULL, &error);
  check(error, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  kernel = clCreateKernel(program, "add", &error);
  check(error, "clCreateKernel");
  clReleaseProgram(program); /* the kernel has it */
  return kernel;
}

static size_t
first_of(size_t layer)
{
  size_t first = 0;

  while (layer-- > 0)
    first += layers[layer];
  return first;
}

/* Enqueues the kernel on one layer; nothing is brought to the host. */
static void
add_to_layer(clb_bytes *model, cl_mem whole, size_t i, cl_command_queue queue,
             cl_kernel kernel)
{
  size_t first = first_of(i), offset;
  cl_int what = (cl_int)i + 1;
  clb_bytes *layer = NULL;
  cl_mem part;
  cl_ulong element;

  check_bytes(clb_bytes_slice(model, &first, &layers[i], NULL, &layer));
  check_bytes(clb_bytes_buffer(layer, &part, &offset));
  element = offset / sizeof(cl_int);
  printf("layer %zu, at byte %zu: %s, first element %lu\n", i,
         first * sizeof(cl_int),
         part == whole ? "the whole buffer" : "a sub-buffer",
         (unsigned long)element);
  check(clSetKernelArg(kernel, 0, sizeof part, &part), "clSetKernelArg");
  check(clSetKernelArg(kernel, 1, sizeof element, &element), "clSetKernelArg");
  check(clSetKernelArg(kernel, 2, sizeof what, &what), "clSetKernelArg");
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &layers[i], NULL, 0,
                               NULL, NULL),
        "clEnqueueNDRangeKernel");
  check(clReleaseMemObject(part), "clReleaseMemObject");
  clb_bytes_release(layer);
}

/* The elements that are not what all the kernels made of zeros. */
static size_t
count_wrong(clb_bytes *model)
{
  const cl_int *element;
  const void *data;
  size_t wrong = 0;

  check_bytes(clb_bytes_read(model, CLB_COPY, &data));
  element = data;
  for (size_t i = 0; i < NUM_LAYERS; i++)
    for (size_t j = 0; j < layers[i]; j++)
      wrong += *element++ != (cl_int)(i + 1);
  return wrong;
}

int
main(int argc, char **argv)
{
  cl_device_id device = find_device(argc > 1 ? argv[1] : "");
  size_t length = first_of(NUM_LAYERS), wrong;
  clb_layout layout = {1, &length, NULL, sizeof(cl_int), 0};
  const cl_int zero = 0;
  clb_context *context = NULL;
  clb_bytes *model = NULL;
  cl_command_queue queue;
  cl_context opencl;
  cl_kernel kernel;
  cl_mem buffer;
  cl_int error;

  opencl = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  check(error, "clCreateContext");
  queue = clCreateCommandQueue(opencl, device, 0, &error);
  check(error, "clCreateCommandQueue");
  kernel = make_kernel(opencl, device);
  buffer = clCreateBuffer(opencl, CL_MEM_READ_WRITE, length * sizeof zero, NULL,
                          &error);
  check(error, "clCreateBuffer");
  check(clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0,
                            length * sizeof zero, 0, NULL, NULL),
        "clEnqueueFillBuffer");
  check_bytes(clb_context_create(queue, NULL, &context));
  check_bytes(clb_bytes_from_buffer(context, buffer, &layout, &model));
  for (size_t i = 0; i < NUM_LAYERS; i++)
    add_to_layer(model, buffer, i, queue, kernel);
  wrong = count_wrong(model);
  printf("%zu of %zu elements wrong\n", wrong, length);
  clb_bytes_release(model);
  clb_context_release(context);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseCommandQueue(queue);
  clReleaseContext(opencl);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
