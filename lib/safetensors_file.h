/*
 * safetensors_file.h - what an open file is made of.
 */
#ifndef CLB_SAFETENSORS_FILE_H
#define CLB_SAFETENSORS_FILE_H

#include "safetensors_header.h"

struct clb_safetensors {
  clb__header header;
  clb__arena *arenas; /* of a set: the strings and shapes of each shard */
  size_t arena_count;
};

#endif
