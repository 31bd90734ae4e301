/*
 * safetensors_preview.c - what a save would do, without doing it.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "bytes.h"
#include "checked.h"
#include "safetensors_run.h"
#include "safetensors_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For names of files, where the caller gives no path. */
#define ANY_PATH "model.safetensors"

/* Blocks of a chunk that a gather takes beside the save's own. */
#define GATHER_BLOCKS 4

typedef struct preview {
  clb_tensor_plan *plans; /* NULL: not wanted */
  clb_save_plan all;
  uint64_t gather; /* most bytes that one needs beside */
} preview;

/* --- One tensor ------------------------------------------------------------- */

static clb_status choose(const clb_bytes *bytes, preview *all, char *text,
                         size_t size) {
  clb__plan plan;
  clb_status status;

  if (clb_bytes_length(bytes) == 0) {
    (void)snprintf(text, size, "nothing");
    return CLB_OK;
  }
  if (atomic_load(&((clb_bytes *)bytes)->data) != NULL) {
    (void)snprintf(text, size, "on the host");
    return CLB_OK;
  }
  status = clb__bytes_choose(bytes, 0, bytes->length,
                             CLB__MAY_BE_QUICK | CLB__INTO_BLOCK | CLB__GUESS,
                             &plan);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  clb__plan_text(&plan, text, size);
  if (plan.kind == CLB_PLAN_GATHER && !clb__form_contiguous(&plan.form) &&
      clb__bytes_on_device(bytes) &&
      GATHER_BLOCKS * (uint64_t)plan.chunk > all->gather)
    all->gather = GATHER_BLOCKS * (uint64_t)plan.chunk;
  return CLB_OK;
}

/* --- One file --------------------------------------------------------------- */

/* Bytes that each tensor of a plan has of its own in the run. */
static void add_reads(const clb__run *run, uint64_t *reads) {
  for (size_t i = 1; i < run->count; i++) /* past the header */
    reads[run->tensor[i]] += run->spans[i].end - run->spans[i].start;
}

static clb_status look_at_tensors(const clb__file_plan *plan, size_t file,
                                  const uint64_t *reads, preview *all) {
  uint64_t at = plan->head_length;
  clb_status status = CLB_OK;

  for (size_t i = 0; i < plan->count && status == CLB_OK; i++) {
    const clb__planned *planned = &plan->tensors[i];
    clb_tensor_plan one = {.file = file,
                           .offset = at,
                           .bytes = planned->length,
                           .read = reads[i]};
    status = choose(planned->tensor->bytes, all, one.plan, sizeof one.plan);
    if (status != CLB_OK)
      return clb__fail_prefix(status, "tensor \"%.100s\"",
                              planned->tensor->name);
    at += planned->length;
    all->all.read_bytes += one.read;
    if (all->plans != NULL)
      *all->plans++ = one;
  }
  all->all.file_bytes += at;
  return CLB_OK;
}

static clb_status measure_memory(clb__run *run, preview *all) {
  clb__pipeline *pipeline;
  clb_status status =
      clb__pipeline_open(run->spans, run->count, false, &pipeline);
  uint64_t bytes;

  if (status != CLB_OK)
    return status;
  bytes = clb__pipeline_memory(pipeline);
  if (bytes > all->all.peak_memory)
    all->all.peak_memory = bytes;
  clb__pipeline_close(pipeline);
  return CLB_OK;
}

static clb_status look_at_file(const clb__file_plan *plan, size_t file,
                               preview *all) {
  uint64_t *reads = calloc(plan->count + 1, sizeof *reads);
  clb__run run = {.count = 0};
  clb_status status = clb__run_make(plan, true, &run);

  if (status == CLB_OK && reads == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory to plan %zu tensors",
                       plan->count);
  if (status == CLB_OK) {
    add_reads(&run, reads);
    status = look_at_tensors(plan, file, reads, all);
  }
  if (status == CLB_OK)
    status = measure_memory(&run, all);
  clb__run_free(&run);
  free(reads);
  return status;
}

/* --- All of them ------------------------------------------------------------ */

static clb_status look_at_set(const clb__shard_set *set,
                              const clb_tensor *tensors, preview *all) {
  clb_tensor_plan *plans = all->plans;
  clb_status status = CLB_OK;

  all->all.files = set->count;
  all->all.file_bytes = set->index_length;
  all->all.tensor_bytes = set->data_length;
  for (size_t s = 0; s < set->count && status == CLB_OK; s++) {
    const clb__file_plan *plan = &set->shards[s].plan;
    status = look_at_file(plan, s, all);
    for (size_t i = 0; i < plan->count && plans != NULL; i++, plans++)
      plans->index =
          set->tensors == NULL
              ? (size_t)(plan->tensors[i].tensor - tensors)
              : set->index_of[plan->tensors[i].tensor - set->tensors];
  }
  all->all.peak_memory += all->gather;
  return status;
}

clb_status clb_safetensors_plan(const char *path, const clb_tensor *tensors,
                                size_t count, const clb_save_options *options,
                                clb_tensor_plan *plans, clb_save_plan *out) {
  clb__shard_set set = {.count = 0};
  preview all = {.gather = 0};
  clb_tensor_plan *own = NULL;
  clb_save_options known;
  clb_status status = clb__save_options_read("clb_safetensors_plan", tensors,
                                             count, options, &known);

  if (status == CLB_OK && plans != NULL &&
      (own = calloc(count + 1, sizeof *own)) == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory to plan %zu tensors",
                       count);
  if (status == CLB_OK)
    status = clb__shard_set_make(path != NULL ? path : ANY_PATH, tensors, count,
                                 &known, &set);
  all.plans = own;
  if (status == CLB_OK)
    status = look_at_set(&set, tensors, &all);
  if (status == CLB_OK && plans != NULL)
    memcpy(plans, own, count * sizeof *plans);
  if (status == CLB_OK && out != NULL)
    *out = all.all;
  clb__shard_set_free(&set);
  free(own);
  return status;
}
