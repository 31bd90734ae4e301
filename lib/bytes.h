/*
 * bytes.h - what a handle is made of.
 *
 * A handle is small, and one allocation: a million of them on one buffer is a
 * use case.  What an access needs (a copy, a wait) is allocated when one
 * begins.
 */
#ifndef CLB_BYTES_H
#define CLB_BYTES_H

#include "transfer.h"

/* A host copy, shared by the handles that have it. */
typedef struct clb__copy clb__copy;

/* An access under way: those who wait for it sleep here. */
typedef struct clb__fetch clb__fetch;

struct clb_bytes {
  atomic_size_t refs;
  clb__source source;
  uint64_t origin;   /* byte of the source that element (0, ...) starts at */
  size_t length;     /* logical bytes */
  size_t window;     /* of a range view of a strided handle: where the range
                        starts in the logical bytes of dims */
  size_t elem_size;
  unsigned char ndim; /* of dims */
  bool windowed;      /* a byte range of dims, whose public shape is length */
  atomic_uchar place; /* of the last read; NO_PLACE before one */

  /* Guarded by the source's lock; data is also read without it. */
  _Atomic(unsigned char *) data; /* logical bytes on the host, if there */
  clb__copy *copy;     /* holds data; NULL where data is the caller's */
  _Atomic(unsigned char *) mapped; /* of CLB_MAP */
  clb__parked *unmap;  /* what ending the mapping needs */
  clb__fetch *fetch;   /* an access that brings data or mapped */

  char *label;
  size_t dims[]; /* ndim extents, then ndim strides (as ptrdiff_t) */
};

#define CLB__NO_PLACE 0xff

static inline const size_t *clb__shape(const clb_bytes *bytes) {
  return bytes->dims;
}

static inline ptrdiff_t *clb__strides(const clb_bytes *bytes) {
  return (ptrdiff_t *)(bytes->dims + bytes->ndim);
}

static inline pthread_mutex_t *clb__lock(const clb_bytes *bytes) {
  return bytes->source.ops->lock(&bytes->source);
}

/* The form of dims; a window is a range of its logical bytes. */
void clb__bytes_form(const clb_bytes *bytes, clb__form *form);

/* "label: " or "bytes [start, end): " before the last error. */
clb_status clb__bytes_blame(const clb_bytes *bytes, clb_status status,
                            size_t start, size_t end);

/* A handle of ndim dimensions on a source, whose reference it takes over also
 * where it fails. */
clb_status clb__bytes_make(clb__source *source, unsigned ndim, clb_bytes **out);

/* CLB_OUT_OF_RANGE where [start, end) is not inside. */
clb_status clb__bytes_range(const clb_bytes *bytes, size_t start, size_t end);

/* An access: contents of one moment, counted and logged once, whatever the
 * number of parts. */
typedef struct clb__access {
  clb_bytes *bytes;
  clb__port port;
  clb__plan plan; /* of all of it */
  uint64_t link;
  double since;
} clb__access;

/* Waits until logical bytes [start, end), start < end, may be read; moves parts
 * of them to a target; counts.  The end is reached only if all went well. */
clb_status clb__access_begin(clb__access *access, clb_bytes *bytes,
                             size_t start, size_t end);
clb_status clb__access_part(clb__access *access, size_t start, size_t end,
                            const clb__target *target);
clb_status clb__access_end(clb__access *access);

/* The whole of an access in one part. */
clb_status clb__bytes_get(clb_bytes *bytes, size_t start, size_t end,
                          const clb__target *target);

/* The plan of that. */
clb_status clb__bytes_choose(const clb_bytes *bytes, size_t start, size_t end,
                             clb__plan *plan);

/* Monotonic. */
double clb__seconds(void);

/* One line for a transfer that began at since:
 * "weights: rect 4 x 12 of pitch 32, 1 chunk: 48 bytes in 0.031 ms"; what goes
 * before the plan. */
void clb__bytes_log(const clb_bytes *bytes, clb_context *context,
                    const char *what, const clb__plan *plan, double since);

clb__copy *clb__copy_retain(clb__copy *copy);
void clb__copy_release(clb__copy *copy);

/* A pointer for length 0. */
extern unsigned char clb__nothing[64];

#endif
