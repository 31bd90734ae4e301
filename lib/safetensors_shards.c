/*
 * safetensors_shards.c - the files of a save: one, or several and an index.
 *
 * Owns which tensor goes where and what the files are called; each file's plan is as if it were saved alone.  Division and names
 * are those of huggingface_hub.
 */
#include "config.h"

#include "safetensors_shards.h"

#include "checked.h"
#include "error.h"
#include "safetensors_index.h"
#include "utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".safetensors"
#define NUMBERS "-%05zu-of-%05zu"
#define NUMBERS_MAX 64 /* characters of that, and the NUL */

/* --- Which tensor goes where ---------------------------------------------- */

/* Sets the shard of each tensor and returns the number of shards.  A tensor
 * larger than most has a shard of its own, and the one that is being filled is
 * filled on after it; shards are numbered in the order in which they are
 * closed. */
static size_t divide(const clb_tensor *tensors, size_t count, uint64_t most,
                     size_t *shards) {
  const size_t open = SIZE_MAX; /* for now */
  size_t closed = 0, waiting = 0; /* waiting: the first that may be open */
  uint64_t filled = 0;

  for (size_t i = 0; i < count; i++) {
    uint64_t length = clb_bytes_length(tensors[i].bytes);
    if (length > most) {
      shards[i] = closed++;
      continue;
    }
    if (length > most - filled) {
      for (; waiting < i; waiting++)
        if (shards[waiting] == open)
          shards[waiting] = closed;
      closed++;
      filled = 0;
    }
    shards[i] = open;
    filled += length;
  }
  for (size_t i = waiting, last = closed; i < count; i++)
    if (shards[i] == open) {
      shards[i] = last;
      closed = last + 1;
    }
  return closed == 0 ? 1 : closed;
}

/* Puts the tensors in the order of their shards; first[i] is where those of
 * shard i begin, first[set->count] the end. */
static void order_tensors(const clb_tensor *tensors, size_t count,
                          const size_t *shards, size_t *first,
                          clb__shard_set *set) {
  for (size_t i = 0; i < count; i++)
    first[shards[i] + 1]++;
  for (size_t s = 0; s < set->count; s++)
    first[s + 1] += first[s];
  for (size_t i = 0; i < count; i++) {
    set->index_of[first[shards[i]]] = i;
    set->tensors[first[shards[i]]++] = tensors[i];
  }
  for (size_t s = set->count; s > 0; s--)
    first[s] = first[s - 1];
  first[0] = 0;
}

/* --- Names ---------------------------------------------------------------- */

static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static char *join(const char *start, size_t length, const char *middle,
                  const char *end) {
  char *path = malloc(length + strlen(middle) + strlen(end) + 1);

  if (path != NULL)
    (void)sprintf(path, "%.*s%s%s", (int)length, start, middle, end);
  return path;
}

static clb_status name_files(const char *path, clb__shard_set *set) {
  size_t length = strlen(path), end = strlen(SUFFIX);
  const char *name = last_name(path);
  bool named = true;

  if (length > INT32_MAX || *name == '\0')
    return clb__fail(CLB_INVALID_ARGUMENT, "%.100s: not a regular file", path);
  if (clb__utf8_span(name, strlen(name)) != strlen(name))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%s: a name that an index has must be UTF-8", path);
  if (strlen(name) >= end && strcmp(path + length - end, SUFFIX) == 0)
    length -= end;
  set->index_path = join(path, length, SUFFIX, CLB__INDEX_SUFFIX);
  for (size_t s = 0; s < set->count && named; s++) {
    char numbers[NUMBERS_MAX];
    (void)snprintf(numbers, sizeof numbers, NUMBERS, s + 1, set->count);
    set->shards[s].path = join(path, length, numbers, SUFFIX);
    named = set->shards[s].path != NULL;
  }
  return named && set->index_path != NULL
             ? CLB_OK
             : clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for the paths of "
                         "%zu shards", path, set->count);
}

/* --- The index ------------------------------------------------------------ */

static clb_status write_index(clb__shard_set *set, size_t count) {
  clb__index_entry *entries = calloc(count, sizeof *entries);
  size_t i = 0;
  clb_status status;

  if (entries == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for an index of %zu tensors",
                     count);
  for (size_t s = 0; s < set->count; s++)
    for (size_t t = 0; t < set->shards[s].plan.count; t++)
      entries[i++] =
          (clb__index_entry){set->shards[s].plan.tensors[t].tensor->name,
                             last_name(set->shards[s].path)};
  status = clb__index_encode(entries, count, &set->data_length, &set->index,
                             &set->index_length);
  free(entries);
  return status;
}

/* --- The whole ------------------------------------------------------------ */

static clb_status make_shards(size_t count, clb__shard_set *set) {
  set->shards = calloc(count, sizeof *set->shards);
  if (set->shards == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu shards", count);
  set->count = count;
  return CLB_OK;
}

static clb_status make_one(const char *path, const clb_tensor *tensors,
                           size_t count, const clb_save_options *options,
                           clb__shard_set *set) {
  clb_status status = make_shards(1, set);

  if (status != CLB_OK)
    return status;
  set->shards[0].path = strdup(path);
  if (set->shards[0].path == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for the path");
  status = clb__file_plan_make(tensors, count, options, &set->shards[0].plan);
  set->data_length = set->shards[0].plan.data_length;
  return status;
}

static clb_status make_several(const char *path, const clb_tensor *tensors,
                               size_t count, const clb_save_options *options,
                               const size_t *shards, clb__shard_set *set) {
  size_t *first = calloc(set->count + 1, sizeof *first);
  clb_status status;

  set->tensors = calloc(count, sizeof *set->tensors);
  set->index_of = calloc(count, sizeof *set->index_of);
  if (first == NULL || set->tensors == NULL || set->index_of == NULL) {
    free(first);
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu shards", set->count);
  }
  order_tensors(tensors, count, shards, first, set);
  status = name_files(path, set);
  for (size_t s = 0; s < set->count && status == CLB_OK; s++)
    status = clb__file_plan_make(set->tensors + first[s],
                                 first[s + 1] - first[s], options,
                                 &set->shards[s].plan);
  free(first);
  return status == CLB_OK ? write_index(set, count) : status;
}

clb_status clb__shard_set_make(const char *path, const clb_tensor *tensors,
                               size_t count, const clb_save_options *options,
                               clb__shard_set *set) {
  size_t *shards, number;
  clb_status status;

  if (options->max_shard_size == 0)
    return make_one(path, tensors, count, options, set);
  status = clb__tensors_check(tensors, count, options, &set->data_length);
  if (status != CLB_OK)
    return status;
  shards = calloc(count + 1, sizeof *shards);
  if (shards == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory to divide %zu tensors",
                     count);
  number = divide(tensors, count, options->max_shard_size, shards);
  if (number == 1)
    status = make_one(path, tensors, count, options, set);
  else if ((status = make_shards(number, set)) == CLB_OK)
    status = make_several(path, tensors, count, options, shards, set);
  free(shards);
  return status;
}

void clb__shard_set_free(clb__shard_set *set) {
  for (size_t s = 0; s < set->count; s++) {
    clb__file_plan_free(&set->shards[s].plan);
    free(set->shards[s].path);
  }
  free(set->shards);
  free(set->tensors);
  free(set->index_of);
  free(set->index_path);
  free(set->index);
}
