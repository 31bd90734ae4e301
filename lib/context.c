/*
 * context.c - makes, counts and ends contexts; options, counters, log.
 */
#include "config.h"

#include "context.h"
#include "crew.h"
#include "kernels.h"
#include "options.h"
#include "pool.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Over a bus a chunk has to be long for the gaps between them not to count. */
#define NEAR_CHUNK ((size_t)4 << 20)
#define FAR_CHUNK ((size_t)16 << 20)
#define DEFAULT_BLOCKS 8
#define LEAST_CHUNK ((size_t)4096)
#define ALL_PLANS                                                              \
  (CLB_PLAN_MAP | CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_PACK |              \
   CLB_PLAN_GATHER)

static clb_status apply_costs(clb_context *context, const clb_costs *costs) {
  clb_costs *to = &context->costs;
  clb_status status = clb__options_read(costs, to, sizeof *to, "CLB_COSTS_INIT");
  const double figure[] = {to->command_us, to->link_gbs, to->row_ns,
                           to->pick_ns,    to->pick_gbs, to->pack_gbs};
  size_t i;

  for (i = 0; status == CLB_OK && i < sizeof figure / sizeof *figure; i++)
    if (!(figure[i] >= 0 && figure[i] <= DBL_MAX))
      return clb__fail(CLB_INVALID_ARGUMENT,
                       "options: costs has %g, which is no cost", figure[i]);
  return status;
}

static clb_status apply_options(clb_context *context,
                                const clb_context_options *options) {
  clb_context_options known = CLB_CONTEXT_OPTIONS_INIT;
  size_t chunk, limit;
  clb_status status = CLB_OK;

  if (options != NULL)
    status = clb__options_read(options, &known, sizeof known,
                               "CLB_CONTEXT_OPTIONS_INIT");
  if (status != CLB_OK)
    return status;
  if (known.plans & ~(unsigned)ALL_PLANS)
    return clb__fail(CLB_UNSUPPORTED, "options: unknown plans 0x%x",
                     known.plans & ~(unsigned)ALL_PLANS);
  chunk = known.chunk_size;
  limit = known.staging_limit;
  if (chunk == 0) {
    chunk = context->far ? FAR_CHUNK : NEAR_CHUNK;
    if (limit != 0 && limit / 4 < chunk)
      chunk = limit / 4 > LEAST_CHUNK ? limit / 4 : LEAST_CHUNK;
  }
  if (chunk < LEAST_CHUNK)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "options: chunk_size %zu is below %zu", chunk,
                     LEAST_CHUNK);
  if (limit == 0 && clb__mul_size(chunk, DEFAULT_BLOCKS, &limit))
    limit = chunk;
  if (limit < chunk)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "options: staging_limit %zu holds no chunk of %zu", limit,
                     chunk);
  context->chunk_size = chunk;
  context->staging_limit = limit;
  context->host_limit = known.host_limit;
  context->plans = known.plans == 0 ? ALL_PLANS : known.plans;
  context->copy_threads = clb__crew_size(); /* there are no more */
  if (known.copy_threads != 0 && known.copy_threads < context->copy_threads)
    context->copy_threads = known.copy_threads;
  context->log = known.log;
  context->log_user = known.log_user;
  return known.costs != NULL ? apply_costs(context, known.costs) : CLB_OK;
}

static bool debugs(const char *word) {
  const char *list = getenv("CLBYTES_DEBUG");
  size_t length = strlen(word);

  while (list != NULL && *list != '\0') {
    if (strncmp(list, word, length) == 0 &&
        (list[length] == ',' || list[length] == '\0'))
      return true;
    list = strchr(list, ',');
    list = list != NULL ? list + 1 : NULL;
  }
  return false;
}

static bool host_is_little(void) {
  const uint16_t one = 1;
  return *(const unsigned char *)&one == 1;
}

/* Asks the queue who it is, and keeps it. */
static clb_status adopt_queue(clb_context *context, cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  cl_bool little = CL_TRUE, unified = CL_TRUE;
  cl_uint bits = 0;
  cl_int err;

  err = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context->cl,
                              &context->cl, NULL);
  if (err == CL_INVALID_COMMAND_QUEUE) {
    (void)clb__fail_cl(err, "clGetCommandQueueInfo");
    return clb__fail_prefix(CLB_INVALID_ARGUMENT, "context: no command queue");
  }
  if (err == CL_SUCCESS)
    err = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof context->device,
                                &context->device, NULL);
  if (err == CL_SUCCESS)
    err = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties,
                                &properties, NULL);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetCommandQueueInfo");
  err = clGetDeviceInfo(context->device, CL_DEVICE_ENDIAN_LITTLE,
                        sizeof little, &little, NULL);
  if (err == CL_SUCCESS)
    err = clGetDeviceInfo(context->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN,
                          sizeof bits, &bits, NULL);
  if (err == CL_SUCCESS)
    err = clGetDeviceInfo(context->device, CL_DEVICE_HOST_UNIFIED_MEMORY,
                          sizeof unified, &unified, NULL);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetDeviceInfo");
  context->far = !unified;
  context->sub_alignment = bits < 8 ? 1 : bits / 8;
  context->out_of_order =
      (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  context->same_endian = (little == CL_TRUE) == host_is_little();

  err = clRetainCommandQueue(queue);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainCommandQueue");
  context->program = queue;
  err = clRetainContext(context->cl);
  if (err != CL_SUCCESS) {
    context->cl = NULL;
    return clb__fail_cl(err, "clRetainContext");
  }
  context->queue = clCreateCommandQueue(context->cl, context->device, 0, &err);
  if (err != CL_SUCCESS) {
    context->queue = NULL;
    return clb__fail_cl(err, "clCreateCommandQueue");
  }
  return CLB_OK;
}

static void let_go(clb_context *context) {
  clb__kernels_free(context->kernels);
  if (context->second != NULL)
    (void)clReleaseCommandQueue(context->second);
  if (context->queue != NULL)
    (void)clReleaseCommandQueue(context->queue);
  if (context->program != NULL) {
    (void)clReleaseCommandQueue(context->program);
    if (context->cl != NULL)
      (void)clReleaseContext(context->cl);
  }
  pthread_mutex_destroy(&context->span_lock);
  pthread_mutex_destroy(&context->probe_lock);
  pthread_mutex_destroy(&context->lock);
  free(context);
}

clb_status clb_context_create(cl_command_queue queue,
                              const clb_context_options *options,
                              clb_context **out) {
  clb_context *context;
  clb_status status;

  if (queue == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_context_create: %s is NULL",
                     queue == NULL ? "queue" : "out");
  context = calloc(1, sizeof *context);
  if (context == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "context: no memory");
  atomic_init(&context->refs, 1);
  pthread_mutex_init(&context->lock, NULL);
  pthread_mutex_init(&context->probe_lock, NULL);
  pthread_mutex_init(&context->span_lock, NULL);
  context->log_stderr = debugs("log");
  context->torn = debugs("torn");
  status = adopt_queue(context, queue);
  if (status == CLB_OK)
    status = apply_options(context, options);
  if (status != CLB_OK) {
    let_go(context);
    return status;
  }
  *out = context;
  return CLB_OK;
}

clb_context *clb_context_retain(clb_context *context) {
  if (context != NULL)
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
  return context;
}

size_t clb__context_drop(clb_context *context) {
  size_t left = clb__refs_left(&context->refs);

  if (left > 0)
    return left;
  if (context->pooled)
    clb__pool_leave();
  if (context->crewed)
    clb__crew_leave();
  clb__staging_end(context);
  clb__park_end(context);
  clb__markers_end(context);
  let_go(context);
  return 0;
}

void clb_context_release(clb_context *context) {
  size_t left = context != NULL ? clb__context_drop(context) : 0;

  /* The last of the program's: a compiler must not run on when the program
   * ends.  What the address was of may be gone. */
  if (left > 0)
    clb__kernels_end_aside(context, left);
}

void clb_context_trim(clb_context *context) {
  if (context == NULL)
    return;
  clb__staging_trim(context);
  clb__park_sweep(context);
}

void clb_context_stats(const clb_context *context, clb_stats *out,
                       size_t out_size) {
  clb_context *unlocked = (clb_context *)context;
  clb_stats stats = {0};

  if (out == NULL)
    return;
  if (context != NULL) {
    pthread_mutex_lock(&unlocked->lock);
    stats = context->stats;
    pthread_mutex_unlock(&unlocked->lock);
  }
  memset(out, 0, out_size);
  memcpy(out, &stats, out_size < sizeof stats ? out_size : sizeof stats);
}

unsigned clb__context_helpers(clb_context *context) {
  bool crewed;

  if (context->copy_threads <= 1)
    return 0;
  pthread_mutex_lock(&context->lock);
  if (!context->crewed && !context->uncrewed) {
    context->crewed = clb__crew_join();
    context->uncrewed = !context->crewed;
  }
  crewed = context->crewed;
  pthread_mutex_unlock(&context->lock);
  return crewed ? context->copy_threads - 1 : 0;
}

bool clb__context_pool(clb_context *context) {
  bool pooled;

  pthread_mutex_lock(&context->lock);
  if (!context->pooled)
    context->pooled = clb__pool_join() == CLB_OK;
  pooled = context->pooled;
  pthread_mutex_unlock(&context->lock);
  return pooled;
}

clb_status clb__context_lane(clb_context *context, unsigned lane,
                             cl_command_queue *queue) {
  cl_int err = CL_SUCCESS;

  *queue = context->queue;
  if (lane == 0)
    return CLB_OK;
  pthread_mutex_lock(&context->lock);
  if (context->second == NULL)
    context->second =
        clCreateCommandQueue(context->cl, context->device, 0, &err);
  if (err != CL_SUCCESS)
    context->second = NULL;
  else
    *queue = context->second;
  pthread_mutex_unlock(&context->lock);
  return err == CL_SUCCESS ? CLB_OK
                           : clb__fail_cl(err, "clCreateCommandQueue");
}

void clb__context_count(clb_context *context, unsigned kind, uint64_t payload,
                        uint64_t link) {
  clb_stats *stats = &context->stats;

  pthread_mutex_lock(&context->lock);
  stats->reads++;
  stats->bytes_read += payload;
  stats->link_bytes += link;
  stats->maps += kind == CLB_PLAN_MAP;
  stats->rects += kind == CLB_PLAN_RECT;
  stats->packs += kind == CLB_PLAN_PACK;
  stats->gathers += kind == CLB_PLAN_GATHER;
  pthread_mutex_unlock(&context->lock);
}

clb_status clb__context_hold(clb_context *context, size_t bytes) {
  clb_stats *stats = &context->stats;
  uint64_t held;
  bool fits;

  pthread_mutex_lock(&context->lock);
  held = stats->host_bytes;
  fits = context->host_limit == 0 ||
         (held <= context->host_limit && bytes <= context->host_limit - held);
  if (fits) {
    stats->host_bytes += bytes;
    if (stats->host_bytes > stats->host_peak)
      stats->host_peak = stats->host_bytes;
  }
  pthread_mutex_unlock(&context->lock);
  if (!fits)
    return clb__fail(CLB_OUT_OF_MEMORY,
                     "host_limit is %zu bytes, %llu are held and %zu more were "
                     "asked for",
                     context->host_limit, (unsigned long long)held, bytes);
  return CLB_OK;
}

void clb__context_unhold(clb_context *context, size_t bytes) {
  pthread_mutex_lock(&context->lock);
  context->stats.host_bytes -= bytes;
  pthread_mutex_unlock(&context->lock);
}

bool clb__context_logs(const clb_context *context) {
  return context->log != NULL || context->log_stderr;
}

void clb__context_log(clb_context *context, const char *line) {
  if (context->log_stderr)
    fprintf(stderr, "clbytes: %s\n", line);
  if (context->log != NULL)
    context->log(line, context->log_user);
}
