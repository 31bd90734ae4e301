/*
 * What the benchmarks share: options, the device they run on, pinned memory,
 * ways of doing one thing timed in turn, and the figures that come of it.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "../tools/device_choice.h"

#include <stdbool.h>
#include <stddef.h>

/* --- Options -------------------------------------------------------------- */

/* An option of a program's command line; one of the three is not NULL. */
struct bench_option {
  const char *name;  /* as in --name */
  const char *what;  /* a line of help */
  size_t *size;      /* takes a size or number, such as 64K */
  const char **text; /* takes a text */
  bool *flag;        /* takes nothing */
};

/*
 * Parses a command line of count options, at most 8, and --help; operands
 * names the operands in the help, at most one word each.  Ends the program
 * where the line is wrong or asks for help; else returns the index of the first
 * operand.
 */
int bench_parse(int argc, char **argv, const char *operands,
                const struct bench_option *options, size_t count);

/* --- The device ----------------------------------------------------------- */

struct bench {
  struct tool_device_list list;
  const struct tool_device *device;
  struct tool_session session; /* with the library's default options */
};

/* Makes a session on the device that the user means, and prints a line of
 * which it is; says what failed.  To be stopped in either case. */
bool bench_start(struct bench *bench, const char *wanted);
void bench_stop(struct bench *bench);

/* Pinned memory as a program gets it: mapped once, and kept. */
struct bench_pinned {
  cl_mem buffer;
  void *data;
};

bool bench_pinned_make(const struct bench *bench, size_t length,
                       struct bench_pinned *out);
void bench_pinned_free(const struct bench *bench, struct bench_pinned *pinned);

/* Whether a call succeeded; says what failed. */
bool bench_cl_ok(cl_int error, const char *call);
bool bench_ok(clb_status status, const char *what);

/* --- Timing --------------------------------------------------------------- */

enum { BENCH_MOST_ROUNDS = 1024 };

/* One way of doing a thing. */
struct bench_job {
  bool (*run)(void *user);   /* timed; false: it failed, and said why */
  void (*after)(void *user); /* not timed; NULL: nothing */
  void *user;
  size_t rounds; /* written, as is: */
  double seconds[BENCH_MOST_ROUNDS];
};

/* Monotonic. */
double bench_seconds(void);

/* Runs each job once to warm up, then rounds times in turn, so that what else
 * the machine does meets all of them alike. */
bool bench_interleave(struct bench_job *const *jobs, size_t count,
                      size_t rounds);

struct bench_spread {
  double median, least, most;
};

/* Of a job's seconds. */
struct bench_spread bench_time(const struct bench_job *job);

/* Of above's seconds over below's, round by round. */
struct bench_spread bench_ratio(const struct bench_job *above,
                                const struct bench_job *below);

/* --- Cells of a table ----------------------------------------------------- */

enum { BENCH_CELL = 48 };

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
