/*
 * kernels.c - builds and runs kernels/pack.cl.
 *
 * A kernel's arguments belong to nobody while they are set, so one lock is held
 * from the first of them until the kernel is enqueued.  Another is held while
 * building.
 */
#include "config.h"

#include "kernels.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#define UNITS 5 /* 1, 2, 4, 8, 16 bytes */
#define GROUP 64
#define LOG_SIZE 4096

/* The lines of pack.cl; made by the build. */
static const char *lines[] = {
#include "kernels/pack.inc"
};

typedef struct built {
  clb__built state;
  cl_kernel kernel[UNITS];
  double missed_us;
  bool aside; /* a job builds it, or did */
} built;

struct clb__kernels {
  pthread_mutex_t arguments, building;
  built of[2][2]; /* direction, wide */
};

static clb__kernels *find(clb_context *context) {
  clb__kernels *kernels;

  pthread_mutex_lock(&context->lock);
  if (context->kernels == NULL) {
    context->kernels = calloc(1, sizeof *context->kernels);
    if (context->kernels != NULL) {
      pthread_mutex_init(&context->kernels->arguments, NULL);
      pthread_mutex_init(&context->kernels->building, NULL);
    }
  }
  kernels = context->kernels;
  pthread_mutex_unlock(&context->lock);
  return kernels;
}

clb__built clb__kernels_state(clb_context *context, clb__direction direction,
                              bool wide) {
  clb__built state = CLB__UNBUILT;

  pthread_mutex_lock(&context->lock);
  if (context->kernels != NULL)
    state = context->kernels->of[direction == CLB__PUT][wide].state;
  pthread_mutex_unlock(&context->lock);
  return state;
}

static void set_state(clb_context *context, built *one, clb__built state) {
  pthread_mutex_lock(&context->lock);
  one->state = state;
  pthread_mutex_unlock(&context->lock);
}

void clb__kernels_miss(clb_context *context, clb__direction direction,
                       bool wide, double us) {
  clb__kernels *kernels = find(context);

  if (kernels == NULL)
    return;
  pthread_mutex_lock(&context->lock);
  kernels->of[direction == CLB__PUT][wide].missed_us += us;
  pthread_mutex_unlock(&context->lock);
}

double clb__kernels_missed(clb_context *context, clb__direction direction,
                           bool wide) {
  double us = 0;

  pthread_mutex_lock(&context->lock);
  if (context->kernels != NULL)
    us = context->kernels->of[direction == CLB__PUT][wide].missed_us;
  pthread_mutex_unlock(&context->lock);
  return us;
}

/* The first line of the compiler's log, after the call that failed. */
static clb_status refuse(cl_program program, cl_device_id device, cl_int err,
                         const char *call) {
  char log[LOG_SIZE] = "";

  (void)clb__fail_cl(err, call);
  if (program != NULL)
    (void)clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG,
                                sizeof log - 1, log, NULL);
  log[strcspn(log, "\r\n")] = '\0';
  return clb__fail_prefix(CLB_UNSUPPORTED, "pack: no kernel%s%.200s",
                          log[0] != '\0' ? ": " : "", log);
}

static clb_status make_kernels(clb_context *context, cl_program program,
                               built *one) {
  static const char *const names[UNITS] = {"unit_1", "unit_2", "unit_4",
                                           "unit_8", "unit_16"};
  unsigned i;

  for (i = 0; i < UNITS; i++) {
    cl_int err;
    one->kernel[i] = clCreateKernel(program, names[i], &err);
    if (err == CL_SUCCESS)
      continue;
    one->kernel[i] = NULL;
    while (i-- > 0)
      (void)clReleaseKernel(one->kernel[i]);
    return refuse(NULL, context->device, err, "clCreateKernel");
  }
  return CLB_OK;
}

static clb_status build(clb_context *context, built *one, bool put,
                        bool wide) {
  char options[64] = "-cl-std=CL1.2";
  const char *call = "clCreateProgramWithSource";
  cl_program program;
  clb_status status;
  cl_int err;

  program = clCreateProgramWithSource(
      context->cl, (cl_uint)(sizeof lines / sizeof *lines), lines, NULL, &err);
  if (err != CL_SUCCESS)
    return refuse(NULL, context->device, err, call);
  if (put)
    strcat(options, " -DTO_REGION");
  if (wide)
    strcat(options, " -DWIDE");
  call = "clBuildProgram";
  err = clBuildProgram(program, 1, &context->device, options, NULL, NULL);
  status = err == CL_SUCCESS ? make_kernels(context, program, one)
                             : refuse(program, context->device, err, call);
  (void)clReleaseProgram(program); /* its kernels hold it */
  return status;
}

clb_status clb__kernels_build(clb_context *context, clb__direction direction,
                              bool wide) {
  clb__kernels *kernels = find(context);
  bool put = direction == CLB__PUT;
  clb_status status = CLB_OK;
  built *one;

  if (kernels == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "pack: no memory");
  one = &kernels->of[put][wide];
  pthread_mutex_lock(&kernels->building);
  if (one->state == CLB__UNBUILT) {
    status = build(context, one, put, wide);
    set_state(context, one, status == CLB_OK ? CLB__BUILT : CLB__REFUSED);
  } else if (one->state == CLB__REFUSED) {
    status = clb__fail(CLB_UNSUPPORTED,
                       "pack: the kernel could not be built before");
  }
  pthread_mutex_unlock(&kernels->building);
  return status;
}

/* --- Aside ------------------------------------------------------------------ */

typedef struct build_job {
  clb__job job;
  clb_context *context;
  clb__direction direction;
  bool wide;
} build_job;

static bool is_ready(clb__job *job) {
  (void)job;
  return true;
}

static bool is_wanted(clb__job *job) {
  return atomic_load(&((build_job *)job)->context->refs) != 1;
}

static void run_build(clb__job *job) {
  build_job *one = (build_job *)job;

  if (is_wanted(job)) /* a failure is noted, and met again when it counts */
    (void)clb__kernels_build(one->context, one->direction, one->wide);
  clb_context_release(one->context);
  free(one);
}

void clb__kernels_build_aside(clb_context *context, clb__direction direction,
                              bool wide) {
  clb__kernels *kernels = find(context);
  build_job *one = calloc(1, sizeof *one);
  bool mine = false;

  if (kernels != NULL && one != NULL && clb__context_pool(context)) {
    built *it = &kernels->of[direction == CLB__PUT][wide];
    pthread_mutex_lock(&context->lock);
    mine = it->state == CLB__UNBUILT && !it->aside;
    it->aside = true;
    pthread_mutex_unlock(&context->lock);
  }
  if (!mine) {
    free(one);
    return;
  }
  *one = (build_job){{.ready = is_ready, .wanted = is_wanted, .run = run_build},
                     clb_context_retain(context), direction, wide};
  clb__pool_run(&one->job);
}

/* --- Running ---------------------------------------------------------------- */

static unsigned unit_index(unsigned unit) {
  unsigned i = 0;

  while (1u << i < unit)
    i++;
  return i;
}

/* The three vectors; the strides in the width that the kernel was built for. */
static cl_int set_shape(cl_kernel kernel, const clb__pack *pack) {
  cl_uint n[CLB__PACK_DIMS], c[CLB__PACK_DIMS];
  cl_int s[CLB__PACK_DIMS], err;
  unsigned i;

  for (i = 0; i < CLB__PACK_DIMS; i++) {
    n[i] = (cl_uint)pack->n[i];
    c[i] = (cl_uint)pack->c[i];
    s[i] = (cl_int)pack->s[i]; /* of a wide one it is not used */
  }
  err = clSetKernelArg(kernel, 6, sizeof n, n);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 7, sizeof c, c);
  if (err == CL_SUCCESS)
    err = pack->wide ? clSetKernelArg(kernel, 8, sizeof pack->s, pack->s)
                     : clSetKernelArg(kernel, 8, sizeof s, s);
  return err;
}

static cl_int set_arguments(cl_kernel kernel, const clb__pack *pack,
                            cl_mem region, cl_mem scratch, size_t at) {
  cl_long first = pack->first;
  cl_ulong packed_at = at / 16;
  cl_uint units = pack->units, ndim = pack->ndim;
  const struct {
    size_t size;
    const void *value;
  } arguments[] = {{sizeof region, &region},       {sizeof first, &first},
                   {sizeof scratch, &scratch},     {sizeof packed_at, &packed_at},
                   {sizeof units, &units},         {sizeof ndim, &ndim}};
  cl_int err = CL_SUCCESS;
  cl_uint i;

  for (i = 0; i < sizeof arguments / sizeof *arguments && err == CL_SUCCESS;
       i++)
    err = clSetKernelArg(kernel, i, arguments[i].size, arguments[i].value);
  return err == CL_SUCCESS ? set_shape(kernel, pack) : err;
}

/* Some drivers (Mesa's) hold a reference on what an argument was set to, for as
 * long as it is: the program's buffer must not live as long as the kernel. */
static void forget_buffers(cl_kernel kernel) {
  const cl_mem none = NULL;

  (void)clSetKernelArg(kernel, 0, sizeof none, &none);
  (void)clSetKernelArg(kernel, 2, sizeof none, &none);
}

cl_int clb__kernels_enqueue(clb_context *context, cl_command_queue queue,
                            clb__direction direction, const clb__pack *pack,
                            cl_mem region, cl_mem scratch, size_t at,
                            cl_event *event) {
  clb__kernels *kernels = find(context); /* there since the build */
  cl_kernel kernel = kernels->of[direction == CLB__PUT][pack->wide]
                         .kernel[unit_index(pack->unit)];
  size_t items = ((size_t)pack->units * pack->unit + 15) / 16;
  size_t global = (items + GROUP - 1) / GROUP * GROUP;
  cl_int err;

  pthread_mutex_lock(&kernels->arguments);
  err = set_arguments(kernel, pack, region, scratch, at);
  if (err == CL_SUCCESS)
    err = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0,
                                 NULL, event);
  forget_buffers(kernel);
  pthread_mutex_unlock(&kernels->arguments);
  return err;
}

void clb__kernels_free(clb__kernels *kernels) {
  unsigned i, j, k;

  if (kernels == NULL)
    return;
  for (i = 0; i < 2; i++)
    for (j = 0; j < 2; j++)
      for (k = 0; k < UNITS; k++)
        if (kernels->of[i][j].kernel[k] != NULL)
          (void)clReleaseKernel(kernels->of[i][j].kernel[k]);
  pthread_mutex_destroy(&kernels->arguments);
  pthread_mutex_destroy(&kernels->building);
  free(kernels);
}
