/*
 * derive.c - handles made from handles.
 *
 * The new handle has what its parent has at that moment.  Each place where the
 * parent's bytes are (packed data, a region of a host copy, the source) is a
 * region, and the same change is made to each.
 */
#include "config.h"

#include "bytes.h"

#include <string.h>

/* What the parent has on the host, as a region: false if nothing. */
static bool host_region(const clb_bytes *parent, clb__base *host,
                        clb__room *room) {
  unsigned char *data = atomic_load(&((clb_bytes *)parent)->data);

  if (parent->length == 0)
    return false;
  if (data != NULL && parent->copy != NULL) {
    bool bytes = parent->at.windowed;
    host->copy = parent->copy;
    host->data = data;
    clb__region_pack(&host->at, room, bytes ? 1 : parent->at.ndim,
                     bytes ? &parent->length : parent->at.shape,
                     bytes ? 1 : parent->at.elem_size);
    return true;
  }
  if (!parent->based)
    return false;
  *host = *clb__base_of(parent);
  return true;
}

/* The parent's bytes in a copy of their own, where its region of a host copy
 * cannot be changed as its shape can. */
static clb_status repack(const clb_bytes *parent, clb__base *host,
                         clb__room *room) {
  clb__copy *copy;
  clb_status status = clb__copy_make(parent, &copy);

  if (status == CLB_OK) {
    clb__target target = {.memory = copy->data};
    status = clb__bytes_get((clb_bytes *)parent, 0, parent->length, &target);
    if (status == CLB_OK) {
      host->copy = copy;
      host->data = copy->data;
      clb__region_pack(&host->at, room, parent->at.ndim, parent->at.shape,
                       parent->at.elem_size);
      return CLB_OK;
    }
    clb__copy_release(copy);
  }
  return status;
}

typedef struct derivation {
  clb__source source; /* retained */
  clb__base host; /* of the parent; its copy retained */
  clb__base changed;
  clb__region at;
  clb__room host_room, changed_room, at_room;
  bool on_host;
} derivation;

/* What the parent has at this moment, with references; the source's region is
 * changed at once, since a snapshot may change it the next moment. */
static clb_status take(clb_bytes *parent, clb__change change, const void *how,
                       derivation *d) {
  clb_status status = CLB_OK;
  bool can;

  d->on_host = false;
  pthread_mutex_lock(clb__lock(parent));
  can = change(&parent->at, how, &d->at, &d->at_room);
  d->source = parent->source;
  if (can)
    status = d->source.ops->retain(&d->source);
  if (can && status == CLB_OK)
    d->on_host = host_region(parent, &d->host, &d->host_room);
  if (d->on_host)
    clb__copy_retain(d->host.copy);
  pthread_mutex_unlock(clb__lock(parent));
  return can ? status
             : clb__fail(CLB_UNSUPPORTED,
                         "the layout of the contents cannot be said in the new "
                         "shape without a copy");
}

/* The region of the host copy, if there is one. */
static clb_status change_host(clb_bytes *parent, clb__change change,
                              const void *how, derivation *d) {
  clb_status status;

  if (!d->on_host)
    return CLB_OK;
  d->changed = d->host;
  if (change(&d->host.at, how, &d->changed.at, &d->changed_room))
    return CLB_OK;
  clb__copy_release(d->host.copy);
  d->on_host = false;
  status = repack(parent, &d->host, &d->host_room);
  if (status != CLB_OK)
    return status;
  d->on_host = true;
  d->changed = d->host;
  (void)change(&d->host.at, how, &d->changed.at, &d->changed_room);
  return CLB_OK;
}

/* Makes the handle; takes the references over. */
static clb_status make(clb_bytes *parent, derivation *d, size_t length,
                       clb_bytes **out) {
  unsigned char *address = clb__source_address(&d->source);
  const clb__base *base = NULL;
  clb_bytes *bytes;
  uint64_t first = 0;
  clb_status status;

  if (d->on_host && length == 0) {
    clb__copy_release(d->host.copy);
    d->on_host = false;
  }
  if (d->on_host && !clb__region_flat(&d->changed.at, &first))
    base = &d->changed;
  status = clb__bytes_make(&d->source, &d->at, length, base, &bytes);
  if (status != CLB_OK) {
    if (d->on_host && base == NULL)
      clb__copy_release(d->changed.copy);
    return status;
  }
  bytes->edited = parent->edited;
  if (d->on_host) {
    atomic_init(&bytes->place, CLB_PLACE_HEAP);
    if (base == NULL) {
      bytes->copy = d->changed.copy;
      atomic_init(&bytes->data, d->changed.data + first);
    }
  } else if (address != NULL && length > 0 &&
             clb__region_flat(&d->at, &first)) {
    atomic_init(&bytes->data, address + first);
  }
  if (parent->label != NULL &&
      (bytes->label = strdup(parent->label)) == NULL) {
    clb_bytes_release(bytes);
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a label");
  }
  *out = bytes;
  return CLB_OK;
}

clb_status clb__bytes_derive(clb_bytes *parent, clb__change change,
                             const void *how, size_t length, clb_bytes **out) {
  derivation d;
  clb_status status = take(parent, change, how, &d);

  if (status == CLB_OK) {
    status = change_host(parent, change, how, &d);
    if (status == CLB_OK)
      return make(parent, &d, length, out);
    d.source.ops->release(&d.source);
  }
  return clb__bytes_blame(parent, status, 0, parent->length);
}
