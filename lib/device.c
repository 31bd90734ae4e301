/*
 * device.c - what a device can do and what that costs, asked once a context.
 */
#include "config.h"

#include "kernels.h"

#include <float.h>
#include <time.h>

/* Mappings that are compared: if the large one takes no longer, mapping moves
 * no bytes.  At the speed of a link the large one is 150 us or more.  A busy
 * machine makes any one of them slow, so the best of many counts, unless the
 * first few are far apart. */
#define SMALL_MAP ((size_t)4096)
#define LARGE_MAP ((size_t)8 << 20)
#define MAP_TRIES 40
#define MAP_FEW 5
#define MAP_SLACK_NS 20000.0

/* For choosing between plans, measured on one device of each kind.  A CPU
 * driver's rect and read are copies by one core; a GPU's go over a bus, and a
 * command costs more than a row. */
static const clb__facts shared_memory_facts = {
    .command_us = 25, .link_gbs = 10, .row_ns = 10, .pick_ns = 2,
    .pick_gbs = 8, .pack_gbs = 4, .quick_bytes = (size_t)2 << 20};
static const clb__facts separate_memory_facts = {
    .command_us = 5, .link_gbs = 50, .row_ns = 1.2, .pick_ns = 4,
    .pick_gbs = 8, .pack_gbs = 300, .quick_bytes = (size_t)256 << 10};

/* A kernel is interpreted or run by the cores that a copy on the host has, too:
 * never the better way on a processor. */
#define PROCESSOR_PACK_GBS 0.05

/* Threads that make a pick faster by as much: memory is shared. */
#define MOST_PICKERS 6u

/* What building the kernels took on drivers here, and the smallest access that
 * waits for that: it takes milliseconds anyway. */
#define BUILD_US 300000.0
#define WORTH_BYTES ((size_t)16 << 20)

static double now_ns(void) {
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Maps and unmaps once; false if the driver refuses. */
static bool map_once(clb_context *context, cl_mem mem, size_t size,
                     void **address, double *ns) {
  double start = now_ns();
  cl_event event;
  bool ended;

  if (clb__map(context, mem, CL_MAP_READ, 0, size, address) != CLB_OK)
    return false;
  *ns = now_ns() - start;
  if (clb__unmap(context, mem, *address, &event) != CL_SUCCESS)
    return false;
  ended = clb__event_settle(event);
  (void)clReleaseEvent(event);
  return ended;
}

/* Whether two maps agree in address and time does not grow with size. */
static bool maps_in_place(clb_context *context, cl_mem mem, size_t large) {
  double small_ns = DBL_MAX, large_ns = DBL_MAX, ns;
  void *first, *address;
  int i;

  for (i = 0; i < MAP_TRIES; i++) {
    if (!map_once(context, mem, SMALL_MAP, &first, &ns))
      return false;
    small_ns = ns < small_ns ? ns : small_ns;
    if (!map_once(context, mem, large, &address, &ns) || address != first)
      return false;
    large_ns = ns < large_ns ? ns : large_ns;
    if (i >= 1 && large_ns <= 2 * small_ns + MAP_SLACK_NS)
      return true;
    if (i >= MAP_FEW && large_ns > 10 * (small_ns + MAP_SLACK_NS))
      return false;
  }
  return false;
}

/* What the device says of itself. */
typedef struct answers {
  cl_bool unified, compiles;
  cl_ulong largest; /* bytes of an allocation */
  cl_device_type type;
} answers;

static clb_status ask(const clb_context *context, answers *out) {
  const struct {
    cl_device_info name;
    size_t size;
    void *value;
  } questions[] = {
      {CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof out->unified, &out->unified},
      {CL_DEVICE_COMPILER_AVAILABLE, sizeof out->compiles, &out->compiles},
      {CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof out->largest, &out->largest},
      {CL_DEVICE_TYPE, sizeof out->type, &out->type}};
  unsigned i;

  for (i = 0; i < sizeof questions / sizeof *questions; i++) {
    cl_int err = clGetDeviceInfo(context->device, questions[i].name,
                                 questions[i].size, questions[i].value, NULL);
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clGetDeviceInfo");
  }
  return CLB_OK;
}

/* A device that cannot be tried is one that does not map in place. */
static bool can_map(clb_context *context, cl_ulong largest) {
  size_t size = largest < LARGE_MAP ? (size_t)largest : LARGE_MAP;
  clb__error before;
  cl_int err;
  cl_mem mem =
      clCreateBuffer(context->cl, CL_MEM_READ_WRITE, size, NULL, &err);
  bool can;

  if (err != CL_SUCCESS)
    return false;
  clb__error_keep(&before);
  can = maps_in_place(context, mem, size);
  if (!can)
    clb__error_put_back(&before);
  (void)clReleaseMemObject(mem);
  return can;
}

void clb__device_costs(const clb_context *context, clb__facts *facts) {
  const clb_costs *given = &context->costs;
  const struct {
    double given, *to;
  } figures[] = {{given->command_us, &facts->command_us},
                 {given->link_gbs, &facts->link_gbs},
                 {given->row_ns, &facts->row_ns},
                 {given->pick_ns, &facts->pick_ns},
                 {given->pick_gbs, &facts->pick_gbs},
                 {given->pack_gbs, &facts->pack_gbs}};
  unsigned i;

  for (i = 0; i < sizeof figures / sizeof *figures; i++)
    if (figures[i].given > 0)
      *figures[i].to = figures[i].given;
}

/* With guess, nothing is tried out: a processor is taken to map in place. */
static clb_status probe(clb_context *context, bool guess, clb__facts *facts) {
  answers is = {0};
  clb_status status = ask(context, &is);
  unsigned threads;

  if (status != CLB_OK)
    return status;
  *facts = is.unified ? shared_memory_facts : separate_memory_facts;
  context->processor = (is.type & CL_DEVICE_TYPE_CPU) != 0;
  if (context->processor)
    facts->pack_gbs = PROCESSOR_PACK_GBS;
  threads = context->copy_threads < MOST_PICKERS ? context->copy_threads
                                                 : MOST_PICKERS;
  facts->pick_ns /= threads;
  facts->pick_gbs *= threads;
  clb__device_costs(context, facts);
  facts->worth_bytes = WORTH_BYTES;
  facts->asked = context->plans;
  facts->plans = context->plans & ~(unsigned)CLB_PLAN_MAP;
  context->compiles = is.compiles;
  if (is.unified && context->plans & CLB_PLAN_MAP &&
      (guess ? context->processor : can_map(context, is.largest)))
    facts->plans |= CLB_PLAN_MAP;
  return CLB_OK;
}

/* What is left to pay for a build. */
static double build_us(clb_context *context, clb__direction direction,
                       bool wide) {
  double left = BUILD_US - clb__kernels_missed(context, direction, wide);

  if (!context->compiles)
    return -1;
  switch (clb__kernels_state(context, direction, wide)) {
  case CLB__BUILT:
    return 0;
  case CLB__REFUSED:
    return -1;
  default:
    return left > 1 ? left : 1;
  }
}

clb_status clb__device_facts(clb_context *context, clb__direction direction,
                             bool guess, clb__facts *facts) {
  clb_status status = CLB_OK;

  pthread_mutex_lock(&context->probe_lock);
  if (!context->probed && guess) {
    status = probe(context, true, facts);
  } else if (!context->probed) {
    status = probe(context, false, &context->facts);
    context->probed = status == CLB_OK;
  }
  if (status == CLB_OK && context->probed)
    *facts = context->facts;
  pthread_mutex_unlock(&context->probe_lock);
  if (status != CLB_OK || !(facts->plans & CLB_PLAN_PACK))
    return status;
  facts->build_us[0] = build_us(context, direction, false);
  facts->build_us[1] = build_us(context, direction, true);
  return CLB_OK;
}

void clb__device_measure(clb_context *context) {
  pthread_mutex_lock(&context->probe_lock);
  if (!context->probed)
    context->probed = probe(context, false, &context->facts) == CLB_OK;
  if (context->probed && !context->measured && context->far &&
      !context->processor) {
    clb__measure(context, &context->facts);
    clb__device_costs(context, &context->facts);
  }
  context->measured = context->probed;
  pthread_mutex_unlock(&context->probe_lock);
}
