/*
 * The layouts that the benchmarks move: what they look like, by name, and as
 * OpenCL's own calls could say them.
 */
#ifndef BENCH_LAYOUTS_H
#define BENCH_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_RANK = 4 };

struct bench_layout {
  size_t ndim; /* 1 to BENCH_RANK */
  size_t shape[BENCH_RANK];
  ptrdiff_t strides[BENCH_RANK]; /* bytes */
  size_t element;                /* bytes */
  size_t offset;                 /* bytes */
};

/* --- Some of them --------------------------------------------------------- */

/* Of elements of 4 bytes; each takes logical bytes and rounds what it cannot
 * divide down. */
struct bench_layout bench_contiguous(size_t bytes);
struct bench_layout bench_padded(size_t bytes, size_t row, size_t padding);
struct bench_layout bench_transposed(size_t bytes);

/* Logical bytes. */
size_t bench_layout_bytes(const struct bench_layout *layout);

/* Bytes of a buffer that holds it, and the whole of the last pitch: one driver
 * (NVIDIA's) reads a rectangle no other way. */
size_t bench_layout_reach(const struct bench_layout *layout);

/* --- All of them, by name ------------------------------------------------- */

/* How many there are, and the name of one. */
size_t bench_layout_count(void);
const char *bench_layout_name(size_t index);

/* The layout of that index with about so many logical bytes, never more; false
 * where there is none so small.  Some have a most. */
bool bench_layout_make(size_t index, size_t bytes, struct bench_layout *out);

/* Whether no two elements share bytes, so that it can be written to. */
bool bench_layout_writable(const struct bench_layout *layout);

/* --- In OpenCL's words ---------------------------------------------------- */

/* The contiguous runs of a layout: dimensions merged, the innermost run taken
 * out.  Row-major, ndim 0 for a contiguous one. */
struct bench_runs {
  size_t length; /* bytes of a run */
  size_t count;
  size_t ndim;
  size_t shape[BENCH_RANK];
  ptrdiff_t strides[BENCH_RANK];
};

struct bench_runs bench_layout_runs(const struct bench_layout *layout);

/* Arguments of clEnqueueReadBufferRect for the whole layout, packed on the
 * host. */
struct bench_rect {
  size_t origin[3], region[3];
  size_t row_pitch, slice_pitch;
};

/* False where one rectangle cannot say it, or need not: a contiguous one. */
bool bench_layout_rect(const struct bench_layout *layout,
                       struct bench_rect *out);

#endif
