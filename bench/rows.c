/* Measures one layout, and makes figures of it. */
#include "config.h"

#include "rows.h"

#include <string.h>

static void note_figures(const struct bench_job *jobs, struct bench_row *row)
{
  const struct bench_job *ours = &jobs[row->ours];

  for (size_t way = 0; way < BENCH_WAYS; way++) {
    row->rounds[way] = jobs[way].rounds;
    if (jobs[way].rounds == 0)
      continue;
    row->rate[way] = bench_rate(&jobs[way], row->bytes);
    row->faster[way] = bench_ratio(&jobs[way], ours);
  }
}

static void note_state(struct bench_transfer *transfer, struct bench_row *row)
{
  clb_stats stats;

  clb_context_stats(transfer->bench.session.context, &stats, sizeof(stats));
  row->pinned = stats.staging_peak;
  if (clb_bytes_plan(transfer->handle, row->plan, sizeof(row->plan)) != CLB_OK)
    strcpy(row->plan, "?");
}

/* A way of the library's that is not compared is left out where the device
 * shares its memory: there a stream moves less than what it is beside. */
static bool wanted(const struct bench_transfer *transfer, size_t way)
{
  return way != BENCH_STREAM || !transfer->shared;
}

bool bench_row_measure(struct bench_transfer *transfer, const char *name,
                       const struct bench_layout *layout, size_t rounds,
                       struct bench_row *out)
{
  static struct bench_job jobs[BENCH_WAYS];
  struct bench_job *list[BENCH_WAYS];
  struct bench_row row = {.layout = name,
                          .ours = transfer->shared ? BENCH_COPY : BENCH_STREAM};
  size_t count = 0;

  if (!bench_transfer_take(transfer, layout))
    return false;
  row.bytes = transfer->length;
  for (size_t way = 0; way < BENCH_WAYS; way++) {
    jobs[way].batch = bench_batch(row.bytes);
    if (bench_transfer_job(transfer, (enum bench_way)way, &jobs[way]) &&
        wanted(transfer, way))
      list[count++] = &jobs[way];
  }
  memset(transfer->ours, 0xee,
         row.bytes < transfer->pageable_bytes ? row.bytes
                                              : transfer->pageable_bytes);
  if (!bench_interleave(list, count, rounds))
    return false;
  note_figures(jobs, &row);
  note_state(transfer, &row);
  row.data_ok = bench_transfer_check(transfer, jobs[BENCH_COPY].rounds > 0);
  *out = row;
  return true;
}
