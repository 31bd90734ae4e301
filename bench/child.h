/*
 * Another program that runs beside this one and is spoken to through pipes.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct bench_child {
  pid_t id;
  FILE *to;   /* its standard input */
  FILE *from; /* its standard output; NULL where that goes elsewhere */
};

/*
 * Starts argv[0], looked for in PATH.
 *   output  a descriptor for its standard output; -1: a pipe
 *   quiet   what it says on standard error is thrown away
 * False where there is no such program or it cannot be started.
 */
bool bench_child_start(char *const argv[], int output, bool quiet,
                       struct bench_child *out);

/* Ends its input and waits for it; whether it ended well. */
bool bench_child_end(struct bench_child *child);

#endif
