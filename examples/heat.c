/*
 * heat.c - a heat equation on an OpenCL device that saves checkpoints while it
 * goes on stepping, and starts again from one bit for bit.
 *
 *     cc -o heat heat.c $(pkg-config --cflags --libs clbytes) -lpthread
 *     ./heat --steps=1000 --every=100 --output=run
 *     ./heat --steps=1000 --restart=run-000500.safetensors --output=again
 *     cmp run-001000.safetensors again-001000.safetensors
 *
 * Each field lies in a buffer with a ring of ghost cells and padded rows; a
 * layout says where in it the interior is, so a checkpoint holds the interior
 * alone, packed.  The stepping thread takes a snapshot and gives it to a
 * second thread, which saves it; what is enqueued later does not show in it.
 */
#define _POSIX_C_SOURCE 200809L
#define CL_TARGET_OPENCL_VERSION 120

#include <clbytes.h>
#include <clbytes/safetensors.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  EXIT_USAGE = 2,     /* the command line is wrong */
  EXIT_NO_DEVICE = 3, /* no such OpenCL device */
  ROW_ALIGNMENT = 256,
  STEPS_IN_FLIGHT = 256, /* enqueued, but not known to have ended */
  MOST_CELLS_ACROSS = 1 << 20
};

#define PROGRAM "clbytes heat"

/* Of a step; the cells are one unit across, conductivities at most 1. */
static const float time_step = 0.2f;

static const char kernels[] =
  /* A hot square in a cold plate of two materials. */
  "kernel void start(global float *now, global float *conductivity,\n"
  "                  uint pitch)\n"
  "{\n"
  "  size_t x = get_global_id(0), width = get_global_size(0);\n"
  "  size_t y = get_global_id(1), height = get_global_size(1);\n"
  "  size_t i = (y + 1) * pitch + x + 1;\n"
  "  bool hot = x >= width / 4 && x < width - width / 4 &&\n"
  "             y >= height / 4 && y < height - height / 4;\n"
  "  now[i] = hot ? 100.0f : 10.0f;\n"
  "  conductivity[i] = (x / 16 + y / 16) % 2 == 0 ? 1.0f : 0.125f;\n"
  "}\n"
  /* Ghost cells are equal to their neighbours: no heat leaves the plate. */
  "kernel void insulate(global float *field, uint pitch, uint width,\n"
  "                     uint height)\n"
  "{\n"
  "  size_t i = get_global_id(0) + 1;\n"
  "  if (i <= width) {\n"
  "    field[i] = field[pitch + i];\n"
  "    field[((size_t)height + 1) * pitch + i] =\n"
  "      field[(size_t)height * pitch + i];\n"
  "  }\n"
  "  if (i <= height) {\n"
  "    field[i * pitch] = field[i * pitch + 1];\n"
  "    field[i * pitch + width + 1] = field[i * pitch + width];\n"
  "  }\n"
  "}\n"
  "kernel void advance(global const float *now, global float *next,\n"
  "                    global const float *conductivity, uint pitch,\n"
  "                    float time_step)\n"
  "{\n"
  "  size_t i = (get_global_id(1) + 1) * pitch + get_global_id(0) + 1;\n"
  "  float t = now[i], k = conductivity[i];\n"
  "  float flow = (conductivity[i - 1] + k) * (now[i - 1] - t) +\n"
  "               (conductivity[i + 1] + k) * (now[i + 1] - t) +\n"
  "               (conductivity[i - pitch] + k) * (now[i - pitch] - t) +\n"
  "               (conductivity[i + pitch] + k) * (now[i + pitch] - t);\n"
  "  next[i] = t + time_step * 0.5f * flow;\n"
  "}\n";

struct options {
  size_t width, height; /* interior cells; 0: the default, or the file's */
  uint64_t steps;       /* the step to stop at */
  uint64_t every;       /* steps between checkpoints; 0: at the end alone */
  const char *output;   /* checkpoints are OUTPUT-STEP.safetensors */
  const char *device;   /* part of a platform's or device's name */
  const char *restart;  /* checkpoint to begin with; NULL: from step 0 */
  int durable;
};

/* What a simulation has on the device. */
struct plate {
  cl_device_id device;
  cl_context opencl;
  cl_command_queue queue;
  cl_program program;
  cl_kernel start, insulate, advance;
  cl_mem now, next, conductivity;
  clb_context *bytes;
  size_t shape[2];      /* interior: height, width */
  ptrdiff_t strides[2]; /* bytes from row to row, from cell to cell */
  uint64_t steps_done;
};

/* One moment of the simulation, to be saved. */
struct checkpoint {
  uint64_t step;
  clb_bytes *temperature, *conductivity;
};

/* The second thread: saves one checkpoint while at most one waits. */
struct saver {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool waiting, closed, failed; /* these and next are the mutex's */
  struct checkpoint next;
  const struct options *options;
};

/* --- Errors -------------------------------------------------------------- */

static bool
opencl_ok(cl_int error, const char *what)
{
  if (error != CL_SUCCESS)
    fprintf(stderr, "heat: %s: OpenCL error %d\n", what, (int)error);
  return error == CL_SUCCESS;
}

static bool
clbytes_ok(clb_status status, const char *what)
{
  if (status != CLB_OK)
    fprintf(stderr, "heat: %s: %s: %s\n", what, clb_status_name(status),
            clb_error_message());
  return status == CLB_OK;
}

static bool
complain(const char *about, const char *what)
{
  fprintf(stderr, "heat: %s: %s\n", about, what);
  return false;
}

/* --- Fields in padded buffers -------------------------------------------- */

static size_t
row_pitch(const struct plate *plate)
{
  size_t row = (plate->shape[1] + 2) * sizeof(cl_float);

  return (row + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

/* The interior of a field: past the ghost row above and the ghost cell to the
 * left.  It borrows the plate's arrays. */
static clb_layout
interior(const struct plate *plate)
{
  clb_layout layout = {2, plate->shape, plate->strides, sizeof(cl_float),
                       row_pitch(plate) + sizeof(cl_float)};

  return layout;
}

/* A zeroed buffer, so that the padding never holds what was there before. */
static bool
make_field(struct plate *plate, cl_mem *field)
{
  const cl_float zero = 0;
  size_t size = (plate->shape[0] + 2) * row_pitch(plate);
  cl_int error;

  *field = clCreateBuffer(plate->opencl, CL_MEM_READ_WRITE, size, NULL, &error);
  return opencl_ok(error, "clCreateBuffer") &&
         opencl_ok(clEnqueueFillBuffer(plate->queue, *field, &zero,
                                       sizeof zero, 0, size, 0, NULL, NULL),
                   "clEnqueueFillBuffer");
}

static bool
make_fields(struct plate *plate)
{
  size_t pitch = row_pitch(plate);

  if (plate->shape[0] + 2 > SIZE_MAX / pitch)
    return complain("the plate", "too large for this machine");
  plate->strides[0] = (ptrdiff_t)pitch;
  plate->strides[1] = sizeof(cl_float);
  return make_field(plate, &plate->now) && make_field(plate, &plate->next) &&
         make_field(plate, &plate->conductivity);
}

/* --- The device ---------------------------------------------------------- */

static bool
name_has(cl_platform_id platform, cl_device_id device, const char *part)
{
  char name[256] = "";

  if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) ==
        CL_SUCCESS && strstr(name, part) != NULL)
    return true;
  return clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL) ==
           CL_SUCCESS && strstr(name, part) != NULL;
}

/* The first device whose platform's name or own has this part. */
static bool
find_device(const char *part, cl_device_id *found)
{
  cl_platform_id platforms[16];
  cl_device_id devices[16];
  cl_uint num_platforms = 0, num_devices;

  if (clGetPlatformIDs(16, platforms, &num_platforms) != CL_SUCCESS)
    num_platforms = 0;
  for (cl_uint p = 0; p < num_platforms && p < 16; p++) {
    num_devices = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices,
                       &num_devices) != CL_SUCCESS)
      continue;
    for (cl_uint d = 0; d < num_devices && d < 16; d++)
      if (name_has(platforms[p], devices[d], part)) {
        *found = devices[d];
        return true;
      }
  }
  return complain(*part != '\0' ? part : "OpenCL", "no such device");
}

static bool
build_kernels(struct plate *plate)
{
  const char *source = kernels;
  char log[4096] = "";
  cl_int error;

  plate->program =
    clCreateProgramWithSource(plate->opencl, 1, &source, NULL, &error);
  if (!opencl_ok(error, "clCreateProgramWithSource"))
    return false;
  error = clBuildProgram(plate->program, 1, &plate->device, "", NULL, NULL);
  if (error != CL_SUCCESS) {
    clGetProgramBuildInfo(plate->program, plate->device, CL_PROGRAM_BUILD_LOG,
                          sizeof log, log, NULL);
    fprintf(stderr, "%s\n", log);
    return opencl_ok(error, "clBuildProgram");
  }
  plate->start = clCreateKernel(plate->program, "start", &error);
  if (!opencl_ok(error, "clCreateKernel(start)"))
    return false;
  plate->insulate = clCreateKernel(plate->program, "insulate", &error);
  if (!opencl_ok(error, "clCreateKernel(insulate)"))
    return false;
  plate->advance = clCreateKernel(plate->program, "advance", &error);
  return opencl_ok(error, "clCreateKernel(advance)");
}

static bool
open_device(struct plate *plate)
{
  cl_int error;

  plate->opencl =
    clCreateContext(NULL, 1, &plate->device, NULL, NULL, &error);
  if (!opencl_ok(error, "clCreateContext"))
    return false;
  plate->queue = clCreateCommandQueue(plate->opencl, plate->device, 0, &error);
  return opencl_ok(error, "clCreateCommandQueue") && build_kernels(plate) &&
         clbytes_ok(clb_context_create(plate->queue, NULL, &plate->bytes),
                    "the device");
}

static void
close_plate(struct plate *plate)
{
  clb_context_release(plate->bytes);
  if (plate->conductivity != NULL)
    clReleaseMemObject(plate->conductivity);
  if (plate->next != NULL)
    clReleaseMemObject(plate->next);
  if (plate->now != NULL)
    clReleaseMemObject(plate->now);
  if (plate->advance != NULL)
    clReleaseKernel(plate->advance);
  if (plate->insulate != NULL)
    clReleaseKernel(plate->insulate);
  if (plate->start != NULL)
    clReleaseKernel(plate->start);
  if (plate->program != NULL)
    clReleaseProgram(plate->program);
  if (plate->queue != NULL)
    clReleaseCommandQueue(plate->queue);
  if (plate->opencl != NULL)
    clReleaseContext(plate->opencl);
}

/* --- Stepping ------------------------------------------------------------ */

/* Sets an argument, and passes an earlier argument's error on. */
static cl_int
argument(cl_int earlier, cl_kernel kernel, cl_uint index, size_t size,
         const void *value)
{
  return earlier != CL_SUCCESS ? earlier
                               : clSetKernelArg(kernel, index, size, value);
}

static bool
insulate(struct plate *plate, cl_mem field)
{
  cl_uint pitch = (cl_uint)(row_pitch(plate) / sizeof(cl_float));
  cl_uint height = (cl_uint)plate->shape[0], width = (cl_uint)plate->shape[1];
  size_t size = width > height ? width : height;
  cl_int error = CL_SUCCESS;

  error = argument(error, plate->insulate, 0, sizeof field, &field);
  error = argument(error, plate->insulate, 1, sizeof pitch, &pitch);
  error = argument(error, plate->insulate, 2, sizeof width, &width);
  error = argument(error, plate->insulate, 3, sizeof height, &height);
  return opencl_ok(error, "clSetKernelArg(insulate)") &&
         opencl_ok(clEnqueueNDRangeKernel(plate->queue, plate->insulate, 1,
                                          NULL, &size, NULL, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel(insulate)");
}

static bool
start_fields(struct plate *plate)
{
  cl_uint pitch = (cl_uint)(row_pitch(plate) / sizeof(cl_float));
  size_t size[2] = {plate->shape[1], plate->shape[0]};
  cl_int error = CL_SUCCESS;

  error = argument(error, plate->start, 0, sizeof(cl_mem), &plate->now);
  error =
    argument(error, plate->start, 1, sizeof(cl_mem), &plate->conductivity);
  error = argument(error, plate->start, 2, sizeof pitch, &pitch);
  return opencl_ok(error, "clSetKernelArg(start)") &&
         opencl_ok(clEnqueueNDRangeKernel(plate->queue, plate->start, 2, NULL,
                                          size, NULL, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel(start)");
}

/* Enqueues one step; its result is in plate->now for whatever is enqueued
 * after it. */
static bool
advance(struct plate *plate)
{
  cl_uint pitch = (cl_uint)(row_pitch(plate) / sizeof(cl_float));
  size_t size[2] = {plate->shape[1], plate->shape[0]};
  cl_int error = CL_SUCCESS;
  cl_mem swap = plate->next;

  error = argument(error, plate->advance, 0, sizeof(cl_mem), &plate->now);
  error = argument(error, plate->advance, 1, sizeof(cl_mem), &plate->next);
  error =
    argument(error, plate->advance, 2, sizeof(cl_mem), &plate->conductivity);
  error = argument(error, plate->advance, 3, sizeof pitch, &pitch);
  error = argument(error, plate->advance, 4, sizeof time_step, &time_step);
  if (!opencl_ok(error, "clSetKernelArg(advance)") ||
      !insulate(plate, plate->now) ||
      !opencl_ok(clEnqueueNDRangeKernel(plate->queue, plate->advance, 2, NULL,
                                        size, NULL, 0, NULL, NULL),
                 "clEnqueueNDRangeKernel(advance)"))
    return false;
  plate->next = plate->now;
  plate->now = swap;
  plate->steps_done++;
  if (plate->steps_done % STEPS_IN_FLIGHT == 0)
    return opencl_ok(clFinish(plate->queue), "clFinish");
  return opencl_ok(clFlush(plate->queue), "clFlush");
}

/* --- Saving -------------------------------------------------------------- */

static void
drop_checkpoint(struct checkpoint *checkpoint)
{
  clb_bytes_release(checkpoint->temperature);
  clb_bytes_release(checkpoint->conductivity);
  checkpoint->temperature = checkpoint->conductivity = NULL;
}

/* The fields as they are after the last step that was enqueued.  Nothing is
 * copied to the host here.  The conductivity never changes, so it needs no
 * snapshot. */
static bool
take_checkpoint(struct plate *plate, struct checkpoint *checkpoint)
{
  clb_layout layout = interior(plate);

  checkpoint->step = plate->steps_done;
  checkpoint->temperature = checkpoint->conductivity = NULL;
  if (clbytes_ok(clb_bytes_from_buffer(plate->bytes, plate->now, &layout,
                                       &checkpoint->temperature),
                 "temperature") &&
      clbytes_ok(clb_bytes_snapshot(checkpoint->temperature), "snapshot") &&
      clbytes_ok(clb_bytes_from_buffer(plate->bytes, plate->conductivity,
                                       &layout, &checkpoint->conductivity),
                 "conductivity"))
    return true;
  drop_checkpoint(checkpoint);
  return false;
}

/* Saves the fields, and two scalars that are on the host. */
static bool
save_checkpoint(const struct checkpoint *checkpoint,
                const struct options *options)
{
  static const size_t scalar[] = {1}; /* of rank 0, none of it is read; NULL
                                         would say: as the handle's own */
  const clb_pair metadata[] = {{"program", PROGRAM}, {"boundary", "insulated"}};
  clb_save_options save = CLB_SAVE_OPTIONS_INIT;
  clb_bytes *step = NULL, *seconds = NULL;
  uint64_t steps_done = checkpoint->step;
  double elapsed = (double)checkpoint->step * (double)time_step;
  char path[4096];
  bool saved = false;

  if ((size_t)snprintf(path, sizeof path, "%s-%06" PRIu64 ".safetensors",
                       options->output, steps_done) >= sizeof path)
    return complain(options->output, "too long a name");
  save.metadata = metadata;
  save.metadata_count = sizeof metadata / sizeof *metadata;
  save.durable = options->durable;
  if (clbytes_ok(clb_bytes_from_copy(&steps_done, sizeof steps_done, &step),
                 "step") &&
      clbytes_ok(clb_bytes_from_copy(&elapsed, sizeof elapsed, &seconds),
                 "time")) {
    const clb_tensor tensors[] = {
      {"temperature", "F32", 0, NULL, checkpoint->temperature},
      {"conductivity", "F32", 0, NULL, checkpoint->conductivity},
      {"step", "U64", 0, scalar, step},
      {"time", "F64", 0, scalar, seconds}};

    saved = clbytes_ok(clb_safetensors_save(path, tensors,
                                            sizeof tensors / sizeof *tensors,
                                            &save),
                       path);
  }
  if (saved)
    printf("step %" PRIu64 ": %s\n", steps_done, path);
  clb_bytes_release(seconds);
  clb_bytes_release(step);
  return saved;
}

static void *
saver_main(void *argument)
{
  struct saver *saver = argument;
  struct checkpoint checkpoint;
  bool saved;

  pthread_mutex_lock(&saver->mutex);
  for (;;) {
    while (!saver->waiting && !saver->closed)
      pthread_cond_wait(&saver->changed, &saver->mutex);
    if (!saver->waiting)
      break;
    checkpoint = saver->next;
    saver->waiting = false;
    pthread_cond_signal(&saver->changed);
    pthread_mutex_unlock(&saver->mutex);
    saved = save_checkpoint(&checkpoint, saver->options);
    drop_checkpoint(&checkpoint);
    pthread_mutex_lock(&saver->mutex);
    if (!saved)
      saver->failed = true;
  }
  pthread_mutex_unlock(&saver->mutex);
  return NULL;
}

/* Takes a checkpoint over; waits while another one waits, so that snapshots
 * do not pile up on the device.  False if an earlier save failed. */
static bool
saver_give(struct saver *saver, struct checkpoint *checkpoint)
{
  bool accepted;

  pthread_mutex_lock(&saver->mutex);
  while (saver->waiting)
    pthread_cond_wait(&saver->changed, &saver->mutex);
  accepted = !saver->failed;
  if (accepted) {
    saver->next = *checkpoint;
    saver->waiting = true;
    pthread_cond_signal(&saver->changed);
  }
  pthread_mutex_unlock(&saver->mutex);
  if (!accepted)
    drop_checkpoint(checkpoint);
  return accepted;
}

/* Waits until all that was given is saved.  False if a save failed. */
static bool
saver_finish(struct saver *saver)
{
  pthread_mutex_lock(&saver->mutex);
  saver->closed = true;
  pthread_cond_signal(&saver->changed);
  pthread_mutex_unlock(&saver->mutex);
  pthread_join(saver->thread, NULL);
  return !saver->failed;
}

/* --- Starting again ------------------------------------------------------ */

static bool
is_ours(const clb_safetensors *file)
{
  clb_pair pair;

  for (size_t i = 0; i < clb_safetensors_metadata_count(file); i++)
    if (clb_safetensors_metadata_at(file, i, &pair) == CLB_OK &&
        strcmp(pair.key, "program") == 0)
      return strcmp(pair.value, PROGRAM) == 0;
  return false;
}

static bool
find_tensor(const clb_safetensors *file, const char *name, const char *dtype,
            size_t ndim, clb_tensor *out)
{
  if (clb_safetensors_find(file, name, out) != CLB_OK)
    return complain(name, "not in the checkpoint");
  if (strcmp(out->dtype, dtype) != 0 || out->ndim != ndim)
    return complain(name, "not of the type and rank of a checkpoint");
  return true;
}

/* The plate's size and step from a checkpoint; reads no field. */
static bool
read_size(const clb_safetensors *file, struct plate *plate)
{
  clb_tensor temperature, conductivity, step;

  if (!is_ours(file))
    return complain("the checkpoint", "of another program");
  if (!find_tensor(file, "temperature", "F32", 2, &temperature) ||
      !find_tensor(file, "conductivity", "F32", 2, &conductivity) ||
      !find_tensor(file, "step", "U64", 0, &step))
    return false;
  for (int d = 0; d < 2; d++) {
    plate->shape[d] = temperature.shape[d];
    if (conductivity.shape[d] != plate->shape[d])
      return complain("the checkpoint", "its fields differ in shape");
    if (plate->shape[d] < 1 || plate->shape[d] > MOST_CELLS_ACROSS)
      return complain("the checkpoint", "no size for a plate");
  }
  return clbytes_ok(clb_bytes_copy_into(step.bytes, 0, &plate->steps_done,
                                        sizeof plate->steps_done),
                    "step");
}

/* From the file straight into the padded buffers. */
static bool
read_fields(const clb_safetensors *file, struct plate *plate)
{
  clb_layout layout = interior(plate);
  clb_tensor temperature, conductivity;

  return find_tensor(file, "temperature", "F32", 2, &temperature) &&
         find_tensor(file, "conductivity", "F32", 2, &conductivity) &&
         clbytes_ok(clb_bytes_upload(temperature.bytes, plate->bytes,
                                     plate->now, &layout),
                    "temperature") &&
         clbytes_ok(clb_bytes_upload(conductivity.bytes, plate->bytes,
                                     plate->conductivity, &layout),
                    "conductivity");
}

/* Fields from the checkpoint, or from nothing.  The ghost cells are the
 * interior's neighbours, so no checkpoint need hold them. */
static bool
prepare(struct plate *plate, const struct options *options)
{
  clb_safetensors *file = NULL;
  bool ready = false;

  plate->shape[0] = options->height;
  plate->shape[1] = options->width;
  if (options->restart != NULL &&
      (!clbytes_ok(clb_safetensors_open(options->restart, &file),
                   options->restart) ||
       !read_size(file, plate)))
    goto out;
  if (plate->steps_done > options->steps) {
    complain(options->restart, "already past the last step");
    goto out;
  }
  if (!open_device(plate) || !make_fields(plate))
    goto out;
  ready = (file != NULL ? read_fields(file, plate) : start_fields(plate)) &&
          insulate(plate, plate->conductivity);
out:
  clb_safetensors_close(file);
  return ready;
}

/* --- The program --------------------------------------------------------- */

/* Steps to the end, and gives each checkpoint to the saver; the last step is
 * always one. */
static bool
simulate(struct plate *plate, const struct options *options,
         struct saver *saver)
{
  struct checkpoint checkpoint;
  bool last;

  do {
    if (plate->steps_done < options->steps && !advance(plate))
      return false;
    last = plate->steps_done == options->steps;
    if (last || (options->every != 0 &&
                 plate->steps_done % options->every == 0)) {
      if (!take_checkpoint(plate, &checkpoint) ||
          !saver_give(saver, &checkpoint))
        return false;
    }
  } while (!last);
  return opencl_ok(clFinish(plate->queue), "clFinish");
}

static bool
run(struct plate *plate, const struct options *options)
{
  struct saver saver = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .options = options};
  uint64_t first = plate->steps_done;
  struct timespec begin, end;
  double seconds;
  clb_stats stats;
  bool stepped, saved;
  int error;

  error = pthread_create(&saver.thread, NULL, saver_main, &saver);
  if (error != 0)
    return complain("pthread_create", strerror(error));
  clock_gettime(CLOCK_MONOTONIC, &begin);
  stepped = simulate(plate, options, &saver);
  saved = saver_finish(&saver);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (!stepped || !saved)
    return false;
  seconds = (double)(end.tv_sec - begin.tv_sec) +
            1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  clb_context_stats(plate->bytes, &stats, sizeof stats);
  printf("%zu x %zu cells, %" PRIu64 " steps in %.2f s; read %" PRIu64
         " bytes of the device, ",
         plate->shape[1], plate->shape[0], plate->steps_done - first, seconds,
         stats.bytes_read);
  if (stats.staging_peak == 0)
    puts("mapped in place, none pinned");
  else
    printf("at most %" PRIu64 " bytes pinned\n", stats.staging_peak);
  return true;
}

static void
usage(FILE *stream)
{
  fputs("Usage: heat [OPTION]...\n"
        "Steps a heat equation on an OpenCL device and saves checkpoints.\n"
        "\n"
        "  -x, --width=CELLS    cells of a row (default 512)\n"
        "  -y, --height=CELLS   rows (default 512)\n"
        "  -s, --steps=N        step to stop at (default 1000)\n"
        "  -e, --every=N        steps between checkpoints; 0, the default:\n"
        "                       one at the end\n"
        "  -o, --output=PREFIX  checkpoints are PREFIX-STEP.safetensors\n"
        "                       (default heat)\n"
        "  -d, --device=NAME    the first device whose platform's name, or\n"
        "                       own, has this part\n"
        "  -r, --restart=FILE   begin with this checkpoint\n"
        "      --durable        each checkpoint reaches the disk\n"
        "  -h, --help           print this\n"
        "\n"
        "Exit status: 0, or 1 if something failed, 2 if the command line is\n"
        "wrong, 3 if there is no such device.\n",
        stream);
}

static bool
parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
  char *end;

  errno = 0;
  *out = strtoull(text, &end, 10);
  return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' &&
         *out >= least && *out <= most;
}

/* False if the command line is wrong; what is wrong is said. */
static bool
parse_options(int argc, char **argv, struct options *options)
{
  static const struct option names[] = {
    {"width", required_argument, NULL, 'x'},
    {"height", required_argument, NULL, 'y'},
    {"steps", required_argument, NULL, 's'},
    {"every", required_argument, NULL, 'e'},
    {"output", required_argument, NULL, 'o'},
    {"device", required_argument, NULL, 'd'},
    {"restart", required_argument, NULL, 'r'},
    {"durable", no_argument, NULL, 'D'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};
  uint64_t number;
  int option;

  while ((option = getopt_long(argc, argv, "x:y:s:e:o:d:r:h", names, NULL)) !=
         -1) {
    bool size = option == 'x' || option == 'y';
    bool steps = option == 's' || option == 'e';

    if ((size && !parse_number(optarg, 1, MOST_CELLS_ACROSS, &number)) ||
        (steps && !parse_number(optarg, 0, UINT32_MAX, &number)))
      return complain(optarg, "no number, or out of range");
    switch (option) {
    case 'x': options->width = (size_t)number; break;
    case 'y': options->height = (size_t)number; break;
    case 's': options->steps = number; break;
    case 'e': options->every = number; break;
    case 'o': options->output = optarg; break;
    case 'd': options->device = optarg; break;
    case 'r': options->restart = optarg; break;
    case 'D': options->durable = 1; break;
    case 'h': usage(stdout); exit(EXIT_SUCCESS);
    default: return false;
    }
  }
  if (optind != argc)
    return complain(argv[optind], "an argument too many");
  if (options->restart != NULL && options->width + options->height != 0)
    return complain("--restart", "the checkpoint says the size");
  return true;
}

int
main(int argc, char **argv)
{
  struct options options = {.steps = 1000, .output = "heat", .device = ""};
  struct plate plate = {0};
  bool done;

  if (!parse_options(argc, argv, &options)) {
    usage(stderr);
    return EXIT_USAGE;
  }
  if (options.width == 0)
    options.width = 512;
  if (options.height == 0)
    options.height = 512;
  if (!find_device(options.device, &plate.device))
    return EXIT_NO_DEVICE;
  done = prepare(&plate, &options) && run(&plate, &options);
  close_plate(&plate);
  if (fflush(stdout) != 0) {
    perror("heat: stdout");
    done = false;
  }
  return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
