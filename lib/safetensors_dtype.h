/*
 * safetensors_dtype.h - the element types of the format.
 */
#ifndef CLB_SAFETENSORS_DTYPE_H
#define CLB_SAFETENSORS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clb__dtype {
  const char *name; /* as it stands in files */
  unsigned bits;    /* of an element; not always a whole number of bytes */
} clb__dtype;

/* The table is in the format's own ascending order, so that pointers into it
 * compare as types do.  NULL: no such type. */
const clb__dtype *clb__dtype_find(const char *name, size_t length);

/*
 * Bytes of shape's elements, packed.  False: the product overflows, or the
 * bits are no whole number of bytes.  As in the format's own reader, extents
 * are multiplied in their order, so an extent of 0 hides an overflow only
 * where it comes first.
 */
bool clb__dtype_length(const clb__dtype *dtype, size_t ndim,
                       const size_t *shape, uint64_t *length);

/* "BOOL, F4, ..., U64": every name of the format. */
void clb__dtype_names(char *text, size_t size);

/* "[2, 3]", cut with "..." where size does not suffice. */
void clb__shape_text(char *text, size_t size, size_t ndim,
                     const size_t *shape);

#endif
