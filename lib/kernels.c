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
#define LONGEST_LINE 200 /* of the compiler's that a message has */

/* The lines of pack.cl; made by the build. */
static const char *lines[] = {
#include "kernels/pack.inc"
};

typedef struct built {
  clb__built state;
  cl_kernel kernel[2 * UNITS]; /* of any part, and of those that are turned */
  clb__error why;              /* it was refused */
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

/* The compiler's log, to be freed; NULL where there is none. */
static char *log_of(cl_program program, cl_device_id device) {
  size_t size = 0;
  char *log = NULL;

  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL,
                            &size) != CL_SUCCESS ||
      (log = calloc(1, size + 1)) == NULL)
    return NULL;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log,
                            NULL) == CL_SUCCESS)
    return log;
  free(log);
  return NULL;
}

/* The first line of the log that says something, after the call that failed. */
static clb_status refuse(cl_program program, cl_device_id device, cl_int err,
                         const char *call) {
  char *log = program != NULL ? log_of(program, device) : NULL;
  const char *line = log != NULL ? log + strspn(log, " \t\r\n") : "";
  size_t whole = strcspn(line, "\r\n");
  int length = whole < LONGEST_LINE ? (int)whole : LONGEST_LINE;

  (void)clb__fail_cl(err, call);
  (void)clb__fail_prefix(CLB_UNSUPPORTED, "pack: no kernel%s%.*s",
                         *line != '\0' ? ": " : "", length, line);
  free(log);
  return CLB_UNSUPPORTED;
}

static clb_status make_kernels(clb_context *context, cl_program program,
                               built *one) {
  static const char *const names[2 * UNITS] = {
      "unit_1", "unit_2", "unit_4", "unit_8", "unit_16",
      "turn_1", "turn_2", "turn_4", "turn_8", "turn_16"};
  unsigned i;

  for (i = 0; i < 2 * UNITS; i++) {
    cl_int err;
    one->kernel[i] = clCreateKernel(program, names[i], &err);
    if (err == CL_SUCCESS)
      continue;
    one->kernel[i] = NULL;
    while (i-- > 0) {
      (void)clReleaseKernel(one->kernel[i]);
      one->kernel[i] = NULL;
    }
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
    if (status != CLB_OK)
      clb__error_save(&one->why, status);
    set_state(context, one, status == CLB_OK ? CLB__BUILT : CLB__REFUSED);
  } else if (one->state == CLB__REFUSED) {
    status = clb__error_restore(&one->why);
  }
  pthread_mutex_unlock(&kernels->building);
  return status;
}

clb_status clb__kernels_why(clb_context *context, clb__direction direction,
                            bool wide, clb_status status) {
  /* What was written before the state was is not written again. */
  return clb__kernels_state(context, direction, wide) == CLB__REFUSED
             ? clb__error_restore(
                   &context->kernels->of[direction == CLB__PUT][wide].why)
             : status;
}

/* --- Aside ------------------------------------------------------------------ */

typedef struct build_job {
  clb__job job;
  struct build_job *next;
  clb_context *context; /* has a reference, unless it is */
  bool over;
  clb__direction direction;
  bool wide;
} build_job;

/* Jobs that are not through, of all contexts. */
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_through = PTHREAD_COND_INITIALIZER;
static build_job *jobs;
static atomic_size_t job_count;

/* With the lock held. */
static size_t jobs_of(const clb_context *context, bool all) {
  const build_job *one;
  size_t count = 0;

  for (one = jobs; one != NULL; one = one->next)
    count += one->context == context && (all || !one->over);
  return count;
}

static void add_job(build_job *one) {
  pthread_mutex_lock(&jobs_lock);
  one->next = jobs;
  jobs = one;
  atomic_fetch_add(&job_count, 1);
  pthread_mutex_unlock(&jobs_lock);
}

static void remove_job(build_job *one) {
  build_job **link = &jobs;

  pthread_mutex_lock(&jobs_lock);
  while (*link != one)
    link = &(*link)->next;
  *link = one->next;
  atomic_fetch_sub(&job_count, 1);
  pthread_cond_broadcast(&job_through);
  pthread_mutex_unlock(&jobs_lock);
}

void clb__kernels_end_aside(const clb_context *context, size_t left) {
  if (atomic_load(&job_count) == 0 || clb__pool_inside())
    return;
  pthread_mutex_lock(&jobs_lock);
  if (jobs_of(context, true) >= left)
    while (jobs_of(context, true) > 0)
      pthread_cond_wait(&job_through, &jobs_lock);
  pthread_mutex_unlock(&jobs_lock);
}

static bool is_ready(clb__job *job) {
  (void)job;
  return true;
}

/* By others than such jobs. */
static bool is_wanted(clb__job *job) {
  clb_context *context = ((build_job *)job)->context;
  bool wanted;

  pthread_mutex_lock(&jobs_lock);
  wanted = atomic_load(&context->refs) > jobs_of(context, false);
  pthread_mutex_unlock(&jobs_lock);
  return wanted;
}

static void run_build(clb__job *job) {
  build_job *one = (build_job *)job;

  if (is_wanted(job)) /* a failure is noted, and met again when it counts */
    (void)clb__kernels_build(one->context, one->direction, one->wide);
  pthread_mutex_lock(&jobs_lock);
  one->over = true;
  pthread_mutex_unlock(&jobs_lock);
  (void)clb__context_drop(one->context);
  remove_job(one);
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
  *one = (build_job){
      .job = {.ready = is_ready, .wanted = is_wanted, .run = run_build},
      .context = clb_context_retain(context),
      .direction = direction,
      .wide = wide};
  add_job(one);
  clb__pool_run(&one->job);
}

/* --- Running ---------------------------------------------------------------- */

static unsigned unit_index(unsigned unit) {
  unsigned i = 0;

  while (1u << i < unit)
    i++;
  return i;
}

/* Offsets in the width that the kernel was built for. */
static cl_int set_offsets(cl_kernel kernel, cl_uint index, bool wide,
                         const int64_t *values, unsigned count) {
  cl_int narrow[CLB__PACK_DIMS];
  unsigned i;

  if (wide)
    return clSetKernelArg(kernel, index, count * sizeof *values, values);
  for (i = 0; i < count; i++)
    narrow[i] = (cl_int)values[i];
  return clSetKernelArg(kernel, index, count * sizeof *narrow, narrow);
}

static cl_int set_shape(cl_kernel kernel, const clb__pack *pack) {
  cl_uint n[CLB__PACK_DIMS], c[CLB__PACK_DIMS];
  cl_uint units = pack->units, ndim = pack->ndim;
  cl_int err;
  unsigned i;

  for (i = 0; i < CLB__PACK_DIMS; i++) {
    n[i] = (cl_uint)pack->n[i];
    c[i] = (cl_uint)pack->c[i];
  }
  err = clSetKernelArg(kernel, 4, sizeof units, &units);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 5, sizeof ndim, &ndim);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 6, sizeof n, n);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 7, sizeof c, c);
  return err == CL_SUCCESS ? set_offsets(kernel, 8, pack->wide, pack->s,
                                        CLB__PACK_DIMS)
                           : err;
}

/* The first four arguments, which all kernels have. */
static cl_int set_buffers(cl_kernel kernel, cl_mem region, int64_t first,
                          cl_mem scratch, size_t at) {
  cl_long start = first;
  cl_ulong packed_at = at;
  cl_int err = clSetKernelArg(kernel, 0, sizeof region, &region);

  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 1, sizeof start, &start);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 2, sizeof scratch, &scratch);
  return err == CL_SUCCESS
             ? clSetKernelArg(kernel, 3, sizeof packed_at, &packed_at)
             : err;
}

/* Some drivers (Mesa's) hold a reference on what an argument was set to, for as
 * long as it is: the program's buffer must not live as long as the kernel. */
static void forget_buffers(cl_kernel kernel) {
  const cl_mem none = NULL;

  (void)clSetKernelArg(kernel, 0, sizeof none, &none);
  (void)clSetKernelArg(kernel, 2, sizeof none, &none);
}

/* --- Turned parts ----------------------------------------------------------- */

#define TILE_SIDE 32 /* as in pack.cl */
#define TILE_ROWS 8

static cl_int set_turn(cl_kernel kernel, const clb__turn *turn, bool wide) {
  cl_uint ndim = turn->ndim;
  cl_int err = clSetKernelArg(kernel, 4, sizeof turn->n0, &turn->n0);

  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 5, sizeof turn->nf, &turn->nf);
  if (err == CL_SUCCESS)
    err = set_offsets(kernel, 6, wide, &turn->s0, 1);
  if (err == CL_SUCCESS)
    err = set_offsets(kernel, 7, wide, &turn->sf, 1);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 8, sizeof turn->pf, &turn->pf);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 9, sizeof ndim, &ndim);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 10, sizeof turn->n, turn->n);
  if (err == CL_SUCCESS)
    err = set_offsets(kernel, 11, wide, turn->s, CLB__PACK_DIMS);
  if (err == CL_SUCCESS)
    err = clSetKernelArg(kernel, 12, sizeof turn->p, turn->p);
  return err;
}

/* With the lock of arguments held. */
static cl_int enqueue_turn(cl_kernel kernel, cl_command_queue queue,
                           const clb__pack *pack, const clb__turn *turn,
                           cl_mem region, cl_mem scratch, size_t at,
                           cl_event *event, const char **call) {
  const size_t local[3] = {TILE_SIDE, TILE_ROWS, 1};
  const size_t global[3] = {
      ((size_t)turn->n0 + TILE_SIDE - 1) / TILE_SIDE * TILE_SIDE,
      ((size_t)turn->nf + TILE_SIDE - 1) / TILE_SIDE * TILE_ROWS, turn->count};
  cl_int err = set_buffers(kernel, region, turn->first, scratch,
                           at / pack->unit);

  if (err == CL_SUCCESS)
    err = set_turn(kernel, turn, pack->wide);
  if (err != CL_SUCCESS)
    return err;
  *call = "clEnqueueNDRangeKernel";
  return clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL,
                                event);
}

/* --- Any part --------------------------------------------------------------- */

/* With the lock of arguments held. */
static cl_int enqueue_units(cl_kernel kernel, cl_command_queue queue,
                            const clb__pack *pack, cl_mem region,
                            cl_mem scratch, size_t at, cl_event *event,
                            const char **call) {
  size_t items = ((size_t)pack->units * pack->unit + 15) / 16;
  size_t global = (items + GROUP - 1) / GROUP * GROUP;
  cl_int err = set_buffers(kernel, region, pack->first, scratch, at / 16);

  if (err == CL_SUCCESS)
    err = set_shape(kernel, pack);
  if (err != CL_SUCCESS)
    return err;
  *call = "clEnqueueNDRangeKernel";
  return clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL,
                                event);
}

cl_int clb__kernels_enqueue(clb_context *context, cl_command_queue queue,
                            clb__direction direction, const clb__pack *pack,
                            cl_mem region, cl_mem scratch, size_t at,
                            cl_event *event, const char **call) {
  clb__kernels *kernels = find(context); /* there since the build */
  const built *of = &kernels->of[direction == CLB__PUT][pack->wide];
  unsigned unit = unit_index(pack->unit);
  clb__turn turn;
  bool turned = clb__pack_turn(pack, &turn);
  cl_kernel kernel = of->kernel[turned ? UNITS + unit : unit];
  cl_int err;

  pthread_mutex_lock(&kernels->arguments);
  *call = "clSetKernelArg";
  err = turned ? enqueue_turn(kernel, queue, pack, &turn, region, scratch, at,
                              event, call)
               : enqueue_units(kernel, queue, pack, region, scratch, at, event,
                               call);
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
      for (k = 0; k < 2 * UNITS; k++)
        if (kernels->of[i][j].kernel[k] != NULL)
          (void)clReleaseKernel(kernels->of[i][j].kernel[k]);
  pthread_mutex_destroy(&kernels->arguments);
  pthread_mutex_destroy(&kernels->building);
  free(kernels);
}
