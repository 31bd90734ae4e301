/*
 * upload.c - the other way: a handle's logical bytes into a buffer.
 */
#include "config.h"

#include "bytes.h"

/* Where the bytes come from: the host copy, or one access of many parts, so
 * that all of them are of the same moment. */
typedef struct supply {
  const unsigned char *data;
  clb__access access;
} supply;

static clb_status supply_open(supply *from, clb_bytes *bytes) {
  from->data = atomic_load(&bytes->data);
  return from->data != NULL
             ? CLB_OK
             : clb__access_begin(&from->access, bytes, 0, bytes->length);
}

static clb_status pull(void *user, size_t start, size_t length,
                       unsigned char *data) {
  supply *from = user;
  const clb__target target = {.memory = data};

  return clb__access_part(&from->access, start, start + length, &target);
}

static clb_status supply_close(supply *from) {
  return from->data != NULL ? CLB_OK : clb__access_end(&from->access);
}

/* The destination: a source that is written to, and its form. */
typedef struct destination {
  clb__source source;
  clb__form form;
  size_t length;
} destination;

static clb_status shape_of(const clb_context *context, const clb_layout *layout,
                           uint64_t origin, uint64_t size, destination *to) {
  ptrdiff_t packed[CLB__MAX_DIMS];
  const size_t bytes = (size_t)size;
  const clb_layout whole = {1, &bytes, NULL, 1, 0};
  clb_status status;

  if (layout == NULL)
    layout = &whole;
  status = clb__layout_check(layout, size, &to->length);
  if (status != CLB_OK || to->length == 0)
    return status;
  if (layout->elem_size > 1 && !context->same_endian)
    return clb__fail(CLB_UNSUPPORTED,
                     "layout: elements of %zu bytes on a device of the other "
                     "byte order",
                     layout->elem_size);
  if (layout->strides == NULL)
    clb__layout_pack(layout->ndim, layout->shape, layout->elem_size, packed);
  clb__form_make(&to->form, layout->ndim, layout->shape,
                 layout->strides != NULL ? layout->strides : packed,
                 layout->elem_size, origin + layout->offset);
  if (!clb__form_apart(&to->form))
    return clb__layout_overlaps(layout);
  return CLB_OK;
}

static clb_status put(clb_bytes *bytes, destination *to) {
  const clb__source_ops *ops = to->source.ops;
  clb__port port = {.source = &to->source, .direction = CLB__PUT};
  double since = clb__seconds();
  clb__plan plan;
  supply from;
  clb_status status = clb__source_plan(&to->source, CLB__PUT, &to->form, 0,
                                       to->length, CLB__COMMIT, &plan);

  if (status == CLB_OK)
    status = supply_open(&from, bytes);
  if (status == CLB_OK)
    status = clb__port_open(&port);
  if (status == CLB_OK)
    status = clb__transfer_put(
        &port, &plan, &(clb__supply){from.data, pull, &from});
  if (status == CLB_OK)
    status = supply_close(&from);
  if (status == CLB_OK)
    status = ops->close(&port);
  if (status == CLB_OK)
    clb__bytes_log(bytes, to->source.u.device.context, "upload: ", &plan,
                   since);
  return status;
}

/* Whether writing the destination could change what is still to be read. */
static bool shares_root(const clb_bytes *bytes, const destination *to) {
  return clb__source_is_device(&bytes->source) &&
         bytes->source.u.device.mem == to->source.u.device.mem &&
         !bytes->based &&
         atomic_load(&((clb_bytes *)bytes)->data) == NULL;
}

/* Reads a copy on the device instead. */
static clb_status put_from_copy(clb_bytes *bytes, destination *to) {
  clb_bytes *copy;
  clb_status status = clb_bytes_view(bytes, 0, bytes->length, &copy);

  if (status != CLB_OK)
    return status;
  status = clb_bytes_snapshot(copy);
  if (status == CLB_OK)
    status = put(copy, to);
  clb_bytes_release(copy);
  return status;
}

clb_status clb_bytes_upload(clb_bytes *bytes, clb_context *context, cl_mem dst,
                            const clb_layout *layout) {
  destination to;
  uint64_t origin, size;
  clb__error cause;
  clb_status status;

  if (bytes == NULL || context == NULL || dst == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_upload: %s is NULL",
                     bytes == NULL     ? "bytes"
                     : context == NULL ? "context"
                                       : "dst");
  status = clb__source_buffer(context, dst, &to.source, &origin, &size);
  if (status == CLB_OK) {
    status = shape_of(context, layout, origin, size, &to);
    if (status == CLB_OK && to.length != bytes->length)
      status = clb__fail(CLB_INVALID_ARGUMENT,
                         "%zu bytes, but the destination has %zu",
                         bytes->length, to.length);
    if (status == CLB_OK && to.length > 0)
      status = shares_root(bytes, &to) ? put_from_copy(bytes, &to)
                                       : put(bytes, &to);
    clb__error_save(&cause, status);
    to.source.ops->release(&to.source);
    if (status != CLB_OK)
      (void)clb__error_restore(&cause);
  }
  return clb__fail_prefix(status, "upload%s%s", bytes->label != NULL ? " of "
                                                                     : "",
                          bytes->label != NULL ? bytes->label : "");
}
