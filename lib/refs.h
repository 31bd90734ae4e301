/*
 * refs.h - reference counts.
 */
#ifndef CLB_REFS_H
#define CLB_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

/* One reference less; whether it was the last, after which all that the others
 * did is seen.  By a load, not a fence: ThreadSanitizer knows no fences. */
static inline bool clb__refs_last(atomic_size_t *refs) {
  if (atomic_fetch_sub_explicit(refs, 1, memory_order_release) != 1)
    return false;
  (void)atomic_load_explicit(refs, memory_order_acquire);
  return true;
}

/* The same for a handle, which has to be small. */
static inline bool clb__small_refs_last(atomic_uint *refs) {
  if (atomic_fetch_sub_explicit(refs, 1, memory_order_release) != 1)
    return false;
  (void)atomic_load_explicit(refs, memory_order_acquire);
  return true;
}

#endif
