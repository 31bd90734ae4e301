/*
 * pick.c - strided copies between two places in host memory.
 */
#include "config.h"

#include "plan.h"

#include <string.h>

/* The innermost axis, with the copy of a run inlined for usual elements. */
static void copy_line(unsigned char *dst, const unsigned char *src, size_t n,
                      ptrdiff_t to, ptrdiff_t from, size_t run) {
  size_t i;

#define COPY_LINE(bytes)                                                       \
  case bytes:                                                                  \
    for (i = 0; i < n; i++)                                                    \
      memcpy(dst + (ptrdiff_t)i * to, src + (ptrdiff_t)i * from, bytes);       \
    return;
  switch (run) {
    COPY_LINE(1)
    COPY_LINE(2)
    COPY_LINE(4)
    COPY_LINE(8)
    COPY_LINE(16)
  default:
    for (i = 0; i < n; i++)
      memcpy(dst + (ptrdiff_t)i * to, src + (ptrdiff_t)i * from, run);
  }
#undef COPY_LINE
}

void clb__copy_strided(unsigned char *dst, const unsigned char *src,
                       unsigned ndim, const clb__axis *axis, size_t run) {
  size_t i;

  if (ndim == 0) {
    memcpy(dst, src, run);
  } else if (ndim == 1) {
    copy_line(dst, src, axis->n, axis->to, axis->from, run);
  } else {
    for (i = 0; i < axis->n; i++)
      clb__copy_strided(dst + (ptrdiff_t)i * axis->to,
                        src + (ptrdiff_t)i * axis->from, ndim - 1, axis + 1,
                        run);
  }
}

void clb__pick_out(const clb__pick *pick, unsigned char *box,
                   const unsigned char *block) {
  clb__copy_strided(box + pick->to, block, pick->ndim, pick->axis, pick->run);
}

void clb__pick_in(const clb__pick *pick, const unsigned char *box,
                  unsigned char *block) {
  clb__axis axis[2 * CLB__MAX_DIMS];
  unsigned i;

  for (i = 0; i < pick->ndim; i++)
    axis[i] = (clb__axis){pick->axis[i].n, pick->axis[i].to,
                          pick->axis[i].from};
  clb__copy_strided(block, box + pick->to, pick->ndim, axis, pick->run);
}
