/*
 * layout.c - shape and stride algebra: length, reach, merging, boxes.
 *
 * Pure functions on numbers.
 */
#include "config.h"

#include "layout.h"

#include <stdio.h>

/* Bytes that the layout reaches before and after its first element's start;
 * false where they do not fit 64 bits. */
static bool reach(const clb_layout *layout, uint64_t *before, uint64_t *after) {
  size_t d;

  *before = 0;
  *after = layout->elem_size;
  for (d = 0; d < layout->ndim; d++) {
    ptrdiff_t stride = layout->strides[d];
    uint64_t far;
    if (layout->shape[d] < 2)
      continue;
    if (clb__mul_u64(layout->shape[d] - 1, clb__abs_stride(stride), &far) ||
        clb__add_u64(stride < 0 ? *before : *after, far,
                     stride < 0 ? before : after))
      return false;
  }
  return true;
}

static double far(const clb_layout *layout, size_t d) {
  return (double)(layout->shape[d] - 1) *
         (double)clb__abs_stride(layout->strides[d]);
}

/* Names the dimension that reaches furthest. */
static clb_status reach_overflows(const clb_layout *layout) {
  size_t d, worst = 0;

  for (d = 1; d < layout->ndim; d++)
    if (far(layout, d) > far(layout, worst))
      worst = d;
  return clb__fail(CLB_INVALID_LAYOUT,
                   "layout: the reach overflows: dimension %zu of extent %zu "
                   "has a stride of %td bytes",
                   worst, layout->shape[worst], layout->strides[worst]);
}

static clb_status check_reach(const clb_layout *layout, uint64_t capacity,
                              size_t length) {
  uint64_t before = 0, after = length, end;

  if (layout->strides != NULL && !reach(layout, &before, &after))
    return reach_overflows(layout);
  if (before > layout->offset)
    return clb__fail(CLB_INVALID_LAYOUT,
                     "layout: offset %zu and negative strides reach %llu bytes "
                     "before the buffer's start",
                     layout->offset,
                     (unsigned long long)(before - layout->offset));
  if (clb__add_u64(layout->offset, after, &end) || end > capacity)
    return clb__fail(CLB_INVALID_LAYOUT,
                     "layout: offset %zu and a reach of %llu bytes leave the "
                     "buffer of %llu bytes",
                     layout->offset, (unsigned long long)after,
                     (unsigned long long)capacity);
  return CLB_OK;
}

/* "(8589934592, 8589934592)"; cut short where it is long. */
static void shape_text(const clb_layout *layout, char *text, size_t size) {
  size_t used = 1, d;

  (void)snprintf(text, size, "(");
  for (d = 0; d < layout->ndim && used < size; d++)
    used += (size_t)snprintf(text + used, size - used, "%s%zu",
                             d > 0 ? ", " : "", layout->shape[d]);
  if (used < size)
    (void)snprintf(text + used, size - used, ")");
}

clb_status clb__layout_check(const clb_layout *layout, uint64_t capacity,
                             size_t *length) {
  size_t d, bytes = layout->elem_size;
  bool empty = false, overflow = false;
  clb_status status;

  if (layout->ndim > CLB__MAX_DIMS)
    return clb__fail(CLB_INVALID_LAYOUT,
                     "layout: %zu dimensions, more than the %d allowed",
                     layout->ndim, CLB__MAX_DIMS);
  if (layout->ndim > 0 && layout->shape == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "layout: shape is NULL with %zu dimensions",
                     layout->ndim);
  if (layout->elem_size == 0)
    return clb__fail(CLB_INVALID_LAYOUT, "layout: elem_size is 0");

  for (d = 0; d < layout->ndim; d++) {
    empty |= layout->shape[d] == 0;
    overflow |= clb__mul_size(bytes, layout->shape[d], &bytes);
  }
  if (empty) {
    *length = 0;
    return CLB_OK;
  }
  if (overflow) {
    char shape[256];
    shape_text(layout, shape, sizeof shape);
    return clb__fail(CLB_INVALID_LAYOUT,
                     "layout: shape %s of elements of %zu bytes overflows",
                     shape, layout->elem_size);
  }
  status = check_reach(layout, capacity, bytes);
  if (status == CLB_OK)
    *length = bytes;
  return status;
}

void clb__layout_pack(size_t ndim, const size_t *shape, size_t elem_size,
                      ptrdiff_t *strides) {
  size_t d, bytes = elem_size;
  bool empty = false;

  for (d = 0; d < ndim; d++)
    empty |= shape[d] == 0;
  for (d = ndim; d-- > 0;) {
    strides[d] = empty ? 0 : (ptrdiff_t)bytes;
    bytes *= shape[d];
  }
}

void clb__form_make(clb__form *form, size_t ndim, const size_t *shape,
                    const ptrdiff_t *strides, size_t elem_size,
                    uint64_t origin) {
  clb__dim dim[CLB__MAX_DIMS]; /* innermost first */
  unsigned kept = 0;
  size_t d;

  form->origin = origin;
  form->run = elem_size;
  form->ndim = 0;
  for (d = ndim; d-- > 0;) {
    size_t n = shape[d];
    ptrdiff_t stride = strides[d];
    if (n == 0) {
      form->run = form->size[0] = form->ndim = 0;
      return;
    }
    if (n == 1)
      continue;
    if (kept == 0 && stride == (ptrdiff_t)form->run)
      form->run *= n;
    else if (kept > 0 &&
             stride == (ptrdiff_t)((size_t)dim[kept - 1].stride *
                                   dim[kept - 1].n))
      dim[kept - 1].n *= n;
    else
      dim[kept++] = (clb__dim){n, stride};
  }
  form->ndim = kept;
  form->size[kept] = form->run;
  for (d = 0; d < kept; d++) {
    form->dim[kept - 1 - d] = dim[d];
    form->size[kept - 1 - d] = form->size[kept - d] * dim[d].n;
  }
}

bool clb__form_turns(const clb__form *form) {
  unsigned d;

  for (d = 0; d < form->ndim; d++)
    if (form->dim[d].stride <= 0)
      return true;
  return false;
}

/* The byte of the source where logical byte at lies; at a multiple of the
 * size of dimensions level and on, or anywhere if level is ndim. */
static uint64_t locate(const clb__form *form, size_t at) {
  uint64_t origin = form->origin;
  unsigned d;

  for (d = 0; d < form->ndim; d++) {
    size_t index = at / form->size[d + 1];
    at -= index * form->size[d + 1];
    /* Wraps around and back where a stride is negative. */
    origin += (uint64_t)index * (uint64_t)form->dim[d].stride;
  }
  return origin + at;
}

void clb__form_box(const clb__form *form, size_t at, size_t limit,
                   unsigned max_dims, clb__form *box) {
  size_t left = form->size[0] - at, count;
  unsigned level = form->ndim, d;

  if (limit > left)
    limit = left;
  box->origin = locate(form, at);
  box->ndim = 0;
  if (at % form->run != 0 || limit < form->run) {
    size_t rest = form->run - at % form->run;
    box->run = box->size[0] = limit < rest ? limit : rest;
    return;
  }

  /* As many inner dimensions as start here and fit are taken whole ... */
  while (level > 0 && form->ndim - level < max_dims &&
         at % form->size[level - 1] == 0 && form->size[level - 1] <= limit)
    level--;
  /* ... and of the next one outside as much as fits. */
  count = 1;
  if (level > 0 && form->ndim - level < max_dims) {
    size_t n = form->dim[level - 1].n;
    size_t index = at / form->size[level] % n;
    count = limit / form->size[level];
    if (count > n - index)
      count = n - index;
  }

  box->run = form->run;
  if (count > 1)
    box->dim[box->ndim++] = (clb__dim){count, form->dim[level - 1].stride};
  for (d = level; d < form->ndim; d++)
    box->dim[box->ndim++] = form->dim[d];
  for (d = 0; d <= form->ndim - level; d++)
    box->size[box->ndim - d] = form->size[form->ndim - d];
  if (count > 1)
    box->size[0] = count * form->size[level];
}

void clb__form_narrow(clb__form *form, size_t *start, size_t length) {
  unsigned d;

  while (form->ndim > 0) {
    size_t inner = form->size[1];
    size_t first = *start / inner, last = (*start + length - 1) / inner;
    form->origin += (uint64_t)first * (uint64_t)form->dim[0].stride;
    form->dim[0].n = last - first + 1;
    form->size[0] = form->dim[0].n * inner;
    *start -= first * inner;
    if (last > first)
      return;
    form->ndim--;
    for (d = 0; d < form->ndim; d++)
      form->dim[d] = form->dim[d + 1];
    for (d = 0; d <= form->ndim; d++)
      form->size[d] = form->size[d + 1];
  }
}

void clb__form_span(const clb__form *form, uint64_t *first, uint64_t *bytes) {
  unsigned d;

  *first = form->origin;
  *bytes = form->run;
  for (d = 0; d < form->ndim; d++) {
    uint64_t far = (uint64_t)(form->dim[d].n - 1) *
                   clb__abs_stride(form->dim[d].stride);
    *bytes += far;
    if (form->dim[d].stride < 0)
      *first -= far;
  }
}

void clb__storage_make(clb__storage *storage, const clb__form *box) {
  unsigned d, i;

  storage->origin = box->origin;
  storage->to = 0;
  storage->run = box->run;
  storage->ndim = storage->nrepeat = 0;
  for (d = 0; d < box->ndim; d++) {
    size_t n = box->dim[d].n;
    ptrdiff_t from = box->dim[d].stride, to = (ptrdiff_t)box->size[d + 1];
    if (from == 0) {
      storage->repeat[storage->nrepeat++] = (clb__axis){n, 0, to};
      continue;
    }
    if (from < 0) { /* start at the lowest byte, and go the other way */
      storage->origin -= (uint64_t)(n - 1) * clb__abs_stride(from);
      storage->to += (ptrdiff_t)(n - 1) * to;
      from = -from;
      to = -to;
    }
    for (i = storage->ndim; i > 0 && storage->axis[i - 1].from < from; i--)
      storage->axis[i] = storage->axis[i - 1];
    storage->axis[i] = (clb__axis){n, from, to};
    storage->ndim++;
  }
}

bool clb__form_apart(const clb__form *form) {
  clb__storage storage;
  uint64_t first, bytes, span = form->run;
  unsigned i;

  clb__form_span(form, &first, &bytes);
  if (clb__form_length(form) > bytes)
    return false;
  clb__storage_make(&storage, form);
  if (storage.nrepeat > 0)
    return false;
  for (i = storage.ndim; i-- > 0;) {
    if ((uint64_t)storage.axis[i].from < span)
      return false;
    span += (uint64_t)(storage.axis[i].n - 1) * (uint64_t)storage.axis[i].from;
  }
  return true;
}

clb_status clb__layout_overlaps(const clb_layout *layout) {
  uint64_t span = layout->elem_size; /* of the dimensions that are done */
  uint64_t done = 0;                 /* a bit a dimension */
  size_t d, next;

  for (;;) {
    next = layout->ndim;
    for (d = 0; d < layout->ndim; d++)
      if (layout->shape[d] > 1 && (done >> d & 1) == 0 &&
          (next == layout->ndim || clb__abs_stride(layout->strides[d]) <
                                       clb__abs_stride(layout->strides[next])))
        next = d;
    if (next == layout->ndim)
      return clb__fail(CLB_INVALID_LAYOUT,
                       "layout: a destination's elements may not share bytes");
    if (clb__abs_stride(layout->strides[next]) < span)
      return clb__fail(CLB_INVALID_LAYOUT,
                       "layout: dimension %zu has a stride of %td bytes; in a "
                       "destination, whose elements may not share bytes, it "
                       "needs %llu",
                       next, layout->strides[next], (unsigned long long)span);
    span += (layout->shape[next] - 1) *
            clb__abs_stride(layout->strides[next]);
    done |= UINT64_C(1) << next;
  }
}
