/*
 * Ways of doing one thing, timed in turn, and the figures that come of it.
 */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_MOST_ROUNDS = 1024, BENCH_MOST_JOBS = 16 };

/* One way of doing a thing. */
struct bench_job {
  /* The caller's: */
  bool (*run)(void *user);   /* timed; false: it failed, and said why */
  void (*after)(void *user); /* not timed; NULL: nothing */
  /* Does it so many times and tells the seconds itself; NULL: run is timed. */
  bool (*run_timed)(void *user, size_t times, double *seconds);
  void *user;
  size_t batch;  /* done at most so many times a round; 0: once.  Only without
                    after; written too */
  bool optional; /* left out where it fails, and done once alone where it takes
                    long */
  /* Written, as is: */
  size_t rounds; /* 0: left out */
  double seconds[BENCH_MOST_ROUNDS]; /* of doing it once */
};

/* Runs of a job of so many bytes between two looks at the clock, so that a
 * short one takes long enough. */
size_t bench_batch(size_t bytes);

/* Monotonic. */
double bench_seconds(void);

/*
 * Runs each job once to warm up, then rounds times in turn, each round
 * in another order, so that what else the machine does, and what the one before
 * left in the caches, meets all of them alike.  False where a job failed that is not optional, and said why, or a
 * signal came that tool_interrupt_watch() notes.
 */
bool bench_interleave(struct bench_job *const *jobs, size_t count,
                      size_t rounds);

struct bench_spread {
  double median, least, most;
};

/* Of a job's seconds. */
struct bench_spread bench_time(const struct bench_job *job);

/* Of the rate in GB/s. */
struct bench_spread bench_rate(const struct bench_job *job, size_t bytes);

/* Of above's seconds over below's, round by round where they have as many. */
struct bench_spread bench_ratio(const struct bench_job *above,
                                const struct bench_job *below);

/* --- Cells of a table ----------------------------------------------------- */

enum { BENCH_CELL = 64 };

/* Digits after the point that leave three that say something. */
int bench_digits(double value);

/* "12.3 (11.8 to 13.0)": a job's seconds, times scale; returns text. */
const char *bench_time_cell(const struct bench_job *job, double scale,
                            char text[BENCH_CELL]);

/* The same in GB/s; "-" for a NULL job. */
const char *bench_rate_cell(const struct bench_job *job, size_t bytes,
                            char text[BENCH_CELL]);

/* "0.98": how fast is to below, as a ratio of speeds; "-" for a NULL job. */
const char *bench_speed_cell(const struct bench_job *is,
                             const struct bench_job *below,
                             char text[BENCH_CELL]);

#endif
