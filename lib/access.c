/*
 * access.c - looking at the contents: read, copy_into, stream.
 */
#include "config.h"

#include "bytes.h"

#include <string.h>

static bool flat(clb_bytes *bytes) {
  uint64_t first;
  bool is;

  pthread_mutex_lock(clb__lock(bytes));
  is = clb__region_flat(&bytes->at, &first);
  pthread_mutex_unlock(clb__lock(bytes));
  return is;
}

static clb_status map_source(clb_bytes *bytes) {
  clb__parked *unmap = NULL;
  void *mapped = NULL;
  clb__origin from;
  uint64_t first;
  clb_status status = clb__origin_of_source(bytes, &from);

  if (status != CLB_OK)
    return status;
  (void)clb__origin_flat(&from, &first); /* once so, for ever */
  status = clb__source_map(&from.source, first, bytes->length, &mapped, &unmap);
  if (status == CLB_OK) { /* nobody else has the claim */
    bytes->unmap = unmap;
    atomic_store(&bytes->mapped, mapped);
  }
  clb__origin_end(&from);
  return status;
}

static clb_status map(clb_bytes *bytes) {
  bool mine;
  clb_status status;

  if (!flat(bytes))
    return CLB_WOULD_COPY;
  status = clb__fetch_claim(bytes, &bytes->mapped, &mine);
  if (status != CLB_OK || !mine)
    return status;
  status = map_source(bytes);
  clb__fetch_settle(bytes, status, NULL, NULL);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  clb__context_count(bytes->source.u.device.context, CLB_PLAN_MAP,
                     bytes->length, 0);
  return CLB_OK;
}

clb_status clb_bytes_read(clb_bytes *bytes, clb_access access,
                          const void **data) {
  clb_place place;
  clb_status status;

  if (bytes == NULL || data == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_read: %s is NULL",
                     bytes == NULL ? "bytes" : "data");
  if (access != CLB_COPY && access != CLB_NO_COPY && access != CLB_MAP)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_bytes_read: no such access: %d", (int)access);
  if (bytes->length == 0) {
    *data = clb__nothing;
    return CLB_OK;
  }
  if (access == CLB_MAP && clb__bytes_on_device(bytes) && !bytes->edited) {
    status = map(bytes);
    if (status != CLB_OK)
      return status;
    atomic_store(&bytes->place, CLB_PLACE_MAPPED);
    *data = atomic_load(&bytes->mapped);
    return CLB_OK;
  }
  if (atomic_load(&bytes->data) == NULL) {
    if (access != CLB_COPY)
      return CLB_WOULD_COPY;
    status = clb__bytes_materialise(bytes);
    if (status != CLB_OK)
      return status;
  }
  place = bytes->copy != NULL ? CLB_PLACE_HEAP
                              : (clb_place)bytes->source.place;
  atomic_store(&bytes->place, (unsigned char)place);
  *data = atomic_load(&bytes->data);
  return CLB_OK;
}

clb_status clb_bytes_copy_into(clb_bytes *bytes, size_t start, void *dst,
                               size_t length) {
  clb__target target = {.memory = dst, .reachable = true};
  const unsigned char *data;
  clb_status status;
  size_t end;

  if (bytes == NULL || (dst == NULL && length > 0))
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_copy_into: %s is NULL",
                     bytes == NULL ? "bytes" : "dst");
  if (clb__add_size(start, length, &end)) {
    status = clb__fail(CLB_OUT_OF_RANGE, "start %zu plus length %zu overflows",
                       start, length);
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  }
  status = clb__bytes_range(bytes, start, end);
  if (status != CLB_OK || length == 0)
    return status;
  data = atomic_load(&bytes->data);
  if (data == NULL)
    return clb__bytes_get(bytes, start, end, &target);
  memcpy(dst, data + start, length);
  return CLB_OK;
}

/* Out of the host copy, in the same pieces as from elsewhere. */
static clb_status stream_host(clb_bytes *bytes, const unsigned char *data,
                              size_t start, size_t end,
                              const clb__target *target) {
  size_t chunk = clb__bytes_on_device(bytes)
                     ? bytes->source.u.device.context->chunk_size
                     : bytes->source.ops->chunk;
  size_t at, piece;

  for (at = start; at < end; at += piece) {
    piece = end - at < chunk ? end - at : chunk;
    if (target->sink(data + at, piece, target->user) != 0) {
      clb_status status = clb__fail(CLB_CANCELLED, "stopped by the sink");
      return clb__bytes_blame(bytes, status, start, end);
    }
  }
  return CLB_OK;
}

clb_status clb_bytes_stream(clb_bytes *bytes, size_t start, size_t end,
                            clb_sink sink, void *user) {
  clb__target target = {.sink = sink, .user = user};
  const unsigned char *data;
  clb_status status;

  if (bytes == NULL || sink == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_stream: %s is NULL",
                     bytes == NULL ? "bytes" : "sink");
  status = clb__bytes_range(bytes, start, end);
  if (status != CLB_OK || start == end)
    return status;
  clb_bytes_retain(bytes); /* the sink may release the program's last one */
  data = atomic_load(&bytes->data);
  status = data != NULL ? stream_host(bytes, data, start, end, &target)
                        : clb__bytes_get(bytes, start, end, &target);
  clb_bytes_release(bytes);
  return status;
}
