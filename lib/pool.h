/*
 * pool.h - the library's own threads.
 *
 * They start when the first job comes and end with the last user.  A job runs
 * on one of them, with signals blocked; it may wait for a device, and nothing
 * may wait for a job that is not running while holding what a job needs.
 */
#ifndef CLB_POOL_H
#define CLB_POOL_H

#include "error.h"

#include <stdbool.h>

typedef struct clb__job {
  struct clb__job *next;
  bool (*ready)(struct clb__job *job); /* run() would wait for no command of
                                          the program's; does not wait */
  bool (*wanted)(struct clb__job *job); /* false: nobody looks any more, and
                                           run() neither moves nor waits; does
                                           no more than look itself */
  void (*run)(struct clb__job *job); /* frees the job, where it needs to be */
} clb__job;

/* One more user; and one less, which waits for the threads if it was the last,
 * and is not one of them.  A user leaves when it has no jobs left. */
clb_status clb__pool_join(void);
void clb__pool_leave(void);

/* Whether the calling thread is one of them. */
bool clb__pool_inside(void);

/* Cannot fail: the threads are there since the join.  While many jobs are
 * waiting, the caller runs a few that nobody wants, so that memory stays flat
 * whoever is faster. */
void clb__pool_run(clb__job *job);

#endif
