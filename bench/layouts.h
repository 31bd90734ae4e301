/*
 * The layouts that the benchmarks move, contents for a buffer, and a check of
 * what came out of it, element by element.
 */
#ifndef BENCH_LAYOUTS_H
#define BENCH_LAYOUTS_H

#include "measure.h"

#include <stdint.h>

enum { BENCH_ELEMENT = 4 }; /* bytes */

/* Of elements of BENCH_ELEMENT bytes; one dimension has the extent 1 first. */
struct bench_layout {
  size_t shape[2];
  ptrdiff_t strides[2];
  size_t offset;
};

/* Bytes that a buffer needs for any of the layouts below, of bytes bytes. */
size_t bench_layout_room(size_t bytes);

/* Each takes logical bytes, a multiple of BENCH_ELEMENT, and rounds what it
 * cannot divide down. */
struct bench_layout bench_contiguous(size_t bytes);
struct bench_layout bench_padded(size_t bytes, size_t row, size_t padding);
struct bench_layout bench_transposed(size_t bytes);
struct bench_layout bench_reversed(size_t bytes);
struct bench_layout bench_stepped(size_t bytes, size_t step);

/* Logical bytes. */
size_t bench_layout_bytes(const struct bench_layout *layout);

/* A handle on the layout in a buffer; says what failed. */
bool bench_handle(const struct bench *bench, cl_mem buffer,
                  const struct bench_layout *layout, clb_bytes **out);

/* A buffer of the device whose contents depend on seed and place; says what
 * failed. */
bool bench_filled_buffer(const struct bench *bench, size_t bytes,
                         uint32_t seed, cl_mem *out);

/* A walk over the logical bytes that should come; at starts as 0. */
struct bench_walk {
  const struct bench_layout *layout;
  uint32_t seed;
  size_t at; /* bytes seen, all of them right */
};

/* A clb_sink of a struct bench_walk: stops at the first wrong byte. */
int bench_walk_on(const void *data, size_t length, void *user);

#endif
