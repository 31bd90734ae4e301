/*
 * safetensors_header.h - the header of a file: its tensors and metadata.
 */
#ifndef CLB_SAFETENSORS_HEADER_H
#define CLB_SAFETENSORS_HEADER_H

#include <clbytes/safetensors.h>

#include "arena.h"
#include "safetensors_dtype.h"

/* The format's limit on the header's text, padding included, and ours on a
 * tensor's dimensions. */
#define CLB__HEADER_MAX ((size_t)100000000)
#define CLB__RANK_MAX 64
#define CLB__METADATA_KEY "__metadata__"

typedef struct clb__entry {
  clb_tensor tensor; /* strings and shape are in the arena; bytes NULL */
  uint64_t begin, end; /* from the start of the data */
} clb__entry;

/* Start from zeros. */
typedef struct clb__header {
  clb__arena arena;
  clb__entry *entries;
  size_t count, room;
  clb__entry **by_name; /* count of them; clb__header_check() makes it */
  clb_pair *pairs;
  size_t pair_count, pair_room;
} clb__header;

/*
 * Reads the text of a header into an empty one.  Whatever it returns, header
 * is to be freed.  Messages say where in the text, not which file.
 * CLB_FORMAT_ERROR, CLB_OUT_OF_RANGE (an extent above SIZE_MAX),
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__header_decode(const char *text, size_t length,
                              clb__header *header);

/*
 * Checks that names and keys differ, that each shape fits its offsets and that
 * the tensors cover data_length bytes without hole or overlap; puts entries in
 * the order of their data and makes by_name.
 * CLB_FORMAT_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__header_check(clb__header *header, uint64_t data_length);

/* Makes by_name alone, of names that differ.
 * CLB_FORMAT_ERROR, CLB_OUT_OF_MEMORY */
clb_status clb__header_index(clb__header *header);

/* NULL: none. */
const clb__entry *clb__header_find(const clb__header *header,
                                   const char *name);

/* Releases the handles that entries have, and all memory. */
void clb__header_free(clb__header *header);

#endif
