/*
 * origin.c - where a handle's bytes are at one moment.
 *
 * A snapshot may change the handle's source while others read: who looks at a
 * source takes a reference, and the region with it, under the handle's lock.
 */
#include "config.h"

#include "bytes.h"

static void take_region(const clb__region *at, clb__origin *from) {
  clb__region_form(at, &from->form);
  from->window = at->window;
}

clb_status clb__origin_of_source(const clb_bytes *bytes, clb__origin *from) {
  clb_status status;

  from->lent = false;
  pthread_mutex_lock(clb__lock(bytes));
  from->source = bytes->source;
  take_region(&bytes->at, from);
  status = from->source.ops->retain(&from->source);
  pthread_mutex_unlock(clb__lock(bytes));
  return status;
}

clb_status clb__origin_of_bytes(const clb_bytes *bytes, clb__origin *from) {
  const clb__base *base = clb__base_of(bytes);

  if (base == NULL)
    return clb__origin_of_source(bytes, from);
  /* Only what needs the handle to oneself lets go of it. */
  from->lent = true;
  from->source = clb__source_lent(&from->host, base->data);
  take_region(&base->at, from);
  return CLB_OK;
}

void clb__origin_end(clb__origin *from) {
  if (!from->lent)
    from->source.ops->release(&from->source);
}

bool clb__origin_flat(const clb__origin *from, uint64_t *first) {
  *first = from->form.origin + from->window;
  return clb__form_contiguous(&from->form);
}

/* --- The same place ---------------------------------------------------------- */

bool clb__bytes_key_of(const clb_bytes *bytes, clb__bytes_key *key) {
  bool there;

  if (!clb__bytes_on_device(bytes))
    return false;
  pthread_mutex_lock(clb__lock(bytes));
  there = !bytes->based && !bytes->edited &&
          atomic_load(&((clb_bytes *)bytes)->data) == NULL;
  key->root = (uintptr_t)bytes->source.u.device.mem;
  key->after = (uintptr_t)bytes->source.u.device.after;
  key->first = bytes->at.origin + bytes->at.window;
  key->length = bytes->length;
  pthread_mutex_unlock(clb__lock(bytes));
  return there;
}

static int compare(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

int clb__bytes_key_compare(const clb__bytes_key *a, const clb__bytes_key *b) {
  int order = compare(a->root, b->root);

  if (order == 0)
    order = compare(a->after, b->after);
  if (order == 0)
    order = compare(a->first, b->first);
  return order != 0 ? order : compare(a->length, b->length);
}

static void form_of(const clb_bytes *bytes, clb__form *form, size_t *window) {
  pthread_mutex_lock(clb__lock(bytes));
  clb__region_form(&bytes->at, form);
  *window = bytes->at.window;
  pthread_mutex_unlock(clb__lock(bytes));
}

bool clb__bytes_alike(const clb_bytes *a, const clb_bytes *b) {
  clb__form x, y;
  size_t x_window, y_window;
  unsigned d = 0;

  form_of(a, &x, &x_window);
  form_of(b, &y, &y_window);
  if (clb__form_contiguous(&x) && clb__form_contiguous(&y))
    return x.origin + x_window == y.origin + y_window;
  if (x.origin != y.origin || x_window != y_window || x.run != y.run ||
      x.ndim != y.ndim)
    return false;
  while (d < x.ndim && x.dim[d].n == y.dim[d].n &&
         x.dim[d].stride == y.dim[d].stride)
    d++;
  return d == x.ndim;
}
