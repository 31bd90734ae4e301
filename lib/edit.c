/*
 * edit.c - what ends a handle's pointers: write, evict, detach.
 *
 * These need the handle to oneself; what others share is separated first or
 * let go of.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

/* The program may write there next: the unmap is enqueued now, if need be after
 * waiting. */
static void end_mapping(clb_bytes *bytes) {
  if (bytes->unmap == NULL)
    return;
  clb__park_unmap(bytes->source.u.device.context, bytes->unmap);
  bytes->unmap = NULL;
  atomic_store(&bytes->mapped, NULL);
}

static void end_base(clb_bytes *bytes) {
  if (bytes->based)
    clb__copy_release(clb__base_of(bytes)->copy);
  bytes->based = false;
}

/* Whether the bytes are where no other handle sees them. */
static bool alone(const clb_bytes *bytes) {
  return bytes->copy != NULL ? !clb__copy_shared(bytes->copy)
                             : !clb__source_host_shared(&bytes->source);
}

/* The data that is there, in storage of the handle's own. */
static clb_status separate(clb_bytes *bytes) {
  clb__copy *copy;
  clb_status status = clb__copy_make(bytes, &copy);

  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  memcpy(copy->data, atomic_load(&bytes->data), bytes->length);
  clb__copy_release(bytes->copy);
  bytes->copy = copy;
  atomic_store(&bytes->data, copy->data);
  return CLB_OK;
}

clb_status clb_bytes_write(clb_bytes *bytes, clb_access access, void **data) {
  clb_status status;
  clb_place place;

  if (bytes == NULL || data == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_write: %s is NULL",
                     bytes == NULL ? "bytes" : "data");
  if (access != CLB_COPY && access != CLB_NO_COPY)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_bytes_write: access %d is not CLB_COPY or "
                     "CLB_NO_COPY",
                     (int)access);
  if (bytes->length == 0) {
    bytes->edited = true;
    *data = clb__nothing;
    return CLB_OK;
  }
  if (access == CLB_NO_COPY &&
      (atomic_load(&bytes->data) == NULL || !alone(bytes)))
    return CLB_WOULD_COPY;
  status = clb__bytes_materialise(bytes);
  if (status == CLB_OK && !alone(bytes))
    status = separate(bytes);
  if (status != CLB_OK)
    return status;
  end_mapping(bytes);
  end_base(bytes);
  bytes->edited = true;
  place = bytes->copy != NULL ? CLB_PLACE_HEAP
                              : (clb_place)bytes->source.place;
  atomic_store(&bytes->place, (unsigned char)place);
  *data = atomic_load(&bytes->data);
  return CLB_OK;
}

/* Back to the source. */
static void forget(clb_bytes *bytes) {
  end_base(bytes);
  if (bytes->copy != NULL) {
    atomic_store(&bytes->data, NULL);
    clb__copy_release(bytes->copy);
    bytes->copy = NULL;
  }
  atomic_store(&bytes->place, CLB__NO_PLACE);
}

clb_status clb_bytes_evict(clb_bytes *bytes) {
  unsigned char *address;
  uint64_t first;

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_evict: bytes is NULL");
  if (bytes->edited)
    return clb__bytes_blame(
        bytes,
        clb__fail(CLB_UNSUPPORTED,
                  "evict: the handle was written to, and its copy is the only "
                  "one"),
        0, bytes->length);
  if (bytes->length == 0)
    return CLB_OK;
  (void)clb__fetch_wait(bytes, UINT64_MAX);
  end_mapping(bytes);
  forget(bytes);
  address = clb__source_address(&bytes->source);
  if (address != NULL && clb__region_flat(&bytes->at, &first))
    atomic_store(&bytes->data, address + first);
  return CLB_OK;
}

/* Takes the storage out of a copy that nobody else has. */
static unsigned char *take_out(clb_bytes *bytes) {
  unsigned char *data = bytes->copy->data;

  bytes->copy->data = NULL;
  atomic_store(&bytes->data, NULL);
  clb__copy_release(bytes->copy);
  bytes->copy = NULL;
  return data;
}

clb_status clb_bytes_detach(clb_bytes *bytes, void **data, size_t *length) {
  unsigned char *here;
  bool lazy;
  void *out;
  clb_status status;

  if (bytes == NULL || data == NULL || length == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_detach: %s is NULL",
                     bytes == NULL  ? "bytes"
                     : data == NULL ? "data"
                                    : "length");
  if (bytes->length > 0) {
    status = clb__bytes_materialise(bytes);
    if (status != CLB_OK)
      return status;
  }
  here = atomic_load(&bytes->data);
  lazy = !bytes->edited && bytes->copy != NULL;
  if (lazy && !clb__copy_shared(bytes->copy) && here == bytes->copy->data &&
      bytes->length == bytes->copy->size) {
    out = take_out(bytes);
  } else {
    if (posix_memalign(&out, 64, bytes->length > 0 ? bytes->length : 1) != 0)
      return clb__bytes_blame(bytes,
                              clb__fail(CLB_OUT_OF_MEMORY,
                                        "detach: no memory for %zu bytes",
                                        bytes->length),
                              0, bytes->length);
    if (bytes->length > 0)
      memcpy(out, here, bytes->length);
  }
  if (lazy) {
    end_mapping(bytes);
    forget(bytes);
    if (clb__source_address(&bytes->source) != NULL)
      (void)clb_bytes_evict(bytes);
  }
  *data = out;
  *length = bytes->length;
  return CLB_OK;
}

void clb_free(void *data) {
  free(data);
}
