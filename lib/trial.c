/*
 * trial.c - see trial.h.
 */
#include "config.h"

#include "trial.h"

/* Where they differ by less the first is kept: which way it is decides what
 * else the machine has to do for it. */
#define NO_WORSE 0.95

int clb__trial_begin(clb__trial *trial, size_t length, double now) {
  int way = trial->given[0] >= CLB__TRIAL_BYTES &&
            trial->given[1] < CLB__TRIAL_BYTES;

  if (trial->over)
    return trial->best;
  if (trial->given[way] == 0)
    trial->since[way] = now;
  trial->given[way] += length;
  return way;
}

static double speed(const clb__trial *trial, int way) {
  double seconds = trial->until[way] - trial->since[way];

  return seconds > 0 ? (double)trial->done[way] / seconds : 0;
}

bool clb__trial_end(clb__trial *trial, int way, size_t length, double now) {
  if (trial->over)
    return false;
  trial->done[way] += length;
  trial->until[way] = now;
  trial->over = trial->done[0] >= CLB__TRIAL_BYTES &&
                trial->done[1] >= CLB__TRIAL_BYTES;
  if (trial->over)
    trial->best = speed(trial, 0) < NO_WORSE * speed(trial, 1);
  return trial->over;
}
