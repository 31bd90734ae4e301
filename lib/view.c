/*
 * view.c - handles made from handles, and the snapshot.
 */
#include "config.h"

#include "bytes.h"

#include <string.h>

/* What the view has of its parent's host copy; with the parent's lock held. */
static void share_copy(clb_bytes *parent, size_t start, clb_bytes *view) {
  unsigned char *data = atomic_load(&parent->data);

  if (data == NULL || view->length == 0)
    return;
  view->copy = clb__copy_retain(parent->copy);
  atomic_init(&view->data, data + start);
  if (view->copy != NULL)
    atomic_init(&view->place, CLB_PLACE_HEAP);
}

/* A range of a form: bytes in a row, or the form and a window on it. */
static void shape_view(clb_bytes *view, const clb__form *form, size_t window,
                       size_t length) {
  unsigned d;

  view->length = length;
  view->origin = form->origin;
  if (view->ndim == 1 && clb__form_contiguous(form)) {
    view->origin += window;
    view->elem_size = 1;
    view->dims[0] = length;
    clb__strides(view)[0] = 1;
    return;
  }
  view->windowed = true;
  view->window = window;
  view->elem_size = form->run;
  for (d = 0; d < form->ndim; d++) {
    view->dims[d] = form->dim[d].n;
    clb__strides(view)[d] = form->dim[d].stride;
  }
}

/* The part of a handle's form that holds a range of its logical bytes. */
static void form_of_range(const clb_bytes *bytes, size_t start, size_t length,
                          clb__form *form, size_t *window) {
  *window = bytes->window + start;
  clb__bytes_form(bytes, form);
  if (length > 0) {
    clb__form_narrow(form, window, length);
  } else {
    form->ndim = 0;
    *window = 0;
  }
}

clb_status clb_bytes_view(clb_bytes *bytes, size_t start, size_t end,
                          clb_bytes **out) {
  clb__source source;
  clb__form form;
  clb_bytes *view;
  size_t window;
  clb_status status;

  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "%s is NULL",
                     bytes == NULL ? "bytes" : "out");
  status = clb__bytes_range(bytes, start, end);
  if (status != CLB_OK)
    return status;
  form_of_range(bytes, start, end - start, &form, &window);
  source = bytes->source;
  status = source.ops->retain(&source);
  if (status == CLB_OK)
    status = clb__bytes_make(&source, form.ndim > 0 ? form.ndim : 1, &view);
  if (status != CLB_OK)
    return status;
  shape_view(view, &form, window, end - start);
  if (bytes->label != NULL && (view->label = strdup(bytes->label)) == NULL) {
    clb_bytes_release(view);
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a label");
  }
  pthread_mutex_lock(clb__lock(bytes));
  share_copy(bytes, start, view);
  pthread_mutex_unlock(clb__lock(bytes));
  *out = view;
  return CLB_OK;
}

/* The handle's strides and origin in the packed copy of a region of its
 * source. */
static void rebase(clb_bytes *bytes, const clb__move *copied) {
  ptrdiff_t *strides = clb__strides(bytes);
  unsigned d;

  if (copied->height == 1 && copied->depth == 1) {
    bytes->origin -= copied->origin;
    return;
  }
  bytes->origin = 0;
  for (d = 0; d < bytes->ndim; d++) {
    size_t n = clb__shape(bytes)[d], far = clb__abs_stride(strides[d]);
    ptrdiff_t packed;
    if (n == 1) { /* its stride says nothing */
      strides[d] = 0;
      continue;
    }
    packed = clb__move_stride(copied, (ptrdiff_t)far);
    if (strides[d] < 0)
      bytes->origin += (uint64_t)(n - 1) * (uint64_t)packed;
    strides[d] = strides[d] < 0 ? -packed : packed;
  }
}

clb_status clb_bytes_snapshot(clb_bytes *bytes) {
  clb__source source;
  clb__form form;
  clb__move copied;
  clb_status status;

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "bytes is NULL");
  if (!clb__source_is_device(&bytes->source) || bytes->length == 0 ||
      bytes->source.flags & CLB__NEVER_CHANGES)
    return CLB_OK;
  clb__bytes_form(bytes, &form);
  status = clb__source_snapshot(&bytes->source, &form, &source, &copied);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  rebase(bytes, &copied);
  bytes->source.ops->release(&bytes->source);
  bytes->source = source;
  return CLB_OK;
}
