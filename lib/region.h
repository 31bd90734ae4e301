/*
 * region.h - where a handle's logical bytes lie in some storage.
 *
 * A region is a caller's shape with strides, or a byte range of one: the
 * window.  Views, slices and reshapes are made by changing regions; the
 * storage is not looked at.  Its arrays are of whoever holds it.
 */
#ifndef CLB_REGION_H
#define CLB_REGION_H

#include "layout.h"

typedef struct clb__region {
  uint64_t origin;  /* byte of the storage that element (0, ...) starts at */
  size_t elem_size; /* bytes */
  size_t window;    /* where the range starts in the bytes of the shape */
  bool windowed;    /* the shape says nothing to the user: a range of bytes */
  unsigned char ndim;
  size_t *shape;      /* ndim extents */
  ptrdiff_t *strides; /* ndim of them, bytes */
} clb__region;

/* Room for a region's arrays. */
typedef struct clb__room {
  size_t shape[CLB__MAX_DIMS];
  ptrdiff_t strides[CLB__MAX_DIMS];
} clb__room;

/* The form of the shape; the window is a range of its logical bytes. */
void clb__region_form(const clb__region *region, clb__form *form);

/* Whether the bytes lie in a row, and from which byte of the storage on. */
bool clb__region_flat(const clb__region *region, uint64_t *first);

/* Packed, from byte 0 on. */
void clb__region_pack(clb__region *region, clb__room *room, size_t ndim,
                      const size_t *shape, size_t elem_size);

/* The kinds of change; to's arrays become room's. */
void clb__region_clone(const clb__region *from, clb__region *to,
                       clb__room *room);
void clb__region_range(const clb__region *from, size_t start, size_t length,
                       clb__region *to, clb__room *room);
/* start, count and step of every dimension, checked; not of a window. */
void clb__region_slice(const clb__region *from, const size_t *start,
                       const size_t *count, const ptrdiff_t *step,
                       clb__region *to, clb__room *room);
/* False where no strides say it; not of a window. */
bool clb__region_reshape(const clb__region *from, size_t ndim,
                         const size_t *shape, size_t elem_size,
                         clb__region *to, clb__room *room);

#endif
