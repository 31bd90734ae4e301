/*
 * source_device.c - contents in an OpenCL buffer.
 *
 * Transfers address the root buffer with an offset, on the library's own
 * in-order queue, with no wait list; what the program enqueued before is waited
 * for by the host in open.  How a move becomes commands is in device_start.c,
 * the choice of a plan in choose.c; making, snapshots and CLB_MAP are in
 * device_buffer.c.
 */
#include "config.h"

#include "device_source.h"

#define LARGE_CHUNK ((size_t)64 << 20)

static clb_context *context_of(const clb__port *port) {
  return port->source->u.device.context;
}

static clb_status device_retain(const clb__source *source) {
  cl_int err = clRetainMemObject(source->u.device.mem);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainMemObject");
  clb_context_retain(source->u.device.context);
  clb__events_retain(source->u.device.after);
  return CLB_OK;
}

static void device_release(clb__source *source) {
  clb__events_release(source->u.device.after);
  if (source->u.device.mem != NULL)
    (void)clReleaseMemObject(source->u.device.mem);
  clb_context_release(source->u.device.context);
}

static pthread_mutex_t *device_lock(const clb__source *source) {
  return &source->u.device.context->lock;
}

static bool *device_pooled(const clb__source *source) {
  return &source->u.device.context->pooled;
}

static clb_status device_facts(const clb__source *source,
                               clb__direction direction, bool guess,
                               clb__facts *facts) {
  clb_context *context = source->u.device.context;
  clb_status status = clb__device_facts(context, direction, guess, facts);

  if (status != CLB_OK)
    return status;
  facts->pack_beside = !clb__kernel_may(source, direction);
  /* A small access would wait for a large block to be made. */
  if (direction == CLB__PUT || context->out_of_order ||
      context->chunk_size > LARGE_CHUNK ||
      source->u.device.after != NULL || !clb__host_may(source, direction))
    facts->quick_bytes = 0;
  if (!clb__host_may(source, direction))
    facts->command_us *= 2; /* through scratch */
  /* A put maps for reading too: what is between the elements has to stay. */
  if (!clb__host_may(source, CLB__GET) || !clb__host_may(source, direction))
    facts->plans &= ~(unsigned)CLB_PLAN_MAP;
  return CLB_OK;
}

static clb_status device_order(clb__port *port) {
  const clb__source *source = port->source;
  clb_status status;
  cl_int err = clGetMemObjectInfo(source->u.device.mem, CL_MEM_SIZE,
                                  sizeof port->size, &port->size, NULL);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetMemObjectInfo");
  clb__park_sweep(context_of(port));
  port->marker = NULL;
  if (port->quick || port->passed)
    return CLB_OK;
  status = source->u.device.after != NULL
               ? clb__events_flush(source->u.device.after)
               : clb__queue_mark(context_of(port), &port->marker);
  port->ordered = status == CLB_OK;
  return status;
}

static void device_drop(clb__port *port) {
  if (port->marker != NULL)
    (void)clReleaseEvent(port->marker);
  port->marker = NULL;
  port->ordered = false;
}

static bool device_ready(const clb__port *port) {
  return port->marker != NULL
             ? clb__event_ready(port->marker)
             : clb__events_ready(port->source->u.device.after);
}

static clb_status device_await(clb__port *port) {
  cl_event marker = port->marker;

  port->marker = NULL;
  port->ordered = false;
  if (port->quick || port->passed)
    return CLB_OK;
  if (port->watching)
    return marker != NULL ? clb__marker_watch(context_of(port), marker)
                          : clb__events_watch(port->source->u.device.after);
  return marker != NULL ? clb__marker_wait(context_of(port), marker)
                        : clb__events_wait(port->source->u.device.after);
}

static clb_status device_close(clb__port *port) {
  (void)port;
  return CLB_OK;
}

static clb__block *device_take(clb__port *port, bool bare, bool must) {
  if (bare)
    return clb__block_bare(context_of(port)->chunk_size);
  return clb__staging_take(context_of(port), must);
}

static void device_give(clb__port *port, clb__block *block) {
  /* Ours is an in-order queue: the last one ends last. */
  if (block->events > 0)
    clb__park_keep(context_of(port), port->source->u.device.mem,
                   block->event[block->events - 1]);
  clb__staging_give(context_of(port), block);
}

static clb_status device_flush(clb__port *port, clb__block *block) {
  clb_context *context = context_of(port);
  clb_status status = CLB_OK;

  if (port->quick)
    return clb__flush(context->program);
  if (block->lane != 0 && context->second != NULL)
    status = clb__flush(context->second);
  return status == CLB_OK ? clb__flush(context->queue) : status;
}

/* Memory of clb_host_alloc().  A processor could reach any; but a command that
 * nobody can wait for any more may end when other memory is gone. */
static bool device_reaches(const clb__port *port, const void *memory,
                           size_t length) {
  return clb__host_may(port->source, port->direction) &&
         clb__host_is_pinned(context_of(port), memory, length);
}

static unsigned device_helpers(const clb__port *port) {
  return clb__context_helpers(context_of(port));
}

static clb_status device_wait(clb__port *port, clb__block *block) {
  (void)port;
  return clb__staging_wait(block);
}

static clb_status device_map(clb__port *port, uint64_t first, size_t bytes,
                             unsigned char **data) {
  cl_map_flags flags =
      port->direction == CLB__GET ? CL_MAP_READ : CL_MAP_READ | CL_MAP_WRITE;
  void *mapped;
  clb_status status = clb__map(context_of(port), port->source->u.device.mem,
                               flags, (size_t)first, bytes, &mapped);

  if (status == CLB_OK)
    *data = port->mapped = mapped;
  return status;
}

static clb_status device_unmap(clb__port *port) {
  clb_status status;
  cl_event event;
  cl_int end = CL_COMPLETE;
  cl_int err = clb__unmap(context_of(port), port->source->u.device.mem,
                          port->mapped, &event);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clEnqueueUnmapMemObject");
  status = clb__event_wait(event, &end);
  if (status != CLB_OK)
    clb__park_keep(context_of(port), port->source->u.device.mem, event);
  else if (end < CL_COMPLETE)
    status = clb__event_fail(end, "clEnqueueUnmapMemObject");
  (void)clReleaseEvent(event);
  return status;
}

const clb__source_ops clb__device_ops = {
    .retain = device_retain,
    .release = device_release,
    .lock = device_lock,
    .pooled = device_pooled,
    .facts = device_facts,
    .order = device_order,
    .await = device_await,
    .ready = device_ready,
    .drop = device_drop,
    .close = device_close,
    .take = device_take,
    .give = device_give,
    .start = clb__device_start,
    .flush = device_flush,
    .wait = device_wait,
    .reaches = device_reaches,
    .helpers = device_helpers,
    .map = device_map,
    .unmap = device_unmap,
};
