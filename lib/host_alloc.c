/*
 * host_alloc.c - pinned memory of the caller's.
 */
#include "config.h"

#include "context.h"

#include <stdlib.h>

struct clb__pinned {
  clb__pinned *next;
  cl_mem mem;
  void *data;
  size_t length;
  clb__parked *unmap; /* what freeing needs */
};

clb_status clb_host_alloc(clb_context *context, size_t length, void **out) {
  clb__pinned *pinned;
  clb_status status = CLB_OK;
  cl_int err;

  if (context == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_host_alloc: %s is NULL",
                     context == NULL ? "context" : "out");
  if (length == 0)
    length = 1;
  pinned = calloc(1, sizeof *pinned);
  if (pinned == NULL || (pinned->unmap = calloc(1, sizeof *pinned->unmap)) == NULL) {
    free(pinned);
    return clb__fail(CLB_OUT_OF_MEMORY, "pinned memory: no memory");
  }
  pinned->length = length;
  pinned->mem =
      clCreateBuffer(context->cl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                     length, NULL, &err);
  if (err != CL_SUCCESS) {
    pinned->mem = NULL;
    (void)clb__fail_cl(err, "clCreateBuffer");
    status = clb__fail_prefix(CLB_OUT_OF_MEMORY, "pinned memory of %zu bytes",
                              length);
  }
  if (status == CLB_OK)
    status = clb__map(context, pinned->mem, CL_MAP_READ | CL_MAP_WRITE, 0,
                      length, &pinned->data);
  if (status != CLB_OK) {
    if (pinned->mem != NULL)
      (void)clReleaseMemObject(pinned->mem);
    free(pinned->unmap);
    free(pinned);
    return status;
  }
  clb_context_retain(context); /* until it is freed */
  pthread_mutex_lock(&context->lock);
  pinned->next = context->pinned;
  context->pinned = pinned;
  pthread_mutex_unlock(&context->lock);
  *out = pinned->data;
  return CLB_OK;
}

void clb_host_free(clb_context *context, void *data) {
  clb__pinned **link, *pinned;
  cl_event event;

  if (context == NULL || data == NULL)
    return;
  pthread_mutex_lock(&context->lock);
  for (link = &context->pinned; *link != NULL && (*link)->data != data;)
    link = &(*link)->next;
  pinned = *link;
  if (pinned != NULL)
    *link = pinned->next;
  pthread_mutex_unlock(&context->lock);
  if (pinned == NULL)
    return;
  if (clb__unmap(context, pinned->mem, data, &event) == CL_SUCCESS) {
    (void)clFlush(context->queue);
    pinned->unmap->event = event;
  }
  pinned->unmap->mem[0] = pinned->mem;
  clb__park(context, pinned->unmap);
  free(pinned);
  clb_context_release(context);
}

bool clb__host_is_pinned(clb_context *context, const void *data,
                         size_t length) {
  uintptr_t at = (uintptr_t)data;
  const clb__pinned *pinned;
  bool inside = false;

  pthread_mutex_lock(&context->lock);
  for (pinned = context->pinned; pinned != NULL && !inside;
       pinned = pinned->next) {
    uintptr_t first = (uintptr_t)pinned->data;
    inside = at >= first && at - first <= pinned->length &&
             length <= pinned->length - (at - first);
  }
  pthread_mutex_unlock(&context->lock);
  return inside;
}
