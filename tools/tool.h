/*
 * What the files of the clbytes command share: exit codes, options, the
 * subcommands.  The command stands on the library's public headers alone.
 */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum tool_exit {
  TOOL_OK = 0,
  TOOL_DIFFERS = 1,   /* verify: the files are not the same; bench: what was
                         moved is wrong */
  TOOL_USAGE = 2,     /* the command line is wrong */
  TOOL_FAILED = 3,    /* a file, a device, a format, standard output */
  TOOL_SIGNALLED = 128 /* plus the signal that cancelled it */
};

/* Written by main() from the command line. */
struct tool_options {
  const char *device; /* index or part of a name; NULL: chosen */
  size_t staging;     /* bytes; 0: the library chooses */
  size_t chunk;       /* bytes; 0: the library chooses */
  unsigned plans;     /* CLB_PLAN_*; 0: all */
  size_t shard;       /* bytes; 0: one file */
  bool durable;
  bool quiet;
  bool json;
  /* Of bench: */
  size_t max;          /* bytes; 0: chosen for the device */
  size_t rounds;       /* 0: the default */
  size_t seconds;      /* 0: no limit */
  const char *sizes;   /* with commas between; NULL: some up to max */
  const char *layouts; /* the same; NULL: all */
  const char *plot;    /* a file; NULL: none */
  bool linear;
};

/* The subcommands.  Each takes its operands, complete in number, says on
 * stderr what failed, and returns the command's exit code. */
int tool_cmd_devices(const struct tool_options *options, char **operands);
int tool_cmd_inspect(const struct tool_options *options, char **operands);
int tool_cmd_copy(const struct tool_options *options, char **operands);
int tool_cmd_verify(const struct tool_options *options, char **operands);
int tool_cmd_bench(const struct tool_options *options, char **operands);

#endif
