/*
 * arena.c - memory for many small things that are freed together.
 *
 * Blocks are never moved or copied, so that the memory held stays close to
 * what was asked for, while growing too.
 */
#include "config.h"

#include "arena.h"

#include "checked.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

struct clb__arena_block {
  struct clb__arena_block *next;
  max_align_t data[];
};

static char *start_block(clb__arena *arena, size_t size) {
  struct clb__arena_block *block;
  size_t total;

  if (clb__add_size(sizeof *block, size, &total))
    return NULL;
  block = malloc(total);
  if (block == NULL)
    return NULL;
  block->next = arena->blocks;
  arena->blocks = block;
  arena->size = size;
  arena->used = 0;
  return (char *)block->data;
}

void *clb__arena_alloc(clb__arena *arena, size_t size, size_t align) {
  size_t start = (arena->used + align - 1) & ~(align - 1);
  char *data;

  if (arena->blocks != NULL && start <= arena->size &&
      size <= arena->size - start) {
    data = (char *)arena->blocks->data;
  } else {
    data = start_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE);
    if (data == NULL)
      return NULL;
    start = 0;
  }
  arena->used = start + size;
  return data + start;
}

char *clb__arena_string(clb__arena *arena, const char *text, size_t length) {
  char *copy = clb__arena_alloc(arena, length + 1, 1);

  if (copy != NULL) {
    memcpy(copy, text, length);
    copy[length] = '\0';
  }
  return copy;
}

void clb__arena_free(clb__arena *arena) {
  while (arena->blocks != NULL) {
    struct clb__arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->used = arena->size = 0;
}
