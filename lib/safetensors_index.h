/*
 * safetensors_index.h - the index of a set of files: which tensor is in which.
 */
#ifndef CLB_SAFETENSORS_INDEX_H
#define CLB_SAFETENSORS_INDEX_H

#include <clbytes.h>

#include <stdint.h>

#include "arena.h"

/* How the path of an index ends. */
#define CLB__INDEX_SUFFIX ".index.json"

/* Ours, the same as that of a header. */
#define CLB__INDEX_MAX ((size_t)100000000)

typedef struct clb__index_entry {
  const char *name;  /* of a tensor */
  const char *shard; /* the name of its file, beside the index */
} clb__index_entry;

/* Start from zeros. */
typedef struct clb__index {
  clb__arena arena;
  clb__index_entry *entries; /* by shard, then by name */
  size_t count, room;
} clb__index;

/*
 * Reads the text of an index into an empty one and sorts it.  No name of a
 * file leads out of the index's directory.  Whatever it returns, index is to
 * be freed.  Messages say where in the text, not which file.
 * CLB_FORMAT_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__index_decode(const char *text, size_t length,
                             clb__index *index);

/*
 * Makes the text of an index; puts entries in the order of their names.
 *   total  bytes of all tensors; NULL: not said
 *   text   to be freed, also after a failure
 * CLB_INVALID_ARGUMENT  longer than is allowed
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__index_encode(clb__index_entry *entries, size_t count,
                             const uint64_t *total, char **text,
                             size_t *length);
void clb__index_free(clb__index *index);

#endif
