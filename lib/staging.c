/*
 * staging.c - the ring of pinned blocks that transfers land in.
 *
 * Blocks are made at need, mapped once, and reused; making one costs more than
 * moving what fits in it.  Nobody waits for a block: where none is free a
 * transfer that holds none gets a pageable one.
 */
#include "config.h"

#include "context.h"

#include <stdlib.h>

/* Host pointers not aligned to this were seen to cost ten times. */
#define PAGEABLE_ALIGNMENT 4096

clb__block *clb__block_make(size_t size) {
  clb__block *block = calloc(1, sizeof *block);
  void *data;

  if (block != NULL && posix_memalign(&data, PAGEABLE_ALIGNMENT, size) == 0) {
    block->size = size;
    block->data = data;
    return block;
  }
  free(block);
  (void)clb__fail(CLB_OUT_OF_MEMORY, "no memory for a block of %zu bytes",
                  size);
  return NULL;
}

clb__block *clb__block_bare(size_t size) {
  clb__block *block = calloc(1, sizeof *block);

  if (block == NULL)
    (void)clb__fail(CLB_OUT_OF_MEMORY, "no memory for events");
  else
    block->size = size;
  return block;
}

void clb__block_free(clb__block *block) {
  if (block == NULL)
    return;
  if (block->scratch != NULL)
    (void)clReleaseMemObject(block->scratch);
  if (block->beside != NULL)
    (void)clReleaseMemObject(block->beside);
  free(block->data);
  free(block);
}

/* Gives the memory of a pinned block back; its events have ended.  The queue
 * may have other transfers before the unmap: it is not waited for. */
static void destroy(clb_context *context, clb__block *block) {
  clb__parked *node = calloc(1, sizeof *node);
  cl_event event = NULL;

  if (block->data != NULL &&
      clb__unmap(context, block->pinned, block->data, &event) == CL_SUCCESS)
    (void)clFlush(context->queue);
  if (node != NULL) {
    node->event = event;
    node->mem[0] = block->pinned;
    clb__park(context, node);
  } else {
    if (event != NULL) {
      (void)clb__event_settle(event);
      (void)clReleaseEvent(event);
    }
    (void)clReleaseMemObject(block->pinned);
  }
  block->data = NULL;
  clb__block_free(block);
}

/* NULL where the driver refuses pinned memory; the last error stays as it is,
 * since the transfer goes on without. */
static clb__block *make_pinned(clb_context *context) {
  clb__block *block = calloc(1, sizeof *block);
  clb__error before;
  void *data;
  cl_int err;

  if (block == NULL)
    return NULL;
  block->size = context->chunk_size;
  block->pinned =
      clCreateBuffer(context->cl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                     block->size, NULL, &err);
  if (err != CL_SUCCESS) {
    free(block);
    return NULL;
  }
  clb__error_keep(&before);
  if (clb__map(context, block->pinned, CL_MAP_READ | CL_MAP_WRITE, 0,
               block->size, &data) == CLB_OK) {
    block->data = data;
    return block;
  }
  clb__error_put_back(&before);
  destroy(context, block);
  return NULL;
}

static bool all_ended(clb__block *block) {
  while (block->events > 0 &&
         clb__event_ended(block->event[block->events - 1]))
    (void)clReleaseEvent(block->event[--block->events]);
  return block->events == 0;
}

/* Takes those out of the list of blocks aside that are in flight no more. */
static void sweep_aside(clb_context *context) {
  clb__block *aside, *next, *still = NULL, *free_now = NULL;

  pthread_mutex_lock(&context->lock);
  aside = context->aside;
  context->aside = NULL;
  pthread_mutex_unlock(&context->lock);
  if (aside == NULL)
    return;
  for (; aside != NULL; aside = next) {
    clb__block **list = all_ended(aside) ? &free_now : &still;
    next = aside->next;
    aside->next = *list;
    *list = aside;
  }
  for (; free_now != NULL; free_now = next) {
    next = free_now->next;
    clb__staging_give(context, free_now);
  }
  for (; still != NULL; still = next) {
    next = still->next;
    clb__staging_give(context, still);
  }
}

clb__block *clb__staging_take(clb_context *context, bool must) {
  clb_stats *stats = &context->stats;
  clb__block *block;
  bool room = false;

  sweep_aside(context);
  pthread_mutex_lock(&context->lock);
  block = context->idle;
  if (block != NULL) {
    context->idle = block->next;
  } else if (context->chunk_size <=
             context->staging_limit - stats->staging_bytes) {
    /* Reserved first, so that two threads do not pass the limit. */
    room = true;
    stats->staging_bytes += context->chunk_size;
  }
  pthread_mutex_unlock(&context->lock);
  if (block != NULL)
    return block;
  if (room) {
    block = make_pinned(context);
    pthread_mutex_lock(&context->lock);
    if (block == NULL)
      stats->staging_bytes -= context->chunk_size;
    else if (stats->staging_bytes > stats->staging_peak)
      stats->staging_peak = stats->staging_bytes;
    pthread_mutex_unlock(&context->lock);
  }
  return block == NULL && must
             ? clb__staging_pageable(context, context->chunk_size)
             : block;
}

clb__block *clb__staging_pageable(clb_context *context, size_t size) {
  clb__block *block = clb__block_make(size);

  if (block != NULL && context != NULL) {
    pthread_mutex_lock(&context->lock);
    context->stats.pageable_blocks++;
    pthread_mutex_unlock(&context->lock);
  }
  return block;
}

void clb__staging_give(clb_context *context, clb__block *block) {
  if (block == NULL)
    return;
  if (block->events == 0 && block->pinned == NULL) {
    clb__block_free(block);
    return;
  }
  pthread_mutex_lock(&context->lock);
  if (block->events > 0) {
    block->next = context->aside;
    context->aside = block;
  } else {
    block->next = context->idle;
    context->idle = block;
  }
  pthread_mutex_unlock(&context->lock);
}

clb_status clb__staging_scratch(clb_context *context, clb__block *block) {
  cl_int err;

  if (block->scratch != NULL)
    return CLB_OK;
  /* What a kernel packs ends at a multiple of 16. */
  block->scratch = clCreateBuffer(context->cl, CL_MEM_READ_WRITE,
                                  (block->size + 15) / 16 * 16, NULL, &err);
  if (err == CL_SUCCESS)
    return CLB_OK;
  block->scratch = NULL;
  return clb__fail_cl(err, "clCreateBuffer");
}

clb_status clb__staging_beside(clb_context *context, clb__block *block,
                               size_t bytes) {
  cl_int err;

  if (block->beside != NULL && block->beside_size >= bytes)
    return CLB_OK;
  /* A block has one move that needs it, so nothing in flight does. */
  if (block->beside != NULL)
    (void)clReleaseMemObject(block->beside);
  block->beside =
      clCreateBuffer(context->cl, CL_MEM_READ_WRITE, bytes, NULL, &err);
  if (err != CL_SUCCESS) {
    block->beside = NULL;
    (void)clb__fail_cl(err, "clCreateBuffer");
    return clb__fail_prefix(CLB_OUT_OF_MEMORY, "a copy of %zu bytes", bytes);
  }
  block->beside_size = bytes;
  return CLB_OK;
}

clb_status clb__staging_wait_first(clb__block *block, unsigned count,
                                   unsigned *failed) {
  clb_status status = CLB_OK;
  unsigned i, unseen = 0;

  for (i = 0; i < count; i++) {
    cl_event event = block->event[i];
    clb__error cause;
    cl_int end = CL_COMPLETE;
    clb_status seen;

    clb__error_save(&cause, status);
    seen = clb__event_wait(event, &end);
    if (seen != CLB_OK)
      block->event[unseen++] = event;
    else
      (void)clReleaseEvent(event);
    if (status != CLB_OK) {
      (void)clb__error_restore(&cause);
      continue;
    }
    if (seen != CLB_OK)
      status = seen;
    else if (end < CL_COMPLETE)
      status = clb__event_fail(end, "transfer");
    if (status != CLB_OK && failed != NULL)
      *failed = i;
  }
  for (; i < block->events; i++)
    block->event[unseen + i - count] = block->event[i];
  block->events -= count - unseen;
  return status;
}

clb_status clb__staging_wait(clb__block *block) {
  return clb__staging_wait_first(block, block->events, NULL);
}

bool clb__staging_settle(clb__block *block) {
  while (block->events > 0 &&
         clb__event_settle(block->event[block->events - 1]))
    (void)clReleaseEvent(block->event[--block->events]);
  return block->events == 0;
}

void clb__staging_trim(clb_context *context) {
  clb__block *idle, *next;
  size_t bytes = 0;

  sweep_aside(context);
  pthread_mutex_lock(&context->lock);
  idle = context->idle;
  context->idle = NULL;
  pthread_mutex_unlock(&context->lock);
  for (; idle != NULL; idle = next) {
    next = idle->next;
    bytes += idle->size;
    destroy(context, idle);
  }
  pthread_mutex_lock(&context->lock);
  context->stats.staging_bytes -= bytes;
  pthread_mutex_unlock(&context->lock);
}

void clb__staging_end(clb_context *context) {
  clb__block *block;

  while ((block = context->aside) != NULL) {
    context->aside = block->next;
    /* One that cannot be known to have ended keeps its memory for good. */
    if (clb__staging_settle(block))
      clb__staging_give(context, block);
  }
  clb__staging_trim(context);
}
