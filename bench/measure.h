/*
 * What the benchmarks share: options, the device they run on, pinned memory.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "timing.h"

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
  struct tool_session session;
};

/* Makes a session on the device that the options mean; says what failed.  To be
 * stopped in either case. */
bool bench_open(struct bench *bench, const struct tool_options *options);

/* Prints a line of which device it is, and an empty one. */
void bench_print_device(const struct bench *bench);

/* Both, with the library's default options. */
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

#endif
