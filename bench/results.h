/*
 * What a run of the benchmark gave, as a table for people, as JSON, as a plot.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "beside.h"
#include "rows.h"

enum { BENCH_MOST_SMALL = 8 };

struct bench_results {
  const char *device, *platform;
  struct bench_row *rows;
  size_t row_count;
  struct bench_pair small[BENCH_MOST_SMALL];
  size_t small_count;
  struct bench_pair *uploads;
  size_t upload_count;
  struct bench_linear linear;
  bool has_linear;
  uint64_t pinned; /* most of the library's own staging, bytes */
};

/* Whether the row of that index is the largest of its layout. */
bool bench_is_largest(const struct bench_results *results, size_t index);

/* --- A table: each piece is printed when it is there ---------------------- */

void bench_table_begin_rows(size_t rounds);
void bench_table_row(const struct bench_row *row);
void bench_table_begin_small(void);
void bench_table_small(const struct bench_pair *pair);
void bench_table_begin_uploads(void);
void bench_table_upload(const struct bench_pair *pair);
void bench_table_linear(const struct bench_linear *linear);

/* How near the largest of each layout come to what they are held against, and
 * how much pinned memory it took. */
void bench_table_end(const struct bench_results *results);

/* --- All of it at the end ------------------------------------------------- */

/* The command's exit code. */
int bench_json_print(const struct bench_results *results);

/* Whether a file of that name can be a plot, SVG or PNG, and gnuplot is there;
 * says what not. */
bool bench_plot_possible(const char *path);

/* Draws the largest size of each layout; says what failed. */
bool bench_plot(const struct bench_results *results, const char *path);

#endif
