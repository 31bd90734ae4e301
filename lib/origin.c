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
