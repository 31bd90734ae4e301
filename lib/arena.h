/*
 * arena.h - memory for many small things that are freed together.
 */
#ifndef CLB_ARENA_H
#define CLB_ARENA_H

#include <stddef.h>

/* All zero: empty. */
typedef struct clb__arena {
  struct clb__arena_block *blocks; /* the newest first */
  size_t used, size;               /* of the newest */
} clb__arena;

/* size bytes, aligned to align, a power of two; NULL: no memory. */
void *clb__arena_alloc(clb__arena *arena, size_t size, size_t align);

/* A string of these length bytes and a NUL. */
char *clb__arena_string(clb__arena *arena, const char *text, size_t length);

void clb__arena_free(clb__arena *arena);

#endif
