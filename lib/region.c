/*
 * region.c - changes of where logical bytes lie: ranges, slices, reshapes.
 *
 * Pure functions on numbers.
 */
#include "config.h"

#include "region.h"

#include <string.h>

void clb__region_form(const clb__region *region, clb__form *form) {
  clb__form_make(form, region->ndim, region->shape, region->strides,
                 region->elem_size, region->origin);
}

bool clb__region_flat(const clb__region *region, uint64_t *first) {
  clb__form form;

  clb__region_form(region, &form);
  *first = form.origin + region->window;
  return clb__form_contiguous(&form);
}

static void use_room(clb__region *region, clb__room *room, size_t ndim) {
  region->ndim = (unsigned char)ndim;
  region->shape = room->shape;
  region->strides = room->strides;
}

void clb__region_pack(clb__region *region, clb__room *room, size_t ndim,
                      const size_t *shape, size_t elem_size) {
  use_room(region, room, ndim);
  region->origin = 0;
  region->elem_size = elem_size;
  region->window = 0;
  region->windowed = false;
  if (ndim > 0)
    memcpy(room->shape, shape, ndim * sizeof *shape);
  clb__layout_pack(ndim, shape, elem_size, room->strides);
}

void clb__region_clone(const clb__region *from, clb__region *to,
                       clb__room *room) {
  *to = *from;
  use_room(to, room, from->ndim);
  memcpy(room->shape, from->shape, from->ndim * sizeof *from->shape);
  memcpy(room->strides, from->strides, from->ndim * sizeof *from->strides);
}

/* Bytes in a row. */
static void make_flat(clb__region *to, clb__room *room, uint64_t first,
                      size_t length) {
  use_room(to, room, 1);
  to->origin = first;
  to->elem_size = 1;
  to->window = 0;
  to->windowed = false;
  room->shape[0] = length;
  room->strides[0] = 1;
}

/* Whether the bytes lie in a row all the same: the end of a run and the start
 * of the next, where those meet, as the last of a row and the first of the next
 * row may.  Three runs that meet would be one. */
static bool runs_meet(const clb__form *form, size_t window, size_t length,
                      uint64_t *first) {
  size_t head = form->run - window % form->run;
  clb__form box;

  if (length <= head || length - head > form->run)
    return false;
  clb__form_box(form, window, head, 0, &box);
  *first = box.origin;
  clb__form_box(form, window + head, length - head, 0, &box);
  return box.origin == *first + head;
}

void clb__region_range(const clb__region *from, size_t start, size_t length,
                       clb__region *to, clb__room *room) {
  size_t window = from->window + start;
  clb__form form;
  uint64_t first;
  unsigned d;

  clb__region_form(from, &form);
  first = form.origin;
  if (length > 0) {
    clb__form_narrow(&form, &window, length);
    first = form.origin + window;
  }
  if (length == 0 || clb__form_contiguous(&form) ||
      runs_meet(&form, window, length, &first)) {
    make_flat(to, room, first, length);
    return;
  }
  use_room(to, room, form.ndim);
  to->origin = form.origin;
  to->elem_size = form.run;
  to->window = window;
  to->windowed = true;
  for (d = 0; d < form.ndim; d++) {
    room->shape[d] = form.dim[d].n;
    room->strides[d] = form.dim[d].stride;
  }
}

void clb__region_slice(const clb__region *from, const size_t *start,
                       const size_t *count, const ptrdiff_t *step,
                       clb__region *to, clb__room *room) {
  bool empty = false;
  unsigned d;

  *to = *from;
  use_room(to, room, from->ndim);
  for (d = 0; d < from->ndim; d++)
    empty |= count[d] == 0;
  for (d = 0; d < from->ndim; d++) {
    room->shape[d] = count[d];
    /* The stride of an extent of 1 says nothing, and could overflow. */
    room->strides[d] =
        empty || count[d] < 2
            ? 0
            : (ptrdiff_t)((size_t)from->strides[d] * (size_t)step[d]);
    if (!empty)
      to->origin += (uint64_t)start[d] * (uint64_t)from->strides[d];
  }
}

/* Takes a factor n out of the innermost bytes that are left of the form: how
 * far apart its items are.  False where they do not divide. */
typedef struct factors {
  const clb__form *form;
  unsigned next;    /* dimensions of the form that are not begun */
  size_t left;      /* items left of the one that is */
  ptrdiff_t stride; /* of them */
} factors;

static bool take(factors *taker, size_t n, ptrdiff_t *stride) {
  *stride = 0;
  if (n == 1)
    return true;
  if (taker->left == 1 && taker->next > 0) {
    const clb__dim *dim = &taker->form->dim[--taker->next];
    taker->left = dim->n;
    taker->stride = dim->stride;
  }
  if (taker->left % n != 0)
    return false;
  *stride = taker->stride;
  taker->left /= n;
  taker->stride = (ptrdiff_t)((size_t)taker->stride * n);
  return true;
}

bool clb__region_reshape(const clb__region *from, size_t ndim,
                         const size_t *shape, size_t elem_size,
                         clb__region *to, clb__room *room) {
  clb__form form;
  factors taker;
  ptrdiff_t bytes;
  size_t d;

  clb__region_form(from, &form);
  *to = *from;
  use_room(to, room, ndim);
  to->elem_size = elem_size;
  if (ndim > 0)
    memcpy(room->shape, shape, ndim * sizeof *shape);
  if (clb__form_length(&form) == 0) {
    clb__layout_pack(ndim, shape, elem_size, room->strides);
    return true;
  }
  taker.form = &form;
  taker.next = form.ndim;
  taker.left = form.run;
  taker.stride = 1;
  /* The bytes of an element lie in a row. */
  if (!take(&taker, elem_size, &bytes) || (elem_size > 1 && bytes != 1))
    return false;
  for (d = ndim; d-- > 0;)
    if (!take(&taker, shape[d], &room->strides[d]))
      return false;
  return true;
}
