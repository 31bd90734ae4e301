/*
 * json_memory.h - memory for yajl, which does not look at what malloc gives.
 */
#ifndef CLB_JSON_MEMORY_H
#define CLB_JSON_MEMORY_H

#include <setjmp.h>

#include <yajl/yajl_common.h>

/*
 * Every block that yajl holds is in the list.  Where one cannot be had, the
 * call into yajl is left by longjmp to failed, and nothing of yajl's may be
 * used any more but clb__json_memory_free().  Start from zeros.
 */
typedef struct clb__json_memory {
  struct clb__json_block *blocks;
  jmp_buf failed; /* setjmp() before the first call into yajl */
} clb__json_memory;

yajl_alloc_funcs clb__json_memory_funcs(clb__json_memory *memory);

/* Frees all that yajl holds, its handles included. */
void clb__json_memory_free(clb__json_memory *memory);

#endif
