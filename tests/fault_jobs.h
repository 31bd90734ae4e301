/*
 * fault_jobs.h - every kind of access, as jobs that a test runs while the
 * fault layer is at work.  A job checks the bytes that it gets, and that what
 * fails leaves its output as it was.
 */
#ifndef FAULT_JOBS_H
#define FAULT_JOBS_H

#include "fault_fixture.h"

/* 100 rows of 240 bytes, once packed and once with a pitch of 256: a few
 * staging blocks each, and an end that is none. */
enum {
  ROWS = 100,
  ROW = 240,
  PITCH = 256,
  LENGTH = ROWS * ROW,
  OFFSET = 64,
  SIZE = OFFSET + ROWS * PITCH,
  CHUNK = 4096
};

enum { NO_MAP = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER };

/* What is done: a context, a handle and an access are made, one after the
 * other, and whatever fails is tried again. */
struct job {
  const struct scenario *scenario;
  int step;
  clb_context *context;
  clb_bytes *bytes;
  int snapshot_taken;
  void *pinned; /* of clb_host_alloc() */
  cl_command_queue queue;
  cl_mem buffer; /* SIZE bytes: what the handle is on, or is written */
  cl_event events[2]; /* what the handle waits for */
};

enum {
  UPLOADS = 1,  /* the handle is one on host memory, the layout dst's */
  LISTED = 2,   /* the handle waits for two commands' events */
  HIDDEN = 4,   /* the host may not access the buffer */
  UNORDERED = 8, /* the queue is out of order, where there are such queues */
  CLOSED = 16,  /* a kernel may not read the buffer, or for UPLOADS write it */
  QUICK = 64,   /* one command on the program's queue, and no marker */
  DIRECT = 128, /* into pinned memory of the program's, and no block */
  BUILT = 32    /* kernels are built before the job begins: if that fails, they
                   never are */
};

/* What a job does with which layout and plans; act() tries it once, and checks
 * what it gives. */
struct scenario {
  const char *name;
  const clb_layout *layout;
  unsigned plans;
  clb_status (*act)(struct job *job);
  unsigned traits;
};

extern const struct scenario scenarios[];
extern const int scenario_count;

/* fault_main() with a directory for what is saved; none stays. */
int jobs_main(Suite *suite);

/* A case with fault_setup() and buffers. */
TCase *jobs_case(Suite *suite, const char *name, double seconds);

void job_begin(struct job *job, const struct scenario *scenario);

/* Begins, or goes on from where the job failed. */
clb_status job_run(struct job *job);

/* The next run makes a new handle. */
void job_release_handle(struct job *job);

/* Gives the handle back and trims; nothing may be held then. */
void job_settle(struct job *job);

/* Gives handle and context back. */
void job_release(struct job *job);

#endif
