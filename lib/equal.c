/*
 * equal.c - what goes through a handle's stream: comparing, scattering.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

/* --- Equal ------------------------------------------------------------------ */

typedef struct comparison {
  clb_bytes *other;
  size_t at;
  unsigned char *piece; /* of the other, where it is not on the host */
  size_t size;
  clb_status status;
  bool differs;
} comparison;

static clb_status piece_of_other(comparison *c, size_t length) {
  unsigned char *piece;

  if (length > c->size) {
    piece = realloc(c->piece, length);
    if (piece == NULL)
      return clb__fail(CLB_OUT_OF_MEMORY, "equal: no memory for %zu bytes",
                       length);
    c->piece = piece;
    c->size = length;
  }
  return clb_bytes_copy_into(c->other, c->at, c->piece, length);
}

static int compare(const void *data, size_t length, void *user) {
  comparison *c = user;
  const unsigned char *other = atomic_load(&c->other->data);

  if (other != NULL) {
    c->differs = memcmp(data, other + c->at, length) != 0;
  } else {
    c->status = piece_of_other(c, length);
    if (c->status == CLB_OK)
      c->differs = memcmp(data, c->piece, length) != 0;
  }
  c->at += length;
  return c->differs || c->status != CLB_OK;
}

clb_status clb_bytes_equal(clb_bytes *a, clb_bytes *b, int *equal) {
  comparison c = {.other = b};
  clb__error before;
  clb_status status;

  if (a == NULL || b == NULL || equal == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_equal: %s is NULL",
                     a == NULL   ? "the first handle"
                     : b == NULL ? "the second handle"
                                 : "equal");
  if (a->length != b->length || a->length == 0) {
    *equal = a->length == b->length;
    return CLB_OK;
  }
  clb__error_keep(&before);
  status = clb_bytes_stream(a, 0, a->length, compare, &c);
  free(c.piece);
  if (status == CLB_CANCELLED && c.differs) {
    clb__error_put_back(&before); /* no failure */
    status = CLB_OK;
  } else if (status == CLB_CANCELLED && c.status != CLB_OK) {
    status = c.status;
  }
  if (status == CLB_OK)
    *equal = !c.differs;
  return status;
}

/* --- Into a layout ---------------------------------------------------------- */

typedef struct scattering {
  clb__form form;
  unsigned char *dst;
  size_t at;
} scattering;

static int scatter(const void *data, size_t length, void *user) {
  scattering *s = user;
  const unsigned char *from = data;

  while (length > 0) {
    clb__axis axis[CLB__MAX_DIMS];
    clb__form box;
    unsigned d;
    clb__form_box(&s->form, s->at, length, CLB__MAX_DIMS, &box);
    for (d = 0; d < box.ndim; d++)
      axis[d] = (clb__axis){box.dim[d].n, (ptrdiff_t)box.size[d + 1],
                            box.dim[d].stride};
    clb__copy_strided(s->dst + box.origin, from, box.ndim, axis, box.run);
    from += clb__form_length(&box);
    length -= clb__form_length(&box);
    s->at += clb__form_length(&box);
  }
  return 0;
}

clb_status clb_bytes_copy_into_layout(clb_bytes *bytes, void *dst,
                                      size_t dst_size,
                                      const clb_layout *layout) {
  const clb_layout whole = {1, &dst_size, NULL, 1, 0};
  scattering s = {.dst = dst};
  clb__region region;
  clb__room room;
  clb_status status;
  size_t length;

  if (bytes == NULL || (dst == NULL && dst_size > 0))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_bytes_copy_into_layout: %s is NULL",
                     bytes == NULL ? "bytes" : "dst");
  if (layout == NULL)
    layout = &whole;
  status = clb__layout_check(layout, dst_size, &length);
  if (status == CLB_OK && length != bytes->length)
    status = clb__fail(CLB_INVALID_ARGUMENT,
                       "%zu bytes, but the destination has %zu", bytes->length,
                       length);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  if (length == 0)
    return CLB_OK;
  clb__region_pack(&region, &room, layout->ndim, layout->shape,
                   layout->elem_size);
  region.origin = layout->offset;
  if (layout->strides != NULL && layout->ndim > 0)
    memcpy(room.strides, layout->strides,
           layout->ndim * sizeof *layout->strides);
  clb__region_form(&region, &s.form);
  if (!clb__form_apart(&s.form))
    return clb__bytes_blame(bytes, clb__layout_overlaps(layout), 0,
                            bytes->length);
  return clb_bytes_stream(bytes, 0, length, scatter, &s);
}
