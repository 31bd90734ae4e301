/*
 * safetensors_shards.h - the files of a save: one, or several and an index.
 */
#ifndef CLB_SAFETENSORS_SHARDS_H
#define CLB_SAFETENSORS_SHARDS_H

#include "safetensors_plan.h"

typedef struct clb__shard {
  char *path;
  clb__file_plan plan;
} clb__shard;

/* Start from zeros. */
typedef struct clb__shard_set {
  clb_tensor *tensors; /* the caller's, shard by shard; the plans point there.
                          NULL where one file suffices */
  size_t *index_of;     /* where each of them is in the caller's array */
  clb__shard *shards;
  size_t count;         /* at least 1 */
  uint64_t data_length; /* of all */
  char *index_path;     /* NULL where one file suffices */
  char *index;          /* its text */
  size_t index_length;
} clb__shard_set;

/*
 * Checks all that can be checked before anything is written, and plans every
 * file.  Whatever it returns, set is to be freed.
 *   options  whole, not NULL; its metadata and max_shard_size are used
 * CLB_INVALID_ARGUMENT, CLB_OUT_OF_MEMORY
 */
clb_status clb__shard_set_make(const char *path, const clb_tensor *tensors,
                               size_t count, const clb_save_options *options,
                               clb__shard_set *set);
void clb__shard_set_free(clb__shard_set *set);

#endif
