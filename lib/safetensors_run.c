/*
 * safetensors_run.c - makes the run of safetensors_run.h.
 */
#include "config.h"

#include "safetensors_run.h"

#include "bytes.h"

#include <stdlib.h>

#define NO_TENSOR SIZE_MAX

/* --- Which tensors are the same bytes --------------------------------------- */

/* A tensor that is read from a device, and where it is. */
typedef struct place {
  clb__bytes_key key;
  size_t tensor;
} place;

static int compare_places(const void *a, const void *b) {
  const place *x = a, *y = b;
  int order = clb__bytes_key_compare(&x->key, &y->key);

  return order != 0 ? order : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* Whole pages of the file that a tensor covers, in its bytes. */
static void pages_of(uint64_t at, uint64_t length, clb__tie *tie) {
  uint64_t first = (at + CLB__PAGE - 1) / CLB__PAGE * CLB__PAGE;
  uint64_t last = (at + length) / CLB__PAGE * CLB__PAGE;

  tie->from = tie->to = 0;
  if (first < last) {
    tie->from = first - at;
    tie->to = last - at;
  }
}

/* same[i]: the first tensor whose bytes tensor i has too; i itself, where there
 * is none before it. */
static clb_status find_same(const clb__file_plan *plan, size_t *same) {
  place *places = calloc(plan->count + 1, sizeof *places);
  size_t count = 0, i, first;

  if (places == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory to compare %zu tensors",
                     plan->count);
  for (i = 0; i < plan->count; i++) {
    same[i] = i;
    if (plan->tensors[i].length >= CLB__PAGE &&
        clb__bytes_key_of(plan->tensors[i].tensor->bytes, &places[count].key))
      places[count++].tensor = i;
  }
  qsort(places, count, sizeof *places, compare_places);
  for (i = 0, first = 0; i < count; i++) {
    if (clb__bytes_key_compare(&places[first].key, &places[i].key) != 0)
      first = i;
    /* Of several layouts that begin at one byte, the first one's are found. */
    else if (clb__bytes_alike(
                 plan->tensors[places[first].tensor].tensor->bytes,
                 plan->tensors[places[i].tensor].tensor->bytes))
      same[places[i].tensor] = places[first].tensor;
  }
  free(places);
  return CLB_OK;
}

/* --- Spans ------------------------------------------------------------------ */

static void add_span(clb__run *run, const clb__planned *planned, size_t tensor,
                     uint64_t at, uint64_t start, uint64_t end) {
  if (start == end)
    return;
  run->tensor[run->count] = tensor;
  run->spans[run->count++] = (clb__span){.bytes = planned->tensor->bytes,
                                         .name = planned->tensor->name,
                                         .at = at + start,
                                         .start = (size_t)start,
                                         .end = (size_t)end};
}

/* A tensor, whose bytes come by with the span of another, or its own. */
static void add_tensor(clb__run *run, const clb__planned *planned,
                       size_t tensor, uint64_t at, const clb__tie *tie) {
  add_span(run, planned, tensor, at, 0, tie->from);
  add_span(run, planned, tensor, at, tie->to, planned->length);
  if (tie->from < tie->to)
    run->ties[run->tie_count++] = *tie;
}

static int compare_ties(const void *a, const void *b) {
  const clb__tie *x = a, *y = b;

  if (x->span != y->span)
    return x->span > y->span ? 1 : -1;
  return (x->here > y->here) - (x->here < y->here);
}

/* first[i]: the span with which tensor i begins. */
static void add_tensors(const clb__file_plan *plan, const size_t *same,
                        size_t *first, clb__run *run) {
  uint64_t at = plan->head_length;
  size_t i;

  for (i = 0; i < plan->count; i++) {
    const clb__planned *planned = &plan->tensors[i];
    clb__tie tie = {.from = 0, .to = 0};
    if (same[i] != i) {
      tie.span = first[same[i]];
      tie.there = run->spans[tie.span].at;
      tie.here = at;
      tie.name = planned->tensor->name;
      pages_of(at, planned->length, &tie);
    }
    first[i] = run->count;
    add_tensor(run, planned, i, at, &tie);
    at += planned->length;
  }
  run->length = at;
  qsort(run->ties, run->tie_count, sizeof *run->ties, compare_ties);
}

clb_status clb__run_make(const clb__file_plan *plan, bool tie, clb__run *run) {
  size_t *same = calloc(plan->count + 1, sizeof *same);
  size_t *first = calloc(plan->count + 1, sizeof *first);
  clb_status status = CLB_OK;
  size_t i;

  run->spans = calloc(2 * plan->count + 1, sizeof *run->spans);
  run->tensor = calloc(2 * plan->count + 1, sizeof *run->tensor);
  run->ties = calloc(plan->count + 1, sizeof *run->ties);
  if (same == NULL || first == NULL || run->spans == NULL ||
      run->tensor == NULL || run->ties == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory to save %zu tensors",
                       plan->count);
  for (i = 0; i < plan->count && status == CLB_OK; i++)
    same[i] = i;
  if (status == CLB_OK && tie)
    status = find_same(plan, same);
  if (status == CLB_OK) {
    run->head = plan->head_length;
    run->tensor[0] = NO_TENSOR;
    run->spans[run->count++] =
        (clb__span){.data = (const unsigned char *)plan->head,
                    .end = plan->head_length};
    add_tensors(plan, same, first, run);
  }
  free(first);
  free(same);
  return status;
}

void clb__run_free(clb__run *run) {
  free(run->spans);
  free(run->tensor);
  free(run->ties);
}

/* --- Ties ------------------------------------------------------------------- */

/* The first tie whose span is not before one. */
static size_t first_tie(const clb__run *run, size_t span) {
  size_t low = 0, high = run->tie_count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (run->ties[middle].span < span)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int clb__run_tied(const clb__run *run, const clb__parcel *parcel,
                  clb__tied tied, void *user) {
  uint64_t begin = parcel->at, end = parcel->at + parcel->length;
  int result = 0;
  size_t i;

  for (i = first_tie(run, parcel->span);
       i < run->tie_count && run->ties[i].there < end && result == 0; i++) {
    const clb__tie *tie = &run->ties[i];
    uint64_t first = tie->there + tie->from, last = tie->there + tie->to;
    if (first < begin)
      first = begin;
    if (last > end)
      last = end;
    if (first < last)
      result = tied(user, tie, parcel->data + (first - begin),
                    (size_t)(last - first), tie->here + (first - tie->there));
  }
  return result;
}

static int add_length(void *user, const clb__tie *tie,
                      const unsigned char *data, size_t length, uint64_t at) {
  (void)tie;
  (void)data;
  (void)at;
  *(uint64_t *)user += length;
  return 0;
}

uint64_t clb__run_payload(const clb__run *run, const clb__parcel *parcel) {
  uint64_t end = parcel->at + parcel->length;
  uint64_t begin = parcel->at < run->head ? run->head : parcel->at;
  uint64_t payload = begin < end ? end - begin : 0;

  (void)clb__run_tied(run, parcel, add_length, &payload);
  return payload;
}
