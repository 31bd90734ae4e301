/*
 * trial.h - which of two ways of writing a file is the faster one on this disk:
 * the first bytes go one way, the next the other, then the faster stays.
 *
 * Not locked: the owner's lock guards it.
 */
#ifndef CLB_TRIAL_H
#define CLB_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLB__TRIAL_BYTES ((uint64_t)128 << 20) /* that each way is given */
#define CLB__TRIAL_WORTH ((uint64_t)1 << 30)   /* a file that is worth one */

typedef struct clb__trial {
  uint64_t given[2], done[2]; /* bytes of each way */
  double since[2], until[2];  /* from the first one's start to the last's end */
  bool over;
  int best; /* once it is over */
} clb__trial;

/* The way, 0 or 1, that length more bytes go from now on.  Before both ways are
 * through it is 0 that goes on. */
int clb__trial_begin(clb__trial *trial, size_t length, double now);

/* Bytes that begin() sent a way have gone it; those that had none of a trial's
 * are ignored.  True: with these it is over. */
bool clb__trial_end(clb__trial *trial, int way, size_t length, double now);

#endif
