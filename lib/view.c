/*
 * view.c - view, clone, split, slice, reshape: the changes that handles are
 * made by.
 */
#include "config.h"

#include "bytes.h"

/* --- Ranges ----------------------------------------------------------------- */

typedef struct byte_range {
  size_t start, length;
} byte_range;

static bool change_range(const clb__region *from, const void *how,
                         clb__region *to, clb__room *room) {
  const byte_range *range = how;

  clb__region_range(from, range->start, range->length, to, room);
  return true;
}

clb_status clb_bytes_view(clb_bytes *bytes, size_t start, size_t end,
                          clb_bytes **out) {
  byte_range how = {start, end - start};
  clb_status status;

  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_view: %s is NULL",
                     bytes == NULL ? "bytes" : "out");
  status = clb__bytes_range(bytes, start, end);
  return status == CLB_OK ? clb__bytes_derive(bytes, change_range, &how,
                                              end - start, out)
                          : status;
}

/* A half with storage of its own, whatever the parent shares. */
static clb_status own(clb_bytes *half) {
  clb__copy *copy;
  clb_status status;

  if (half->length == 0)
    return CLB_OK;
  status = clb__copy_make(half, &copy);
  if (status != CLB_OK)
    return clb__bytes_blame(half, status, 0, half->length);
  status = clb_bytes_copy_into(half, 0, copy->data, half->length);
  if (status != CLB_OK) {
    clb__copy_release(copy);
    return status;
  }
  clb__copy_release(half->copy);
  half->copy = copy;
  atomic_store(&half->data, copy->data);
  atomic_store(&half->place, CLB_PLACE_HEAP);
  return CLB_OK;
}

clb_status clb_bytes_split(clb_bytes *bytes, size_t at, clb_split how,
                           clb_bytes **left, clb_bytes **right) {
  clb_bytes *a = NULL, *b = NULL;
  clb_status status;

  if (bytes == NULL || left == NULL || right == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_split: %s is NULL",
                     bytes == NULL  ? "bytes"
                     : left == NULL ? "left"
                                    : "right");
  if (how != CLB_SPLIT_SHARED && how != CLB_SPLIT_OWNED)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_split: no such split: %d",
                     (int)how);
  status = clb_bytes_view(bytes, 0, at, &a);
  if (status == CLB_OK)
    status = clb_bytes_view(bytes, at, bytes->length, &b);
  if (status == CLB_OK && how == CLB_SPLIT_OWNED)
    status = own(a);
  if (status == CLB_OK && how == CLB_SPLIT_OWNED)
    status = own(b);
  if (status != CLB_OK) {
    clb_bytes_release(a);
    clb_bytes_release(b);
    return status;
  }
  *left = a;
  *right = b;
  return CLB_OK;
}

/* --- Clones ----------------------------------------------------------------- */

static bool change_nothing(const clb__region *from, const void *how,
                           clb__region *to, clb__room *room) {
  (void)how;
  clb__region_clone(from, to, room);
  return true;
}

clb_status clb_bytes_clone(clb_bytes *bytes, clb_bytes **out) {
  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_clone: %s is NULL",
                     bytes == NULL ? "bytes" : "out");
  return clb__bytes_derive(bytes, change_nothing, NULL, bytes->length, out);
}

/* --- Slices ----------------------------------------------------------------- */

typedef struct slice_of {
  size_t start[CLB__MAX_DIMS], count[CLB__MAX_DIMS];
  ptrdiff_t step[CLB__MAX_DIMS];
} slice_of;

static bool change_slice(const clb__region *from, const void *how,
                         clb__region *to, clb__room *room) {
  const slice_of *slice = how;

  if (from->windowed)
    return false;
  clb__region_slice(from, slice->start, slice->count, slice->step, to, room);
  return true;
}

/* Elements from start on, in steps, that lie inside n. */
static size_t fitting(size_t n, size_t start, ptrdiff_t step) {
  size_t stride = clb__abs_stride(step);

  if (start >= n)
    return 0;
  return (step > 0 ? n - 1 - start : start) / stride + 1;
}

static clb_status check_dimension(size_t d, size_t n, size_t start,
                                  size_t count, ptrdiff_t step) {
  if (start > n || count > fitting(n, start, step))
    return clb__fail(CLB_OUT_OF_RANGE,
                     "slice: dimension %zu of extent %zu has no %zu elements "
                     "from %zu on in steps of %td",
                     d, n, count, start, step);
  return CLB_OK;
}

clb_status clb_bytes_slice(clb_bytes *bytes, const size_t *start,
                           const size_t *count, const ptrdiff_t *step,
                           clb_bytes **out) {
  slice_of how;
  clb_status status = CLB_OK;
  size_t d, length;

  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_slice: %s is NULL",
                     bytes == NULL ? "bytes" : "out");
  if (bytes->at.windowed)
    return clb__bytes_blame(
        bytes,
        clb__fail(CLB_UNSUPPORTED,
                  "slice: a byte range of a strided handle has no dimensions"),
        0, bytes->length);
  length = bytes->at.elem_size;
  for (d = 0; d < bytes->at.ndim && status == CLB_OK; d++) {
    size_t n = bytes->at.shape[d];
    how.start[d] = start != NULL ? start[d] : 0;
    how.step[d] = step != NULL ? step[d] : 1;
    if (how.step[d] == 0)
      return clb__fail(CLB_INVALID_ARGUMENT,
                       "slice: the step of dimension %zu is 0", d);
    how.count[d] =
        count != NULL ? count[d] : fitting(n, how.start[d], how.step[d]);
    status = check_dimension(d, n, how.start[d], how.count[d], how.step[d]);
    /* At most the parent's length, or 0 where a later count is 0. */
    if (clb__mul_size(length, how.count[d], &length))
      length = 0;
  }
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  return clb__bytes_derive(bytes, change_slice, &how, length, out);
}

/* --- Reshapes --------------------------------------------------------------- */

typedef struct new_shape {
  size_t ndim;
  const size_t *shape;
  size_t elem_size;
} new_shape;

static bool change_shape(const clb__region *from, const void *how,
                         clb__region *to, clb__room *room) {
  const new_shape *shape = how;

  return !from->windowed &&
         clb__region_reshape(from, shape->ndim, shape->shape,
                             shape->elem_size, to, room);
}

clb_status clb_bytes_reshape(clb_bytes *bytes, size_t ndim, const size_t *shape,
                             size_t elem_size, clb_bytes **out) {
  new_shape how = {ndim, shape, elem_size};
  clb_layout packed = {ndim, shape, NULL, elem_size, 0};
  clb_status status;
  size_t length;

  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_reshape: %s is NULL",
                     bytes == NULL ? "bytes" : "out");
  status = clb__layout_check(&packed, SIZE_MAX, &length);
  if (status == CLB_OK && length != bytes->length)
    status = clb__fail(CLB_INVALID_ARGUMENT,
                       "reshape: the new shape has %zu bytes, the handle %zu",
                       length, bytes->length);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  return clb__bytes_derive(bytes, change_shape, &how, length, out);
}
