/*
 * pack.h - a part of a form as the kernels of kernels/pack.cl want it said.
 *
 * Pure: knows no OpenCL type and no device.
 */
#ifndef CLB_PACK_H
#define CLB_PACK_H

#include "layout.h"

#define CLB__PACK_DIMS 8

/* Dimension 0 is the innermost; those past ndim have an extent of 1. */
typedef struct clb__pack {
  unsigned unit; /* bytes: 1, 2, 4, 8 or 16 */
  bool wide;     /* an offset needs more than 31 bits */
  unsigned ndim;
  int64_t first; /* units from the source's start to coordinates 0 */
  uint32_t units;
  uint64_t n[CLB__PACK_DIMS]; /* at most UINT32_MAX, */
  uint64_t c[CLB__PACK_DIMS]; /* and less than that: where the part begins */
  int64_t s[CLB__PACK_DIMS];  /* units */
} clb__pack;

/* Whether a form has few enough dimensions, of less than 2 Gi items but for the
 * outermost, and is not contiguous. */
bool clb__pack_can(const clb__form *form);

/* Whether its parts are wide. */
bool clb__pack_wide(const clb__form *form);

/* Logical bytes [start, start + length) of such a form; length > 0, at most
 * UINT32_MAX. */
void clb__pack_make(const clb__form *form, size_t start, size_t length,
                    clb__pack *pack);

#endif
