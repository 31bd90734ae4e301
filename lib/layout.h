/*
 * layout.h - shape and stride algebra.
 *
 * A form is a layout in its simplest words: dimensions of extent 1 dropped,
 * neighbours that continue each other merged, the innermost contiguous bytes
 * made one run.  Two layouts that name the same bytes in the same order have
 * the same form.  A box is a form too: a part of one that is regular.
 *
 * Knows no OpenCL type and no device.
 */
#ifndef CLB_LAYOUT_H
#define CLB_LAYOUT_H

#include "checked.h"
#include "error.h"

#define CLB__MAX_DIMS 64

typedef struct clb__dim {
  size_t n;         /* extent, at least 2 */
  ptrdiff_t stride; /* bytes in the source */
} clb__dim;

typedef struct clb__form {
  uint64_t origin; /* byte of the source that logical byte 0 is */
  size_t run;      /* bytes that are contiguous in both; 0: empty */
  unsigned ndim;
  clb__dim dim[CLB__MAX_DIMS];    /* outermost first */
  size_t size[CLB__MAX_DIMS + 1]; /* size[d]: logical bytes of dimensions d
                                     and on; size[ndim] == run */
} clb__form;

/* A dimension of a strided copy between two places in memory. */
typedef struct clb__axis {
  size_t n;
  ptrdiff_t from, to; /* bytes from one item to the next */
} clb__axis;

/*
 * A box in the order in which it lies in the source: axes sorted by the
 * source's stride, the largest first, all of them positive; those that repeat
 * the same bytes kept apart.
 */
typedef struct clb__storage {
  uint64_t origin; /* lowest byte of the source */
  ptrdiff_t to;    /* where that one goes in the packed box */
  size_t run;
  unsigned ndim, nrepeat;
  clb__axis axis[CLB__MAX_DIMS];   /* from: the source; to: the packed box */
  clb__axis repeat[CLB__MAX_DIMS]; /* from is 0 */
} clb__storage;

/*
 * Checks a caller's layout against a source of capacity bytes, and gives its
 * logical length.  CLB_INVALID_ARGUMENT, CLB_INVALID_LAYOUT.
 */
clb_status clb__layout_check(const clb_layout *layout, uint64_t capacity,
                             size_t *length);

/* Packed row-major strides; all 0 where the shape is empty. */
void clb__layout_pack(size_t ndim, const size_t *shape, size_t elem_size,
                      ptrdiff_t *strides);

/* The form of a checked layout that starts at origin. */
void clb__form_make(clb__form *form, size_t ndim, const size_t *shape,
                    const ptrdiff_t *strides, size_t elem_size,
                    uint64_t origin);

static inline size_t clb__form_length(const clb__form *form) {
  return form->size[0];
}

static inline bool clb__form_contiguous(const clb__form *form) {
  return form->ndim == 0;
}

/* Whether some dimension has a stride of 0 or less. */
bool clb__form_turns(const clb__form *form);

/*
 * The largest box that starts at logical byte at, has at most limit bytes and
 * at most max_dims dimensions.  at < length, limit > 0.
 */
void clb__form_box(const clb__form *form, size_t at, size_t limit,
                   unsigned max_dims, clb__form *box);

/* Takes away what does not hold logical bytes [*start, *start + length), length
 * > 0; *start becomes where they start in what is left. */
void clb__form_narrow(clb__form *form, size_t *start, size_t length);

/* First byte of the source that the form reaches, and the number of bytes
 * from there to its last one. */
void clb__form_span(const clb__form *form, uint64_t *first, uint64_t *bytes);

/* Fails for a checked layout whose form is not apart, naming the dimension. */
clb_status clb__layout_overlaps(const clb_layout *layout);

/* Of a box of at most PTRDIFF_MAX logical bytes. */
void clb__storage_make(clb__storage *storage, const clb__form *box);

/* Whether no two elements of the form share a byte, as an upload needs it. */
bool clb__form_apart(const clb__form *form);

#endif
