/*
 * A row of the benchmark: one layout of one size, in all the ways there are.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "transfer.h"

enum { BENCH_PLAN = 96 };

struct bench_row {
  const char *layout;
  size_t bytes;
  enum bench_way ours;   /* the way of the library's that is compared */
  char plan[BENCH_PLAN]; /* in words */
  size_t rounds[BENCH_WAYS];             /* 0: the way is not there */
  struct bench_spread rate[BENCH_WAYS];  /* GB/s */
  struct bench_spread faster[BENCH_WAYS]; /* how many times as fast as the way
                                             ours is */
  uint64_t pinned;       /* most of the library's until now, bytes */
  bool data_ok;
};

/*
 * Measures the layout, then checks it.  Where the device has memory of its own
 * ours is a stream, else a copy, as all that it is compared with is one.
 *   name  of the layout
 * False where it could not be measured, which has been said, or a signal came;
 * wrong data is no such failure.
 */
bool bench_row_measure(struct bench_transfer *transfer, const char *name,
                       const struct bench_layout *layout, size_t rounds,
                       struct bench_row *out);

#endif
