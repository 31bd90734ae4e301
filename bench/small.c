/* Reads that are small, or end in another kind of memory. */
#include "config.h"

#include "beside.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_ROUNDS = 501, STRIDED_ROW = 64 };

/* One kind of read. */
struct read {
  struct bench_transfer *transfer;
  void *to;         /* of clb_host_alloc() */
  clb_bytes *fresh; /* made to be read once */
  const void *data; /* what it gave */
  void *raw;        /* of malloc, as fresh */
};

/* --- Ways ----------------------------------------------------------------- */

static bool fresh_read(struct read *read, clb_access access)
{
  return bench_handle(&read->transfer->bench, read->transfer->buffer,
                      &read->transfer->layout, &read->fresh) &&
         bench_ok(clb_bytes_read(read->fresh, access, &read->data),
                  access == CLB_MAP ? "CLB_MAP" : "clb_bytes_read");
}

static void drop_fresh(void *user)
{
  struct read *read = user;

  clb_bytes_release(read->fresh);
  read->fresh = NULL;
}

static bool run_fresh(void *user)
{
  return fresh_read(user, CLB_COPY);
}

static bool run_map(void *user)
{
  return fresh_read(user, CLB_MAP);
}

/* A handle's whole life counts where it is short. */
static bool run_life(void *user)
{
  bool done = run_fresh(user);

  drop_fresh(user);
  return done;
}

static bool run_host_alloc(void *user)
{
  struct read *read = user;

  return bench_ok(clb_bytes_copy_into(read->transfer->handle, 0, read->to,
                                      read->transfer->length),
                  "clb_bytes_copy_into");
}

static bool run_fresh_raw(void *user)
{
  struct read *read = user;
  struct bench_transfer *transfer = read->transfer;

  read->raw = malloc(transfer->length);
  return read->raw != NULL &&
         bench_cl_ok(clEnqueueReadBuffer(transfer->bench.session.queue,
                                         transfer->buffer, CL_TRUE, 0,
                                         transfer->length, read->raw, 0, NULL,
                                         NULL),
                     "clEnqueueReadBuffer");
}

static void drop_fresh_raw(void *user)
{
  struct read *read = user;

  free(read->raw);
  read->raw = NULL;
}

/* --- Pairs ---------------------------------------------------------------- */

static bool measure(struct bench_job *ours, struct bench_job *raw,
                    size_t rounds, struct bench_pair *pair)
{
  struct bench_job *jobs[] = {ours, raw};

  if (!bench_interleave(jobs, raw != NULL ? 2 : 1, rounds))
    return false;
  pair->ours = bench_time(ours);
  if (raw == NULL || raw->rounds == 0) {
    pair->raw_what = NULL;
    return true;
  }
  pair->raw = bench_time(raw);
  pair->ratio = bench_ratio(ours, raw);
  return true;
}

/* The layout is at hand; copies are beside the raw way. */
static bool measure_copy(struct bench_transfer *transfer, const char *what,
                         enum bench_way way, const char *raw_what,
                         struct bench_pair *out)
{
  static struct bench_job copy, raw;
  struct bench_pair pair = {what, raw_what, transfer->length, .data_ok = false};

  memset(transfer->ours, 0xee, transfer->length);
  if (!bench_transfer_job(transfer, BENCH_COPY, &copy) ||
      !bench_transfer_job(transfer, way, &raw) ||
      !measure(&copy, &raw, SMALL_ROUNDS, &pair))
    return false;
  pair.data_ok = bench_transfer_check(transfer, true);
  *out = pair;
  return true;
}

static bool check_fresh(struct read *read, clb_access access)
{
  struct bench_transfer *transfer = read->transfer;
  bool right = fresh_read(read, access) &&
               bench_check_memory("read", &transfer->layout, transfer->seed,
                                  read->data, transfer->length);

  drop_fresh(read);
  return right;
}

static bool measure_life(struct bench_transfer *transfer,
                         struct bench_pair *out)
{
  static struct bench_job life, raw;
  struct read read = {.transfer = transfer};
  struct bench_pair pair = {"read of a fresh handle", "blocking read",
                            transfer->length, .data_ok = false};

  life = (struct bench_job){.run = run_life, .user = &read};
  if (!bench_transfer_job(transfer, BENCH_PAGEABLE, &raw) ||
      !measure(&life, &raw, SMALL_ROUNDS, &pair))
    return false;
  pair.data_ok = check_fresh(&read, CLB_COPY);
  *out = pair;
  return true;
}

static bool measure_fresh(struct bench_transfer *transfer, size_t rounds,
                          struct bench_pair *out)
{
  static struct bench_job fresh, raw;
  struct read read = {.transfer = transfer};
  struct bench_pair pair = {"read into a fresh result",
                            "blocking read into fresh memory",
                            transfer->length, .data_ok = false};

  fresh = (struct bench_job){
      .run = run_fresh, .after = drop_fresh, .user = &read};
  raw = (struct bench_job){.run = run_fresh_raw,
                           .after = drop_fresh_raw,
                           .user = &read,
                           .optional = true};
  if (!measure(&fresh, &raw, rounds, &pair))
    return false;
  pair.data_ok = check_fresh(&read, CLB_COPY);
  *out = pair;
  return true;
}

static bool measure_host_alloc(struct bench_transfer *transfer, size_t rounds,
                               struct bench_pair *out)
{
  static struct bench_job ours, raw;
  clb_context *context = transfer->bench.session.context;
  struct read read = {.transfer = transfer};
  struct bench_pair pair = {"copy_into clb_host_alloc memory",
                            "read into pinned memory", transfer->length,
                            .data_ok = false};
  bool done;

  if (!bench_ok(clb_host_alloc(context, transfer->length, &read.to),
                "clb_host_alloc"))
    return false;
  memset(read.to, 0xee, transfer->length);
  ours = (struct bench_job){.run = run_host_alloc, .user = &read};
  done = bench_transfer_job(transfer, BENCH_LINK, &raw) &&
         measure(&ours, &raw, rounds, &pair);
  if (done) {
    pair.data_ok = bench_check_memory("copied", &transfer->layout,
                                      transfer->seed, read.to,
                                      transfer->length);
    *out = pair;
  }
  clb_host_free(context, read.to);
  return done;
}

/* Whether the device maps without a copy, which is no failure. */
static bool maps(struct bench_transfer *transfer)
{
  const void *data;
  clb_bytes *bytes;
  bool is;

  if (!bench_handle(&transfer->bench, transfer->buffer, &transfer->layout,
                    &bytes))
    return false;
  is = clb_bytes_read(bytes, CLB_MAP, &data) == CLB_OK;
  clb_bytes_release(bytes);
  return is;
}

static bool measure_map(struct bench_transfer *transfer, size_t rounds,
                        struct bench_pair *out)
{
  static struct bench_job map;
  struct read read = {.transfer = transfer};
  struct bench_pair pair = {"mapped", NULL, transfer->length,
                            .data_ok = false};

  map = (struct bench_job){.run = run_map, .after = drop_fresh, .user = &read};
  if (!measure(&map, NULL, rounds, &pair))
    return false;
  pair.data_ok = check_fresh(&read, CLB_MAP);
  *out = pair;
  return true;
}

/* --- All of them ---------------------------------------------------------- */

static bool take_contiguous(struct bench_transfer *transfer, size_t bytes)
{
  struct bench_layout layout = bench_contiguous(bytes);

  return bench_transfer_take(transfer, &layout);
}

/* Rows of a few bytes; both ways end in the same kind of memory. */
static bool measure_strided(struct bench_transfer *transfer,
                            struct bench_pair *out)
{
  struct bench_layout layout =
      bench_padded(BENCH_SMALL, STRIDED_ROW, STRIDED_ROW);

  if (!bench_transfer_take(transfer, &layout))
    return false;
  transfer->rect_pageable = true;
  return measure_copy(transfer, "copy_into, rows of 64 bytes", BENCH_RECT,
                      "blocking rectangle", out);
}

static bool measure_small(struct bench_transfer *transfer, bench_take_pair take,
                          void *user)
{
  struct bench_pair pair;

  return take_contiguous(transfer, BENCH_SMALL) &&
         measure_copy(transfer, "copy_into", BENCH_PAGEABLE, "blocking read",
                      &pair) &&
         take(&pair, user) && measure_life(transfer, &pair) &&
         take(&pair, user) &&
         (!maps(transfer) || (measure_map(transfer, SMALL_ROUNDS, &pair) &&
                              take(&pair, user))) &&
         measure_strided(transfer, &pair) && take(&pair, user);
}

bool bench_small_measure(struct bench_transfer *transfer, size_t bytes,
                         size_t rounds, bench_take_pair take, void *user)
{
  struct bench_pair pair;

  return measure_small(transfer, take, user) &&
         take_contiguous(transfer, bytes) &&
         (!maps(transfer) ||
          (measure_map(transfer, rounds, &pair) && take(&pair, user))) &&
         measure_fresh(transfer, rounds, &pair) && take(&pair, user) &&
         measure_host_alloc(transfer, rounds, &pair) && take(&pair, user);
}
