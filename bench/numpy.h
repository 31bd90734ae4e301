/*
 * numpy beside us: the same layout in host memory, copied by
 * numpy.ascontiguousarray in a python3 that runs all the time, so that it can
 * be timed in turn with others.
 */
#ifndef BENCH_NUMPY_H
#define BENCH_NUMPY_H

#include "child.h"
#include "layouts.h"

struct bench_numpy {
  struct bench_child child; /* id 0: there is no numpy */
};

/* Without python3 or numpy everything below does nothing, and says false. */
void bench_numpy_start(struct bench_numpy *numpy);
void bench_numpy_stop(struct bench_numpy *numpy);

/* The layout from now on. */
bool bench_numpy_layout(struct bench_numpy *numpy,
                        const struct bench_layout *layout);

/* bench_job.run_timed of a struct bench_numpy. */
bool bench_numpy_run(void *user, size_t times, double *seconds);

#endif
