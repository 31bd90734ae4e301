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

/* The same part as a box whose neighbours in the source are not neighbours in
 * the result: n0 items along dimension 0, nf along the source's fast one, and
 * count of the rest. */
typedef struct clb__turn {
  int64_t first; /* units from the source's start to the box's first one */
  uint32_t n0, nf;
  int64_t s0, sf; /* units in the source, */
  uint32_t pf;    /* and in the result, where dimension 0's is 1 */
  unsigned ndim;  /* of the rest */
  uint32_t count; /* product of n */
  uint32_t n[CLB__PACK_DIMS], p[CLB__PACK_DIMS];
  int64_t s[CLB__PACK_DIMS];
} clb__turn;

/* false where the part is no such box. */
bool clb__pack_turn(const clb__pack *pack, clb__turn *turn);

/* Whether a form has few enough dimensions, of less than 2 Gi items but for the
 * outermost, and is not contiguous. */
bool clb__pack_can(const clb__form *form);

/* Whether its parts are wide. */
bool clb__pack_wide(const clb__form *form);

/* Logical bytes [start, start + length) of such a form; length > 0, at most
 * INT32_MAX. */
void clb__pack_make(const clb__form *form, size_t start, size_t length,
                    clb__pack *pack);

#endif
