/*
 * bytes.c - handles: making, counting, releasing, asking.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

_Alignas(64) unsigned char clb__nothing[64];

clb_status clb__bytes_blame(const clb_bytes *bytes, clb_status status,
                            size_t start, size_t end) {
  if (bytes->label != NULL)
    return clb__fail_prefix(status, "%s", bytes->label);
  return clb__fail_prefix(status, "bytes [%zu, %zu)", start, end);
}

clb_status clb__bytes_range(const clb_bytes *bytes, size_t start, size_t end) {
  clb_status status;

  if (start <= end && end <= bytes->length)
    return CLB_OK;
  status = start > end
               ? clb__fail(CLB_OUT_OF_RANGE, "start %zu is past end %zu", start,
                           end)
               : clb__fail(CLB_OUT_OF_RANGE,
                           "range [%zu, %zu) is not inside %zu bytes", start,
                           end, bytes->length);
  return bytes->label != NULL ? clb__fail_prefix(status, "%s", bytes->label)
                              : status;
}

/* Puts a region's arrays where the handle has room for them; returns what is
 * behind. */
static size_t *settle_region(clb__region *region, size_t *room) {
  size_t bytes = region->ndim * sizeof *room;

  if (bytes > 0) {
    memcpy(room, region->shape, bytes);
    memcpy(room + region->ndim, region->strides, bytes);
  }
  region->shape = room;
  region->strides = (ptrdiff_t *)(room + region->ndim);
  return room + 2 * region->ndim;
}

clb_status clb__bytes_make(clb__source *source, const clb__region *at,
                           size_t length, const clb__base *base,
                           clb_bytes **out) {
  size_t size = sizeof(clb_bytes) + 2 * at->ndim * sizeof(size_t);
  clb_bytes *bytes;
  size_t *room;

  if (base != NULL)
    size += sizeof *base + 2 * base->at.ndim * sizeof(size_t);
  bytes = calloc(1, size);
  if (bytes == NULL) {
    source->ops->release(source);
    if (base != NULL)
      clb__copy_release(base->copy);
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a handle");
  }
  atomic_init(&bytes->refs, 1);
  atomic_init(&bytes->place, CLB__NO_PLACE);
  bytes->source = *source;
  bytes->length = length;
  bytes->at = *at;
  room = settle_region(&bytes->at, bytes->room);
  if (base != NULL) {
    clb__base *own = (clb__base *)room;
    *own = *base;
    (void)settle_region(&own->at, room + sizeof *base / sizeof(size_t));
    bytes->based = true;
  }
  *out = bytes;
  return CLB_OK;
}

/* A handle on length bytes in a row. */
static clb_status make_flat(clb__source *source, uint64_t origin, size_t length,
                            clb_bytes **out) {
  unsigned char *address = clb__source_address(source);
  clb__region at;
  clb__room room;
  clb_status status;

  clb__region_pack(&at, &room, 1, &length, 1);
  at.origin = origin;
  status = clb__bytes_make(source, &at, length, NULL, out);
  if (status == CLB_OK && length > 0 && address != NULL)
    atomic_init(&(*out)->data, address + origin);
  return status;
}

static clb_status make_shaped(clb__source *source, const clb_layout *layout,
                              uint64_t origin, size_t length, clb_bytes **out) {
  clb__region at;
  clb__room room;

  clb__region_pack(&at, &room, layout->ndim, layout->shape, layout->elem_size);
  if (length > 0) {
    at.origin = origin + layout->offset;
    if (layout->strides != NULL && layout->ndim > 0)
      memcpy(at.strides, layout->strides,
             layout->ndim * sizeof *layout->strides);
  }
  return clb__bytes_make(source, &at, length, NULL, out);
}

/* Both kinds of device handle: after is its list, or NULL. */
static clb_status from_buffer(clb_context *context, cl_mem buffer,
                              const clb_layout *layout, clb__events *after,
                              clb_bytes **out) {
  clb__source source;
  uint64_t origin, size;
  size_t length = 0;
  clb_status status =
      clb__source_buffer(context, buffer, &source, &origin, &size);

  if (status != CLB_OK)
    return status;
  if (layout == NULL) {
    status = make_flat(&source, origin, (size_t)size, out);
  } else {
    status = clb__layout_check(layout, size, &length);
    if (status == CLB_OK && layout->elem_size > 1 && !context->same_endian)
      status = clb__fail(CLB_UNSUPPORTED,
                         "layout: elements of %zu bytes on a device of the "
                         "other byte order",
                         layout->elem_size);
    if (status != CLB_OK) {
      clb__error cause;
      clb__error_save(&cause, status);
      source.ops->release(&source);
      return clb__error_restore(&cause);
    }
    status = make_shaped(&source, layout, origin, length, out);
  }
  if (status == CLB_OK)
    (*out)->source.u.device.after = clb__events_retain(after);
  return status;
}

static clb_status check_made(const char *call, const clb_context *context,
                             cl_mem buffer, const void *out) {
  if (context != NULL && buffer != NULL && out != NULL)
    return CLB_OK;
  return clb__fail(CLB_INVALID_ARGUMENT, "%s: %s is NULL", call,
                   context == NULL  ? "context"
                   : buffer == NULL ? "buffer"
                                    : "out");
}

clb_status clb_bytes_from_buffer(clb_context *context, cl_mem buffer,
                                 const clb_layout *layout, clb_bytes **out) {
  clb_bytes *bytes;
  clb_status status =
      check_made("clb_bytes_from_buffer", context, buffer, out);

  if (status == CLB_OK)
    status = from_buffer(context, buffer, layout, NULL, &bytes);
  if (status == CLB_OK)
    *out = bytes;
  return status;
}

clb_status clb_bytes_from_buffer_after(clb_context *context, cl_mem buffer,
                                       const clb_layout *layout,
                                       cl_uint num_events,
                                       const cl_event *wait_list,
                                       clb_bytes **out) {
  clb__events *after;
  clb_bytes *bytes;
  clb_status status =
      check_made("clb_bytes_from_buffer_after", context, buffer, out);

  if (status == CLB_OK)
    status = clb__events_make(context, num_events, wait_list, &after);
  if (status != CLB_OK)
    return status;
  status = from_buffer(context, buffer, layout, after, &bytes);
  clb__events_release(after);
  if (status == CLB_OK)
    *out = bytes;
  return status;
}

clb_status clb_bytes_from_file(const char *path, uint64_t offset,
                               uint64_t length, clb_bytes **out) {
  clb__source source;
  clb_bytes *bytes;
  clb_status status;

  if (path == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_from_file: %s is NULL",
                     path == NULL ? "path" : "out");
  if (length > SIZE_MAX)
    return clb__fail_prefix(
        clb__fail(CLB_OUT_OF_RANGE, "%llu bytes are more than SIZE_MAX",
                  (unsigned long long)length),
        "%s", path);
  status = clb__source_file(path, offset, length, &source);
  if (status == CLB_OK)
    status = make_flat(&source, offset, (size_t)length, &bytes);
  if (status == CLB_OK)
    *out = bytes;
  return status;
}

static clb_status from_memory(void *data, size_t length, clb_place place,
                              void (*release)(void *, void *), void *user,
                              clb_bytes **out) {
  clb__source source;
  clb_bytes *bytes;
  /* The program's release belongs to a handle that was made. */
  clb_status status = clb__source_host(data, place, &source);

  if (status == CLB_OK)
    status = make_flat(&source, 0, length, &bytes);
  if (status != CLB_OK)
    return status;
  clb__source_host_release(&bytes->source, release, user);
  *out = bytes;
  return CLB_OK;
}

clb_status clb_bytes_from_host(void *data, size_t length,
                               void (*release)(void *data, void *user),
                               void *user, clb_bytes **out) {
  if (out == NULL || (data == NULL && length > 0))
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_from_host: %s is NULL",
                     out == NULL ? "out" : "data");
  return from_memory(data, length, CLB_PLACE_FOREIGN, release, user, out);
}

static void free_data(void *data, void *user) {
  (void)user;
  free(data);
}

clb_status clb_bytes_from_copy(const void *data, size_t length,
                               clb_bytes **out) {
  void *copy;
  clb_status status;

  if (out == NULL || (data == NULL && length > 0))
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_from_copy: %s is NULL",
                     out == NULL ? "out" : "data");
  if (posix_memalign(&copy, 64, length > 0 ? length : 1) != 0)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a copy of %zu bytes",
                     length);
  if (length > 0)
    memcpy(copy, data, length);
  status = from_memory(copy, length, CLB_PLACE_HEAP, free_data, NULL, out);
  if (status != CLB_OK)
    free(copy);
  return status;
}

clb_bytes *clb_bytes_retain(clb_bytes *bytes) {
  if (bytes != NULL)
    atomic_fetch_add_explicit(&bytes->refs, 1, memory_order_relaxed);
  return bytes;
}

void clb_bytes_release(clb_bytes *bytes) {
  if (bytes == NULL || !clb__small_refs_last(&bytes->refs))
    return;
  if (bytes->unmap != NULL)
    clb__park(bytes->source.u.device.context, bytes->unmap);
  if (bytes->kernels != NULL)
    (void)clReleaseMemObject(bytes->kernels);
  clb__copy_release(bytes->copy);
  if (bytes->based)
    clb__copy_release(clb__base_of(bytes)->copy);
  bytes->source.ops->release(&bytes->source);
  free(bytes->failure);
  free(bytes->label);
  free(bytes);
}

clb_status clb_bytes_set_label(clb_bytes *bytes, const char *label) {
  char *copy = NULL;

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_bytes_set_label: bytes is NULL");
  if (label != NULL && (copy = strdup(label)) == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a label");
  free(bytes->label);
  bytes->label = copy;
  return CLB_OK;
}

size_t clb_bytes_length(const clb_bytes *bytes) {
  return bytes != NULL ? bytes->length : 0;
}

clb_place clb_bytes_place(const clb_bytes *bytes) {
  clb_bytes *b = (clb_bytes *)bytes;
  unsigned char last;

  if (bytes == NULL)
    return CLB_PLACE_HEAP;
  last = atomic_load(&b->place);
  if (last != CLB__NO_PLACE)
    return (clb_place)last;
  /* A prefetch may have brought them, and no read has looked yet. */
  return atomic_load(&b->data) != NULL && b->copy != NULL
             ? CLB_PLACE_HEAP
             : (clb_place)bytes->source.place;
}

size_t clb_bytes_alignment(const clb_bytes *bytes) {
  clb_bytes *b = (clb_bytes *)bytes;
  uintptr_t address;

  if (bytes == NULL)
    return 1;
  address = (uintptr_t)(atomic_load(&b->place) == CLB_PLACE_MAPPED
                            ? atomic_load(&b->mapped)
                            : atomic_load(&b->data));
  return address == 0 ? 64 : (size_t)(address & (~address + 1));
}

clb_status clb_bytes_layout(const clb_bytes *bytes, clb_layout *out) {
  if (bytes == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_layout: %s is NULL",
                     bytes == NULL ? "bytes" : "out");
  out->ndim = bytes->at.windowed ? 1 : bytes->at.ndim;
  out->shape = bytes->at.windowed ? &bytes->length : bytes->at.shape;
  out->strides = NULL;
  out->elem_size = bytes->at.windowed ? 1 : bytes->at.elem_size;
  out->offset = 0;
  return CLB_OK;
}

clb_status clb_bytes_plan(clb_bytes *bytes, char *text, size_t size) {
  char words[320];
  clb__plan plan;
  clb_status status;

  if (bytes == NULL || text == NULL || size == 0)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_plan: %s",
                     bytes == NULL  ? "bytes is NULL"
                     : text == NULL ? "text is NULL"
                                    : "size is 0");
  if (bytes->length == 0) {
    strcpy(words, "nothing");
  } else if (atomic_load(&bytes->data) != NULL) {
    strcpy(words, "on the host");
  } else {
    status = clb__bytes_choose(bytes, 0, bytes->length, CLB__MAY_BE_QUICK,
                               &plan);
    if (status != CLB_OK)
      return clb__bytes_blame(bytes, status, 0, bytes->length);
    clb__plan_text(&plan, words, sizeof words);
  }
  if (strlen(words) >= size)
    words[size - 1] = '\0';
  strcpy(text, words);
  return CLB_OK;
}
