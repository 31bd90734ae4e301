/* clbytes bench: what the link gives for each layout.  Owns the order of it all
 * and the time that it may take; what is measured, and how, is in bench/. */
#include "config.h"

#include "../bench/choice.h"
#include "../bench/results.h"
#include "interrupt.h"
#include "report.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 9 };

struct run {
  const struct tool_options *options;
  struct bench_choice choice;
  struct bench_transfer transfer;
  struct bench_results results;
  size_t rounds;
  double start; /* seconds */
  size_t left_out, failed, wrong;
  bool drawn; /* progress stands on the terminal's line */
};

/* --- Progress and time ---------------------------------------------------- */

static void clear_progress(struct run *run)
{
  if (run->drawn)
    fputs("\r\033[K", stderr);
  run->drawn = false;
}

/* On a terminal alone. */
static void show_progress(struct run *run, const char *what, size_t bytes)
{
  char size[TOOL_SIZE_TEXT];

  if (run->options->quiet || isatty(STDERR_FILENO) != 1)
    return;
  fprintf(stderr, "\r\033[K%.0f s: %s of %s", bench_seconds() - run->start,
          what, tool_size_text(bytes, size));
  fflush(stderr);
  run->drawn = true;
}

/* Whether there is time for what takes about so many seconds; counts it
 * otherwise. */
static bool has_time(struct run *run, double seconds)
{
  double left = (double)run->options->seconds + run->start - bench_seconds();

  if (run->options->seconds == 0 || left > seconds)
    return true;
  run->left_out++;
  return false;
}

/* Whether to go on after what could not be measured. */
static bool note_failure(struct run *run, const char *what)
{
  clear_progress(run);
  if (tool_interrupt_seen())
    return false;
  tool_error("%s: not measured", what);
  run->failed++;
  return true;
}

/* --- Sections ------------------------------------------------------------- */

/* What a layout took last, for a guess of what it takes next. */
struct taken {
  double seconds;
  size_t bytes;
};

static double guess(const struct taken *taken, size_t bytes)
{
  if (taken->bytes == 0)
    return 0;
  return taken->seconds * (double)bytes / (double)taken->bytes;
}

static bool measure_row(struct run *run, size_t index,
                        const struct bench_layout *layout, struct taken *taken)
{
  struct bench_results *results = &run->results;
  struct bench_row *row = &results->rows[results->row_count];
  const char *name = bench_layout_name(index);
  double start = bench_seconds();
  size_t bytes = bench_layout_bytes(layout);

  if (!has_time(run, guess(taken, bytes)))
    return true;
  show_progress(run, name, bytes);
  if (!bench_row_measure(&run->transfer, name, layout, run->rounds, row))
    return note_failure(run, name);
  *taken = (struct taken){bench_seconds() - start, bytes};
  results->row_count++;
  run->wrong += !row->data_ok;
  clear_progress(run);
  if (!run->options->json)
    bench_table_row(row);
  return true;
}

static bool measure_rows(struct run *run)
{
  struct taken taken[BENCH_MOST_LAYOUTS] = {{0, 0}};

  run->results.rows = calloc(run->choice.rows, sizeof(*run->results.rows));
  if (run->results.rows == NULL) {
    tool_error("out of memory");
    return false;
  }
  if (!run->options->json)
    bench_table_begin_rows(run->rounds);
  for (size_t size = 0; size < run->choice.size_count; size++)
    for (size_t i = 0; i < bench_layout_count(); i++) {
      struct bench_layout layout;

      if (bench_choice_has(&run->choice, size, i, &layout) &&
          !measure_row(run, i, &layout, &taken[i]))
        return false;
    }
  return true;
}

static bool take_small(const struct bench_pair *pair, void *user)
{
  struct run *run = user;
  struct bench_results *results = &run->results;

  if (results->small_count == BENCH_MOST_SMALL)
    return false;
  results->small[results->small_count++] = *pair;
  run->wrong += !pair->data_ok;
  clear_progress(run);
  if (!run->options->json)
    bench_table_small(pair);
  return has_time(run, 0);
}

static bool measure_small(struct run *run)
{
  size_t bytes = run->transfer.pinned_bytes;
  size_t left_out = run->left_out;

  if (run->transfer.reach < 2 * BENCH_SMALL || !has_time(run, 0))
    return true;
  show_progress(run, "small reads", BENCH_SMALL);
  if (!run->options->json)
    bench_table_begin_small();
  return bench_small_measure(&run->transfer, bytes, run->rounds, take_small,
                             run) ||
         run->left_out > left_out || note_failure(run, "small reads");
}

static bool measure_upload(struct run *run, size_t index,
                           const struct bench_layout *layout,
                           struct taken *taken)
{
  struct bench_results *results = &run->results;
  struct bench_pair *pair = &results->uploads[results->upload_count];
  const char *name = bench_layout_name(index);
  double start = bench_seconds();
  size_t bytes = bench_layout_bytes(layout);

  if (!bench_layout_writable(layout) || !has_time(run, guess(taken, bytes)))
    return true;
  show_progress(run, name, bytes);
  run->transfer.seed++;
  if (!bench_upload_measure(&run->transfer, name, layout, run->transfer.seed,
                            run->rounds, pair))
    return note_failure(run, name);
  *taken = (struct taken){bench_seconds() - start, bytes};
  results->upload_count++;
  run->wrong += !pair->data_ok;
  clear_progress(run);
  if (!run->options->json)
    bench_table_upload(pair);
  return true;
}

/* Of the largest size whose bytes are pinned here too.  Comes last: the buffer
 * is another one afterwards. */
static bool measure_uploads(struct run *run)
{
  struct taken taken = {0, 0};
  size_t size = run->choice.size_count - 1;

  while (size > 0 && run->choice.sizes[size] > run->transfer.pinned_bytes)
    size--;
  run->results.uploads =
      calloc(bench_layout_count(), sizeof(*run->results.uploads));
  if (run->results.uploads == NULL) {
    tool_error("out of memory");
    return false;
  }
  if (!run->options->json)
    bench_table_begin_uploads();
  for (size_t i = 0; i < bench_layout_count(); i++) {
    struct bench_layout layout;

    if (bench_choice_has(&run->choice, size, i, &layout) &&
        bench_layout_bytes(&layout) <= run->transfer.pinned_bytes &&
        !measure_upload(run, i, &layout, &taken))
      return false;
  }
  return true;
}

static bool measure_linear(struct run *run)
{
  size_t bytes = run->choice.bytes;

  if (!run->options->linear || !has_time(run, 0))
    return true;
  show_progress(run, "linear cost", bytes);
  if (!bench_linear_measure(&run->transfer, bytes, run->rounds,
                            &run->results.linear))
    return note_failure(run, "linear cost");
  clear_progress(run);
  run->results.has_linear = true;
  if (!run->options->json)
    bench_table_linear(&run->results.linear);
  return true;
}

/* --- All of it ------------------------------------------------------------ */

static bool measure(struct run *run)
{
  const struct bench *bench = &run->transfer.bench;

  if (!bench_choice_fit(&run->choice, run->options, bench))
    return false;
  if (!run->options->json)
    bench_print_device(bench);
  run->results.device = bench->device->name;
  run->results.platform = bench->device->platform_name;
  return bench_transfer_make(&run->transfer, run->choice.bytes,
                             run->choice.reach, true) &&
         measure_rows(run) && measure_small(run) && measure_linear(run) &&
         measure_uploads(run);
}

static int print_results(struct run *run)
{
  int result = TOOL_OK;
  clb_stats stats;

  clb_context_stats(run->transfer.bench.session.context, &stats,
                    sizeof(stats));
  run->results.pinned = stats.staging_peak;
  if (run->left_out > 0)
    tool_error("left out for lack of time: %zu", run->left_out);
  if (run->options->json)
    result = bench_json_print(&run->results);
  else
    bench_table_end(&run->results);
  if (run->options->plot != NULL &&
      !bench_plot(&run->results, run->options->plot))
    result = TOOL_FAILED;
  if (result == TOOL_OK && run->failed > 0)
    result = TOOL_FAILED;
  return result == TOOL_OK && run->wrong > 0 ? TOOL_DIFFERS : result;
}

static int finish(struct run *run, bool done)
{
  clear_progress(run);
  if (tool_interrupt_seen()) {
    tool_error("cancelled");
    return TOOL_SIGNALLED + tool_interrupt_seen();
  }
  return done ? print_results(run) : TOOL_FAILED;
}

int tool_cmd_bench(const struct tool_options *options, char **operands)
{
  static struct run run;
  int result = TOOL_FAILED;

  (void)operands;
  run.options = options;
  run.rounds = options->rounds != 0 ? options->rounds : ROUNDS;
  run.start = bench_seconds();
  if (!bench_choice_parse(&run.choice, options))
    return TOOL_USAGE;
  if (run.rounds > BENCH_MOST_ROUNDS) {
    tool_error("--rounds %zu: at most %d", run.rounds, (int)BENCH_MOST_ROUNDS);
    return TOOL_USAGE;
  }
  if (options->plot != NULL && !bench_plot_possible(options->plot))
    return TOOL_FAILED;
  if (bench_open(&run.transfer.bench, options)) {
    tool_interrupt_watch();
    result = finish(&run, measure(&run));
  }
  bench_transfer_free(&run.transfer);
  bench_stop(&run.transfer.bench);
  free(run.results.rows);
  free(run.results.uploads);
  return result;
}
