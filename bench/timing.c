/* Timing jobs in turn.  Knows nothing of what they do. */
#include "config.h"

#include "timing.h"

#include "../tools/interrupt.h"
#include "../tools/report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds from which an optional job takes long, and that a batch takes at
 * most. */
static const double long_time = 2;
static const double batch_time = 0.005;

enum { BATCH_BYTES = 1 << 20, MOST_BATCH = 64 };

size_t bench_batch(size_t bytes)
{
  size_t batch = BATCH_BYTES / (bytes + 1);

  return batch > MOST_BATCH ? MOST_BATCH : batch == 0 ? 1 : batch;
}

double bench_seconds(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- Running -------------------------------------------------------------- */

static bool run_times(struct bench_job *job, size_t times, double *seconds)
{
  double start = bench_seconds();
  bool done = true;

  if (job->run_timed != NULL)
    return job->run_timed(job->user, times, seconds);
  for (size_t i = 0; done && i < times; i++)
    done = job->run(job->user);
  *seconds = bench_seconds() - start;
  if (job->after != NULL)
    job->after(job->user);
  return done;
}

static bool run_round(struct bench_job *job, size_t round)
{
  double seconds;

  if (!run_times(job, job->batch, &seconds)) {
    job->rounds = 0;
    return job->optional;
  }
  job->seconds[round] = seconds / (double)job->batch;
  return true;
}

/* Writes to job how often it will be run. */
static bool warm_up(struct bench_job *job, size_t rounds)
{
  double cold;

  job->rounds = 0;
  if (!run_times(job, 1, &cold))
    return job->optional;
  job->rounds = rounds;
  if (job->batch == 0)
    job->batch = 1;
  while (job->batch > 1 && cold * (double)job->batch > batch_time)
    job->batch /= 2;
  if (job->optional && cold > long_time) {
    job->seconds[0] = cold;
    job->rounds = 1;
  }
  return true;
}

/* What ran before leaves its bytes in the caches, and the machine's mind: so no
 * job has the same one before it each time.  The same order in each run. */
static void shuffle(size_t *order, size_t count, uint64_t *state)
{
  for (size_t j = count; j > 1; j--) {
    size_t with, swap = order[j - 1];

    *state = *state * 6364136223846793005u + 1442695040888963407u;
    with = (size_t)(*state >> 33) % j;
    order[j - 1] = order[with];
    order[with] = swap;
  }
}

bool bench_interleave(struct bench_job *const *jobs, size_t count,
                      size_t rounds)
{
  size_t order[BENCH_MOST_JOBS];
  uint64_t state = 1;

  if (count > BENCH_MOST_JOBS) {
    tool_error("at most %d ways", (int)BENCH_MOST_JOBS);
    return false;
  }
  if (rounds > BENCH_MOST_ROUNDS) {
    tool_error("at most %d rounds", (int)BENCH_MOST_ROUNDS);
    return false;
  }
  for (size_t j = 0; j < count; j++)
    if (tool_interrupt_seen() || !warm_up(jobs[j], rounds))
      return false;
  for (size_t j = 0; j < count; j++)
    order[j] = j;
  for (size_t i = 0; i < rounds; i++) {
    shuffle(order, count, &state);
    for (size_t j = 0; j < count; j++) {
      struct bench_job *job = jobs[order[j]];

      if (tool_interrupt_seen())
        return false;
      if (job->rounds == rounds && !run_round(job, i))
        return false;
    }
  }
  return true;
}

/* --- Figures -------------------------------------------------------------- */

static int compare_doubles(const void *left, const void *right)
{
  double a = *(const double *)left;
  double b = *(const double *)right;

  return (a > b) - (a < b);
}

static struct bench_spread spread_of(double *values, size_t count)
{
  size_t half = count / 2;

  qsort(values, count, sizeof(*values), compare_doubles);
  return (struct bench_spread){
      count % 2 ? values[half] : (values[half - 1] + values[half]) / 2,
      values[0], values[count - 1]};
}

struct bench_spread bench_time(const struct bench_job *job)
{
  double values[BENCH_MOST_ROUNDS];

  memcpy(values, job->seconds, job->rounds * sizeof(*values));
  return spread_of(values, job->rounds);
}

struct bench_spread bench_rate(const struct bench_job *job, size_t bytes)
{
  struct bench_spread time = bench_time(job);

  return (struct bench_spread){(double)bytes / time.median / 1e9,
                               (double)bytes / time.most / 1e9,
                               (double)bytes / time.least / 1e9};
}

struct bench_spread bench_ratio(const struct bench_job *above,
                                const struct bench_job *below)
{
  double values[BENCH_MOST_ROUNDS];

  if (above->rounds != below->rounds) {
    struct bench_spread a = bench_time(above);
    struct bench_spread b = bench_time(below);

    return (struct bench_spread){a.median / b.median, a.least / b.most,
                                 a.most / b.least};
  }
  for (size_t i = 0; i < above->rounds; i++)
    values[i] = above->seconds[i] / below->seconds[i];
  return spread_of(values, above->rounds);
}

/* --- Cells of a table ----------------------------------------------------- */

int bench_digits(double value)
{
  return value < 10 ? 2 : value < 100 ? 1 : 0;
}

static const char *spread_cell(const struct bench_spread *spread,
                               char text[BENCH_CELL])
{
  snprintf(text, BENCH_CELL, "%.*f (%.*f to %.*f)",
           bench_digits(spread->median), spread->median,
           bench_digits(spread->least), spread->least,
           bench_digits(spread->most), spread->most);
  return text;
}

const char *bench_time_cell(const struct bench_job *job, double scale,
                            char text[BENCH_CELL])
{
  struct bench_spread spread = bench_time(job);

  spread.median *= scale;
  spread.least *= scale;
  spread.most *= scale;
  return spread_cell(&spread, text);
}

const char *bench_rate_cell(const struct bench_job *job, size_t bytes,
                            char text[BENCH_CELL])
{
  struct bench_spread rate;

  if (job == NULL || job->rounds == 0)
    return "-";
  rate = bench_rate(job, bytes);
  return spread_cell(&rate, text);
}

const char *bench_speed_cell(const struct bench_job *is,
                             const struct bench_job *below,
                             char text[BENCH_CELL])
{
  if (is == NULL || below == NULL || is->rounds == 0 || below->rounds == 0)
    return "-";
  snprintf(text, BENCH_CELL, "%.2f", bench_ratio(below, is).median);
  return text;
}
