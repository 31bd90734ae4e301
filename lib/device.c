/*
 * device.c - what a device can do and what that costs, asked once a context.
 */
#include "config.h"

#include "context.h"

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
    .command_us = 25, .link_gbs = 10, .row_ns = 20, .pick_ns = 4,
    .pick_gbs = 8};
static const clb__facts separate_memory_facts = {
    .command_us = 5, .link_gbs = 25, .row_ns = 1.5, .pick_ns = 4,
    .pick_gbs = 8};

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

static clb_status probe(clb_context *context, clb__facts *facts) {
  cl_bool unified = CL_FALSE;
  cl_ulong largest = 0;
  clb__error before;
  cl_mem mem;
  cl_int err;

  err = clGetDeviceInfo(context->device, CL_DEVICE_HOST_UNIFIED_MEMORY,
                        sizeof unified, &unified, NULL);
  if (err == CL_SUCCESS)
    err = clGetDeviceInfo(context->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                          sizeof largest, &largest, NULL);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetDeviceInfo");
  *facts = unified ? shared_memory_facts : separate_memory_facts;
  facts->asked = context->plans;
  /* The pack kernels' place: the bit is not set until there are some. */
  facts->plans =
      context->plans & (CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER);
  if (!unified || !(context->plans & CLB_PLAN_MAP))
    return CLB_OK;

  /* A device that cannot be tried is one that does not map in place. */
  mem = clCreateBuffer(context->cl, CL_MEM_READ_WRITE,
                       largest < LARGE_MAP ? (size_t)largest : LARGE_MAP, NULL,
                       &err);
  if (err == CL_SUCCESS) {
    clb__error_keep(&before);
    if (maps_in_place(context, mem,
                      largest < LARGE_MAP ? (size_t)largest : LARGE_MAP))
      facts->plans |= CLB_PLAN_MAP;
    else
      clb__error_put_back(&before);
    (void)clReleaseMemObject(mem);
  }
  return CLB_OK;
}

clb_status clb__device_facts(clb_context *context, clb__facts *facts) {
  clb_status status = CLB_OK;

  pthread_mutex_lock(&context->probe_lock);
  if (!context->probed) {
    status = probe(context, &context->facts);
    context->probed = status == CLB_OK;
  }
  if (status == CLB_OK)
    *facts = context->facts;
  pthread_mutex_unlock(&context->probe_lock);
  return status;
}
