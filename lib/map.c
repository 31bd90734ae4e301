/*
 * map.c - maps and unmaps buffers, one command at a time.
 *
 * PoCL 3.1 finds the mapping that an unmap is for by its address.  With two
 * mappings of one address it may take the one whose map command is still
 * queued, and the process crashes: so no unmap is enqueued while a map of ours
 * is on its way, in any context.  The lock is the process's, and guards nothing
 * but that order.
 */
#include "config.h"

#include "context.h"

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static clb_status wait_mapped(clb_context *context, cl_mem mem,
                              cl_event event) {
  cl_int end = CL_COMPLETE;
  clb_status status = clb__event_wait(event, &end);

  if (status != CLB_OK)
    clb__park_keep(context, mem, event);
  else if (end < CL_COMPLETE)
    status = clb__event_fail(end, "clEnqueueMapBuffer");
  (void)clReleaseEvent(event);
  return status;
}

clb_status clb__map(clb_context *context, cl_mem mem, cl_map_flags flags,
                    size_t first, size_t bytes, void **data) {
  clb_status status;
  cl_event event;
  void *mapped;
  cl_int err;

  pthread_mutex_lock(&one_at_a_time);
  mapped = clEnqueueMapBuffer(context->queue, mem, CL_FALSE, flags, first,
                              bytes, 0, NULL, &event, &err);
  status = err == CL_SUCCESS ? wait_mapped(context, mem, event)
                             : clb__fail_cl(err, "clEnqueueMapBuffer");
  pthread_mutex_unlock(&one_at_a_time);
  if (status == CLB_OK) {
    *data = mapped;
  } else if (err == CL_SUCCESS) { /* a mapping all the same, by the book */
    if (clb__unmap(context, mem, mapped, &event) == CL_SUCCESS) {
      clb__park_keep(context, mem, event);
      (void)clReleaseEvent(event);
    }
  }
  return status;
}

/* With the lock held, which is let go of. */
static cl_int unmap_now(clb_context *context, cl_mem mem, void *data,
                        cl_event *event) {
  cl_int err =
      clEnqueueUnmapMemObject(context->queue, mem, data, 0, NULL, event);

  pthread_mutex_unlock(&one_at_a_time);
  return err;
}

cl_int clb__unmap(clb_context *context, cl_mem mem, void *data,
                  cl_event *event) {
  pthread_mutex_lock(&one_at_a_time);
  return unmap_now(context, mem, data, event);
}

bool clb__try_unmap(clb_context *context, cl_mem mem, void *data,
                    cl_event *event, cl_int *err) {
  if (pthread_mutex_trylock(&one_at_a_time) != 0)
    return false;
  *err = unmap_now(context, mem, data, event);
  return true;
}
