/*
 * safetensors_header.c - what the tensors of a header are together.
 *
 * Owns order, uniqueness, the fit of shapes and offsets, and the search by
 * name; knows nothing of JSON or of files.
 */
#include "config.h"

#include "safetensors_header.h"

#include "checked.h"
#include "error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Empty tensors share their offsets: the name decides then, so that the order
 * is that of the file alone. */
static int compare_data(const void *a, const void *b) {
  const clb__entry *x = a, *y = b;

  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end)
    return x->end < y->end ? -1 : 1;
  return strcmp(x->tensor.name, y->tensor.name);
}

static int compare_names(const void *a, const void *b) {
  const clb__entry *const *x = a, *const *y = b;
  return strcmp((*x)->tensor.name, (*y)->tensor.name);
}

static int compare_keys(const void *a, const void *b) {
  const clb_pair *const *x = a, *const *y = b;
  return strcmp((*x)->key, (*y)->key);
}

static clb_status check_entry(const clb__entry *entry, uint64_t data_length) {
  const clb_tensor *t = &entry->tensor;
  const clb__dtype *dtype = clb__dtype_find(t->dtype, strlen(t->dtype));
  uint64_t length;
  char shape[128];

  if (entry->begin > entry->end)
    return clb__fail(CLB_FORMAT_ERROR,
                     "tensor \"%.100s\": data_offsets %" PRIu64 " and %" PRIu64
                     " are reversed",
                     t->name, entry->begin, entry->end);
  if (entry->end > data_length)
    return clb__fail(CLB_FORMAT_ERROR,
                     "tensor \"%.100s\": data_offsets %" PRIu64 " to %" PRIu64
                     " reach past the file's %" PRIu64 " bytes of data",
                     t->name, entry->begin, entry->end, data_length);
  clb__shape_text(shape, sizeof shape, t->ndim, t->shape);
  if (!clb__dtype_length(dtype, t->ndim, t->shape, &length))
    return clb__fail(CLB_FORMAT_ERROR,
                     "tensor \"%.100s\": shape %s of %s overflows or is no "
                     "whole number of bytes",
                     t->name, shape, t->dtype);
  if (length != entry->end - entry->begin)
    return clb__fail(CLB_FORMAT_ERROR,
                     "tensor \"%.100s\": shape %s of %s has %" PRIu64
                     " bytes, data_offsets %" PRIu64 " to %" PRIu64
                     " have %" PRIu64,
                     t->name, shape, t->dtype, length, entry->begin, entry->end,
                     entry->end - entry->begin);
  return CLB_OK;
}

/* Entries are in the order of their data. */
static clb_status check_cover(const clb__header *header,
                              uint64_t data_length) {
  uint64_t at = 0;

  for (size_t i = 0; i < header->count; i++) {
    const clb__entry *entry = &header->entries[i];
    if (entry->begin != at)
      return clb__fail(CLB_FORMAT_ERROR,
                       "tensor \"%.100s\": data_offsets begin at %" PRIu64
                       ", the data before end at %" PRIu64 ": %s",
                       entry->tensor.name, entry->begin, at,
                       entry->begin > at ? "a hole" : "an overlap");
    at = entry->end;
  }
  if (at != data_length)
    return clb__fail(CLB_FORMAT_ERROR,
                     "the tensors have %" PRIu64 " bytes, the file has %" PRIu64
                     " bytes of data",
                     at, data_length);
  return CLB_OK;
}

clb_status clb__header_index(clb__header *header) {
  header->by_name = calloc(header->count + 1, sizeof *header->by_name);
  if (header->by_name == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu names",
                     header->count);
  for (size_t i = 0; i < header->count; i++)
    header->by_name[i] = &header->entries[i];
  qsort(header->by_name, header->count, sizeof *header->by_name,
        compare_names);
  for (size_t i = 1; i < header->count; i++)
    if (compare_names(&header->by_name[i - 1], &header->by_name[i]) == 0)
      return clb__fail(CLB_FORMAT_ERROR, "tensor \"%.100s\" is given twice",
                       header->by_name[i]->tensor.name);
  return CLB_OK;
}

static clb_status check_pairs(const clb__header *header) {
  const clb_pair **sorted = calloc(header->pair_count + 1, sizeof *sorted);
  clb_status status = CLB_OK;

  if (sorted == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu metadata pairs",
                     header->pair_count);
  for (size_t i = 0; i < header->pair_count; i++)
    sorted[i] = &header->pairs[i];
  qsort(sorted, header->pair_count, sizeof *sorted, compare_keys);
  for (size_t i = 1; i < header->pair_count && status == CLB_OK; i++)
    if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
      status = clb__fail(CLB_FORMAT_ERROR, "metadata \"%.100s\" is given twice",
                         sorted[i]->key);
  free(sorted);
  return status;
}

clb_status clb__header_check(clb__header *header, uint64_t data_length) {
  clb_status status = CLB_OK;

  for (size_t i = 0; i < header->count && status == CLB_OK; i++)
    status = check_entry(&header->entries[i], data_length);
  if (status != CLB_OK)
    return status;
  if (header->count > 0)
    qsort(header->entries, header->count, sizeof *header->entries,
          compare_data);
  status = clb__header_index(header);
  if (status == CLB_OK)
    status = check_cover(header, data_length);
  if (status == CLB_OK)
    status = check_pairs(header);
  return status;
}

const clb__entry *clb__header_find(const clb__header *header,
                                   const char *name) {
  const clb__entry key = {{name, NULL, 0, NULL, NULL}, 0, 0};
  const clb__entry *wanted = &key, *const *found;

  found = bsearch(&wanted, header->by_name, header->count,
                  sizeof *header->by_name, compare_names);
  return found == NULL ? NULL : *found;
}

void clb__header_free(clb__header *header) {
  for (size_t i = 0; i < header->count; i++)
    clb_bytes_release(header->entries[i].tensor.bytes);
  free(header->by_name);
  free(header->entries);
  free(header->pairs);
  clb__arena_free(&header->arena);
}
