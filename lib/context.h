/*
 * context.h - what a clb_context is made of.
 *
 * Owned by context.c: making, counting, ending.  staging.c owns the members of
 * the ring, device.c the facts, park.c the parked list; all share the lock,
 * which is never held across an OpenCL call that may wait, nor across a call
 * to the program.
 */
#ifndef CLB_CONTEXT_H
#define CLB_CONTEXT_H

#include "plan.h"
#include "refs.h"

#include <pthread.h>
#include <stdatomic.h>

/* Moves that may be in flight to or from one block, and the commands that are:
 * a move may be cut in three, and each goes through scratch by two. */
#define CLB__BLOCK_MOVES 32
#define CLB__BLOCK_EVENTS (CLB__BLOCK_MOVES * 6)

/* A block of memory that commands move bytes to or from, and those that are in
 * flight. */
typedef struct clb__block {
  struct clb__block *next;
  cl_mem pinned; /* NULL: data is pageable */
  unsigned char *data;
  size_t size;
  cl_mem scratch; /* on the device, of size bytes, rounded up; NULL until it is
                     needed */
  cl_mem beside;  /* a copy of a part of the source; of beside_size bytes */
  size_t beside_size;
  unsigned lane;  /* which of our queues its commands go to */
  unsigned events;
  cl_event event[CLB__BLOCK_EVENTS];
} clb__block;

/* What has to outlive a command: released when its event is seen to have
 * ended. */
typedef struct clb__parked {
  struct clb__parked *next;
  cl_event event;
  cl_mem mem[2]; /* either may be NULL */
  void *mapped;  /* of mem[0]: the command is the unmap, still to be enqueued */
} clb__parked;

#define CLB__KEPT_MARKERS 16

/* Memory from clb_host_alloc: host_alloc.c. */
typedef struct clb__pinned clb__pinned;

/* Kernels that were built: kernels.c. */
typedef struct clb__kernels clb__kernels;

struct clb_context {
  atomic_size_t refs;
  cl_command_queue program; /* the program's queue */
  bool out_of_order;
  cl_command_queue queue; /* ours: in-order, no wait lists */
  cl_command_queue second; /* one more, for blocks whose command is a kernel and
                              a read: while one packs the other reads.  NULL
                              until it is needed */
  cl_context cl;
  cl_device_id device;
  bool same_endian; /* device and host */
  bool far;         /* the device has a memory of its own */
  size_t sub_alignment; /* bytes that a sub-buffer's origin is a multiple of */

  size_t chunk_size, staging_limit, host_limit;
  unsigned plans;
  unsigned copy_threads;
  clb_costs costs; /* the program's; 0: ours */
  void (*log)(const char *line, void *user);
  void *log_user;
  bool log_stderr;
  bool torn; /* saves look whether tensors changed meanwhile */

  pthread_mutex_t lock;
  clb__block *idle;       /* pinned and free */
  clb__block *aside;      /* in flight for all that is known */
  clb__parked *parked;
  cl_event failed[CLB__KEPT_MARKERS]; /* the last markers that failed */
  unsigned failures;
  clb__pinned *pinned;
  bool pooled;  /* uses the pool of threads */
  bool crewed;  /* uses the crew */
  bool uncrewed; /* there is none to be had */
  clb_stats stats;

  clb__kernels *kernels; /* NULL until they are needed */
  pthread_mutex_t span_lock; /* held while commands are enqueued that write to
                                a buffer which kernels may not write */

  pthread_mutex_t probe_lock;
  bool probed, measured;
  clb__facts facts;
  bool compiles;  /* the device has a compiler */
  bool processor; /* the device is one: a read is a copy by its cores */
};

/* One reference less, waiting for no job; how many are left. */
size_t clb__context_drop(clb_context *context);

/* Adds to the counters of one access. */
void clb__context_count(clb_context *context, unsigned kind, uint64_t payload,
                        uint64_t link);

/* Threads that may copy beside the caller's; they start at the first call. */
unsigned clb__context_helpers(clb_context *context);

/* Whether there is a pool of threads to give jobs to; it is joined at the first
 * call. */
bool clb__context_pool(clb_context *context);

/* The queue of a block's lane. */
clb_status clb__context_lane(clb_context *context, unsigned lane,
                             cl_command_queue *queue);

/* Whether the memory is all in one piece from clb_host_alloc. */
bool clb__host_is_pinned(clb_context *context, const void *data, size_t length);

/* Accounts for a materialised copy.  CLB_OUT_OF_MEMORY past host_limit. */
clb_status clb__context_hold(clb_context *context, size_t bytes);
void clb__context_unhold(clb_context *context, size_t bytes);

/* One line to the log; nothing where there is none. */
bool clb__context_logs(const clb_context *context);
void clb__context_log(clb_context *context, const char *line);

/* The facts of the device, found out at the first call; or, where they were
 * not, guessed from what it says of itself. */
clb_status clb__device_facts(clb_context *context, clb__direction direction,
                             bool guess, clb__facts *facts);

/* Puts the program's figures in place of ours. */
void clb__device_costs(const clb_context *context, clb__facts *facts);

/* Measures what the facts have not been measured for, once; it is worth it
 * before a large access alone. */
void clb__device_measure(clb_context *context);

/* The measuring itself, of a device with a memory of its own: measure.c. */
void clb__measure(clb_context *context, clb__facts *facts);

/*
 * A block for a transfer: an idle pinned one, a new pinned one while the limit
 * allows, else NULL; with must, a pageable one in place of NULL.  NULL with
 * must: no memory, and the last error is set.
 */
clb__block *clb__staging_take(clb_context *context, bool must);

/* A pageable block of any size in place of one; counted.  context may be
 * NULL. */
clb__block *clb__staging_pageable(clb_context *context, size_t size);

/* A pageable block that belongs to no context, one of no bytes that keeps the
 * events of size bytes, and their end. */
clb__block *clb__block_make(size_t size);
clb__block *clb__block_bare(size_t size);
void clb__block_free(clb__block *block);

/* Gives a block back.  One with events in flight is set aside until they have
 * ended. */
void clb__staging_give(clb_context *context, clb__block *block);

/* The block's scratch buffer, made if it is not there. */
clb_status clb__staging_scratch(clb_context *context, clb__block *block);

/* Makes its copy of a part of the source hold so many bytes; what was in it is
 * gone. */
clb_status clb__staging_beside(clb_context *context, clb__block *block,
                               size_t bytes);

/* Waits for all of the block's events; the first failure counts.  An event
 * whose end cannot be seen stays in the block. */
clb_status clb__staging_wait(clb__block *block);

/* The same for the first so many alone, the others stay; *failed is set where it
 * fails: which of them was the first; NULL: not wanted. */
clb_status clb__staging_wait_first(clb__block *block, unsigned count,
                                   unsigned *failed);

/* Waits longer, however often waiting fails; false if some event cannot even be
 * asked. */
bool clb__staging_settle(clb__block *block);

/* Frees idle blocks; at the end also those aside, after waiting for them. */
void clb__staging_trim(clb_context *context);
void clb__staging_end(clb_context *context);

/* Maps a region, waiting for it; unmaps, without waiting.  All maps and unmaps
 * go through these: map.c says why. */
clb_status clb__map(clb_context *context, cl_mem mem, cl_map_flags flags,
                    size_t first, size_t bytes, void **data);
cl_int clb__unmap(clb_context *context, cl_mem mem, void *data,
                  cl_event *event);

/* Where a map is on its way an unmap waits for that, in whatever context; here
 * it does not, and is false then. */
bool clb__try_unmap(clb_context *context, cl_mem mem, void *data,
                    cl_event *event, cl_int *err);

/* Takes the references of a node over, and releases them once its event has
 * ended; sweeping looks, ending waits.  An unmap that would have to wait is
 * left to the next sweep; by the second it waits. */
void clb__park(clb_context *context, clb__parked *node);
void clb__park_unmap(clb_context *context, clb__parked *node);

/* The same for a command of ours whose end could not be seen, with references
 * of its own; does what it can. */
void clb__park_keep(clb_context *context, cl_mem mem, cl_event event);
void clb__park_sweep(clb_context *context);
void clb__park_end(clb_context *context);

/* --- Events ----------------------------------------------------------------- */

/* Waits for an event by the host.  CLB_OK: it has ended, *end is its status,
 * CL_COMPLETE or negative.  Else its end cannot be seen. */
clb_status clb__event_wait(cl_event event, cl_int *end);

/* Whether that would not wait. */
bool clb__event_ready(cl_event event);

/* Waits however often waiting fails; false if the event cannot even be asked.
 * Sets no error. */
bool clb__event_settle(cl_event event);

/* Whether it has ended, without waiting; an event that cannot be asked has
 * not. */
bool clb__event_ended(cl_event event);

/* "call: event ended with CL_... (code)". */
clb_status clb__event_fail(cl_int end, const char *what);

/* A counted list of events that contents depend on. */
typedef struct clb__events clb__events;

clb_status clb__events_make(clb_context *context, cl_uint count,
                            const cl_event *list, clb__events **out);
/* One event, and what is left of a list, which may be NULL. */
clb_status clb__events_make_behind(clb__events *before, cl_event event,
                                   clb__events **out);
clb__events *clb__events_retain(clb__events *events);
void clb__events_release(clb__events *events);

/* Flushes their queues; waits until all are complete or one has failed, which
 * is an error of both. */
clb_status clb__events_flush(clb__events *events);
clb_status clb__events_wait(clb__events *events);

/* Whether that would not wait. */
bool clb__events_ready(clb__events *events);

/* A marker behind all that was enqueued on the program's queue, on its way; and
 * waiting for it, which takes it over. */
clb_status clb__queue_mark(clb_context *context, cl_event *marker);
clb_status clb__marker_wait(clb_context *context, cl_event marker);

/*
 * Both, for what was flushed and the program's queue may wait for: now and then
 * a look at the status, no more.  rusticl holds a queue's lock while it finishes
 * it, and clWaitForEvents and clFlush want that lock: the program in clFinish,
 * behind a command that waits for a prefetch, would hold the prefetch up for
 * ever.
 */
clb_status clb__events_watch(clb__events *events);
clb_status clb__marker_watch(clb_context *context, cl_event marker);

/* Lets go of markers that failed, at the end. */
void clb__markers_end(clb_context *context);

#endif
