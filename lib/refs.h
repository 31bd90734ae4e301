/*
 * refs.h - reference counts.
 */
#ifndef CLB_REFS_H
#define CLB_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

/* One reference less; how many are left.  After the last, all that the others
 * did is seen.  By a load, not a fence: ThreadSanitizer knows no fences. */
static inline size_t clb__refs_left(atomic_size_t *refs) {
  size_t left = atomic_fetch_sub_explicit(refs, 1, memory_order_release) - 1;

  if (left == 0)
    (void)atomic_load_explicit(refs, memory_order_acquire);
  return left;
}

static inline bool clb__refs_last(atomic_size_t *refs) {
  return clb__refs_left(refs) == 0;
}

/* The same for a handle, which has to be small. */
static inline bool clb__small_refs_last(atomic_uint *refs) {
  if (atomic_fetch_sub_explicit(refs, 1, memory_order_release) != 1)
    return false;
  (void)atomic_load_explicit(refs, memory_order_acquire);
  return true;
}

#endif
