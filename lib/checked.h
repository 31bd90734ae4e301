/*
 * checked.h - arithmetic on sizes that says when it overflows.
 *
 * Each function returns true on overflow and leaves *out alone then.
 */
#ifndef CLB_CHECKED_H
#define CLB_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool clb__add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (a > UINT64_MAX - b)
    return true;
  *out = a + b;
  return false;
}

static inline bool clb__mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
#if defined(__GNUC__)
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    return true;
  *out = r;
#else
  if (b != 0 && a > UINT64_MAX / b)
    return true;
  *out = a * b;
#endif
  return false;
}

static inline bool clb__add_size(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b)
    return true;
  *out = a + b;
  return false;
}

static inline bool clb__mul_size(size_t a, size_t b, size_t *out) {
  uint64_t r;
  if (clb__mul_u64(a, b, &r) || r > SIZE_MAX)
    return true;
  *out = (size_t)r;
  return false;
}

/* |stride|, also for the most negative one. */
static inline size_t clb__abs_stride(ptrdiff_t stride) {
  return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

#endif
