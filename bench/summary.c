/* What the figures come to. */
#include "config.h"

#include "results.h"

#include "../tools/report.h"

#include <stdio.h>
#include <string.h>

/* Rows by how fast ours is beside what it is held against. */
struct tally {
  size_t count;
  size_t near[3]; /* at least as fast as the thresholds below say */
  const struct bench_row *worst;
  double worst_is;
};

static const double thresholds[3] = {0.95, 0.97, 1};

/* Sizes grow from row to row. */
bool bench_is_largest(const struct bench_results *results, size_t index)
{
  for (size_t i = index + 1; i < results->row_count; i++)
    if (strcmp(results->rows[i].layout, results->rows[index].layout) == 0)
      return false;
  return true;
}

/* How many times as fast ours is as the fastest of some ways; 0: none of them
 * is there. */
static double beside(const struct bench_row *row, const enum bench_way *ways,
                     size_t count)
{
  double least = 0;

  for (size_t i = 0; i < count; i++)
    if (row->rounds[ways[i]] > 0 &&
        (least == 0 || row->faster[ways[i]].median < least))
      least = row->faster[ways[i]].median;
  return least;
}

/* A stream is held against the link, a copy on a device that shares memory
 * against whatever else packs the layout. */
static double row_beside(const struct bench_row *row)
{
  static const enum bench_way link[] = {BENCH_LINK};
  static const enum bench_way packing[] = {BENCH_RECT, BENCH_NUMPY};

  return row->ours == BENCH_STREAM ? beside(row, link, 1)
                                   : beside(row, packing, 2);
}

static struct tally count_rows(const struct bench_results *results)
{
  struct tally tally = {.count = 0};

  for (size_t i = 0; i < results->row_count; i++) {
    const struct bench_row *row = &results->rows[i];
    double is = row_beside(row);

    if (is == 0 || !bench_is_largest(results, i))
      continue;
    if (tally.count == 0 || is < tally.worst_is) {
      tally.worst = row;
      tally.worst_is = is;
    }
    tally.count++;
    for (size_t t = 0; t < 3; t++)
      tally.near[t] += is >= thresholds[t];
  }
  return tally;
}

void bench_table_end(const struct bench_results *results)
{
  struct tally tally = count_rows(results);
  char text[TOOL_SIZE_TEXT];

  if (tally.count > 0) {
    printf("\nOf the largest size of %zu layouts ours is, beside %s:\n",
           tally.count,
           tally.worst->ours == BENCH_STREAM
               ? "the link"
               : "the faster one of rect and numpy");
    for (size_t t = 0; t < 3; t++)
      printf("at least %.2f times as fast for %zu,\n", thresholds[t],
             tally.near[t]);
    printf("and %.2f times for the slowest, %s.\n", tally.worst_is,
           tally.worst->layout);
  }
  printf("\nPinned memory held by the library: at most %s.\n",
         tool_size_text(results->pinned, text));
}
