/*
 * json_memory.c - memory for yajl, which does not look at what malloc gives.
 *
 * yajl 2.1 writes through the result of malloc and realloc unchecked, so a
 * failure must not come back to it.
 */
#include "config.h"

#include "json_memory.h"

#include "checked.h"

#include <stdlib.h>

struct clb__json_block {
  struct clb__json_block *next, **link; /* link: what points to this one */
  max_align_t data[];
};

static struct clb__json_block *block_of(void *data) {
  return (struct clb__json_block *)((char *)data -
                                    offsetof(struct clb__json_block, data));
}

static void *change(void *context, void *data, size_t size) {
  clb__json_memory *memory = context;
  struct clb__json_block *old = data == NULL ? NULL : block_of(data), *block;
  size_t total;

  if (clb__add_size(sizeof *block, size, &total) ||
      (block = realloc(old, total)) == NULL)
    longjmp(memory->failed, 1);
  if (old == NULL) {
    block->next = memory->blocks;
    block->link = &memory->blocks;
  }
  *block->link = block;
  if (block->next != NULL)
    block->next->link = &block->next;
  return block->data;
}

static void *allocate(void *context, size_t size) {
  return change(context, NULL, size);
}

static void release(void *context, void *data) {
  struct clb__json_block *block;

  (void)context;
  if (data == NULL)
    return;
  block = block_of(data);
  *block->link = block->next;
  if (block->next != NULL)
    block->next->link = block->link;
  free(block);
}

yajl_alloc_funcs clb__json_memory_funcs(clb__json_memory *memory) {
  yajl_alloc_funcs funcs = {allocate, change, release, memory};
  return funcs;
}

void clb__json_memory_free(clb__json_memory *memory) {
  while (memory->blocks != NULL)
    release(memory, memory->blocks->data);
}
