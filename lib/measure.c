/*
 * measure.c - what commands cost on a device that has a memory of its own: its
 * link is not to be known from what it says of itself.
 *
 * A few milliseconds, once a context, before the first strided access that is
 * large enough to care.  Whatever fails leaves the figure as it was.
 */
#include "config.h"

#include "context.h"

#include <time.h>

#define SMALL ((size_t)4096)
#define LARGE ((size_t)4 << 20)
#define LEAST_LARGE (16 * SMALL) /* or the difference says nothing */
#define ROW ((size_t)16) /* bytes; every other row is read */
#define TRIES 3
#define MOST_GBS 1000.0 /* no link is faster */

typedef struct meter {
  clb_context *context;
  clb__block *block;
  cl_mem mem;
  size_t large;
} meter;

static double now_us(void) {
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Reads bytes in rows, or in one piece for rows of none; negative: refused. */
static double read_once(meter *m, size_t bytes, size_t row) {
  size_t zero[3] = {0, 0, 0}, region[3] = {row, row > 0 ? bytes / row : 0, 1};
  clb__block *block = m->block;
  double start = now_us();
  cl_int err =
      row == 0
          ? clEnqueueReadBuffer(m->context->queue, m->mem, CL_FALSE, 0, bytes,
                                block->data, 0, NULL, &block->event[0])
          : clEnqueueReadBufferRect(m->context->queue, m->mem, CL_FALSE, zero,
                                    zero, region, 2 * row, 2 * bytes, row,
                                    bytes, block->data, 0, NULL,
                                    &block->event[0]);

  if (err != CL_SUCCESS)
    return -1;
  block->events = 1;
  (void)clFlush(m->context->queue);
  return clb__staging_wait(block) == CLB_OK ? now_us() - start : -1;
}

/* The best of a few; negative: refused. */
static double read_us(meter *m, size_t bytes, size_t row) {
  double best = -1;
  int i;

  for (i = 0; i < TRIES; i++) {
    double us = read_once(m, bytes, row);
    if (us < 0)
      return us;
    if (best < 0 || us < best)
      best = us;
  }
  return best;
}

static void take_figures(meter *m, clb__facts *facts) {
  size_t bytes = m->large / 2, rows = bytes / ROW;
  double small, large, rect, gbs, payload;

  /* One that fails may still be in flight: the block is left alone then. */
  if ((small = read_us(m, SMALL, 0)) < 0 ||
      (large = read_us(m, m->large, 0)) <= small ||
      (rect = read_us(m, bytes, ROW)) < 0)
    return;
  gbs = (double)(m->large - SMALL) / (large - small) / 1e3;
  if (gbs > MOST_GBS) /* the small one was held up */
    return;
  facts->command_us = small;
  facts->link_gbs = gbs;
  payload = (double)bytes / (facts->link_gbs * 1e3);
  if (rect > small + payload)
    facts->row_ns = (rect - small - payload) * 1e3 / (double)rows;
}

void clb__measure(clb_context *context, clb__facts *facts) {
  meter m = {.context = context};
  clb__error before;
  cl_int err;

  clb__error_keep(&before);
  m.block = clb__staging_take(context, true);
  if (m.block != NULL)
    m.large = m.block->size < LARGE ? m.block->size : LARGE;
  m.large -= m.large % (4 * ROW); /* half of it is whole rows */
  if (m.large >= LEAST_LARGE) {
    m.mem = clCreateBuffer(context->cl, CL_MEM_READ_WRITE, m.large, NULL, &err);
    if (err == CL_SUCCESS) {
      take_figures(&m, facts);
      if (m.block->events > 0)
        clb__park_keep(context, m.mem, m.block->event[0]);
      (void)clReleaseMemObject(m.mem);
    }
  }
  clb__staging_give(context, m.block);
  clb__error_put_back(&before);
}
