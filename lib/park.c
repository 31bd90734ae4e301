/*
 * park.c - references that have to outlive a command of ours.
 *
 * Releasing a handle never waits, and some runtimes free a buffer that is
 * released while a command on it is in flight: the reference is kept here until
 * the command's event has ended.  The unmap of a mapping may have to be enqueued
 * later, too.
 */
#include "config.h"

#include "context.h"

#include <stdlib.h>

static void destroy(clb__parked *node) {
  size_t i;

  if (node->event != NULL)
    (void)clReleaseEvent(node->event);
  for (i = 0; i < sizeof node->mem / sizeof *node->mem; i++)
    if (node->mem[i] != NULL)
      (void)clReleaseMemObject(node->mem[i]);
  free(node);
}

/* The unmap is enqueued, or has failed: the mapping is no longer ours. */
static void unmapped(clb_context *context, clb__parked *node, cl_event event,
                     cl_int err) {
  node->mapped = NULL;
  if (err != CL_SUCCESS)
    return;
  node->event = event;
  (void)clFlush(context->queue);
}

static void try_unmap(clb_context *context, clb__parked *node) {
  cl_event event = NULL;
  cl_int err;

  if (node->mapped != NULL &&
      clb__try_unmap(context, node->mem[0], node->mapped, &event, &err))
    unmapped(context, node, event, err);
}

static void unmap(clb_context *context, clb__parked *node) {
  cl_event event = NULL;
  cl_int err;

  if (node->mapped == NULL)
    return;
  err = clb__unmap(context, node->mem[0], node->mapped, &event);
  unmapped(context, node, event, err);
}

void clb__park(clb_context *context, clb__parked *node) {
  try_unmap(context, node);
  pthread_mutex_lock(&context->lock);
  node->next = context->parked;
  context->parked = node;
  pthread_mutex_unlock(&context->lock);
}

void clb__park_unmap(clb_context *context, clb__parked *node) {
  unmap(context, node);
  clb__park(context, node);
}

void clb__park_keep(clb_context *context, cl_mem mem, cl_event event) {
  clb__parked *node = calloc(1, sizeof *node);

  if (node == NULL)
    return;
  if (clRetainMemObject(mem) == CL_SUCCESS)
    node->mem[0] = mem;
  if (clRetainEvent(event) == CL_SUCCESS)
    node->event = event;
  (void)clFlush(context->queue); /* which the wait for it did not */
  clb__park(context, node);
}

void clb__park_sweep(clb_context *context) {
  clb__parked *list, *next, *still = NULL, **end = &still;

  pthread_mutex_lock(&context->lock);
  list = context->parked;
  context->parked = NULL;
  pthread_mutex_unlock(&context->lock);
  for (; list != NULL; list = next) {
    next = list->next;
    list->next = NULL;
    try_unmap(context, list);
    if (list->mapped == NULL &&
        (list->event == NULL || clb__event_ended(list->event))) {
      destroy(list);
    } else {
      *end = list;
      end = &list->next;
    }
  }
  if (still == NULL)
    return;
  pthread_mutex_lock(&context->lock);
  *end = context->parked;
  context->parked = still;
  pthread_mutex_unlock(&context->lock);
}

void clb__park_end(clb_context *context) {
  clb__parked *node;

  while ((node = context->parked) != NULL) {
    context->parked = node->next;
    unmap(context, node);
    /* What cannot be known to have ended is left to the driver for good. */
    if (node->event == NULL || clb__event_settle(node->event))
      destroy(node);
    else
      free(node);
  }
}
