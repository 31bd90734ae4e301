/*
 * safetensors_index.h - the index of a set of files: which tensor is in which.
 */
#ifndef CLB_SAFETENSORS_INDEX_H
#define CLB_SAFETENSORS_INDEX_H

#include <clbytes.h>

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
void clb__index_free(clb__index *index);

#endif
