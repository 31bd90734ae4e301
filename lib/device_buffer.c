/*
 * device_buffer.c - device sources beyond transfers: adopting the program's
 * buffer, the device-side copy of a snapshot, the mapping of CLB_MAP.
 */
#include "config.h"

#include "source.h"

#include <stdlib.h>

/* One property of a buffer; false with err set. */
#define ASK(mem, name, value, err)                                             \
  ((err) = clGetMemObjectInfo(mem, name, sizeof(value), &(value), NULL),       \
   (err) == CL_SUCCESS)

static unsigned short flags_of(cl_mem_flags flags) {
  unsigned short cannot = 0;

  if (flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
    cannot |= CLB__HOST_CANNOT_READ;
  if (flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))
    cannot |= CLB__HOST_CANNOT_WRITE;
  if (flags & CL_MEM_WRITE_ONLY)
    cannot |= CLB__KERNEL_CANNOT_READ;
  if (flags & CL_MEM_READ_ONLY)
    cannot |= CLB__KERNEL_CANNOT_WRITE;
  return cannot;
}

/* Goes from a sub-buffer to the root; what either forbids is forbidden. */
static cl_int find_root(cl_mem buffer, cl_mem *root, uint64_t *origin,
                        cl_mem_flags *flags) {
  cl_mem parent = NULL;
  size_t offset = 0;
  cl_mem_flags more = 0;
  cl_int err;

  if (!ASK(buffer, CL_MEM_FLAGS, *flags, err) ||
      !ASK(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, parent, err))
    return err;
  *root = buffer;
  *origin = 0;
  if (parent == NULL)
    return CL_SUCCESS;
  if (!ASK(buffer, CL_MEM_OFFSET, offset, err) ||
      !ASK(parent, CL_MEM_FLAGS, more, err))
    return err;
  *root = parent;
  *origin = offset;
  *flags |= more;
  return CL_SUCCESS;
}

static const char *type_name(cl_mem_object_type type) {
  switch (type) {
#define TYPE_NAME(name)                                                        \
  case name:                                                                   \
    return #name;
    TYPE_NAME(CL_MEM_OBJECT_IMAGE2D)
    TYPE_NAME(CL_MEM_OBJECT_IMAGE3D)
    TYPE_NAME(CL_MEM_OBJECT_IMAGE2D_ARRAY)
    TYPE_NAME(CL_MEM_OBJECT_IMAGE1D)
    TYPE_NAME(CL_MEM_OBJECT_IMAGE1D_ARRAY)
    TYPE_NAME(CL_MEM_OBJECT_IMAGE1D_BUFFER)
#ifdef CL_MEM_OBJECT_PIPE
    TYPE_NAME(CL_MEM_OBJECT_PIPE)
#else
  case 0x10F7: /* OpenCL 2.0's */
    return "CL_MEM_OBJECT_PIPE";
#endif
#undef TYPE_NAME
  default:
    return "of an unknown kind";
  }
}

clb_status clb__source_buffer(clb_context *context, cl_mem buffer,
                              clb__source *source, uint64_t *origin,
                              uint64_t *size) {
  cl_mem_object_type type = 0;
  cl_context owner = NULL;
  cl_mem_flags flags = 0;
  size_t bytes = 0;
  cl_mem root;
  cl_int err;

  if (!ASK(buffer, CL_MEM_TYPE, type, err)) {
    if (err == CL_INVALID_MEM_OBJECT)
      return clb__fail(CLB_INVALID_ARGUMENT, "buffer: not a memory object");
    return clb__fail_cl(err, "clGetMemObjectInfo");
  }
  if (type != CL_MEM_OBJECT_BUFFER)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "buffer: the memory object is %s (type 0x%x), not "
                     "CL_MEM_OBJECT_BUFFER",
                     type_name(type), (unsigned)type);
  if (!ASK(buffer, CL_MEM_CONTEXT, owner, err) ||
      !ASK(buffer, CL_MEM_SIZE, bytes, err) ||
      (err = find_root(buffer, &root, origin, &flags)) != CL_SUCCESS)
    return clb__fail_cl(err, "clGetMemObjectInfo");
  if (owner != context->cl)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "buffer: of another OpenCL context than the queue");
  err = clRetainMemObject(root);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainMemObject");
  source->ops = &clb__device_ops;
  source->u.device.context = clb_context_retain(context);
  source->u.device.mem = root;
  source->u.device.after = NULL;
  source->flags = flags_of(flags);
  source->place = CLB_PLACE_DEVICE;
  *size = bytes;
  return CLB_OK;
}

/* --- Snapshot --------------------------------------------------------------- */

/* A form as one rectangle of the source, where it is one and much smaller than
 * its span, and whose pitches lie whole in the buffer of size bytes (a driver
 * asks for that); else the whole span. */
static clb__move region_of(const clb__form *form, size_t size) {
  clb__plan plan = {.kind = CLB_PLAN_GATHER, .box_dims = CLB__MAX_DIMS,
                    .rects = true, .rect_dims = 2, .form = *form,
                    .end = clb__form_length(form),
                    .chunk = clb__form_length(form)};
  clb__move span = {.height = 1, .depth = 1};
  const clb__move *rect;
  clb__cursor cursor;
  uint64_t first, bytes;

  clb__form_span(form, &first, &bytes);
  clb__cursor_init(&cursor, &plan);
  /* A broadcast may have more bytes than a box. */
  if (plan.end <= PTRDIFF_MAX && clb__cursor_peek(&cursor, &rect) &&
      rect->last && rect->length == plan.end && rect->bytes <= bytes / 2 &&
      (rect->depth > 1 ? rect->slice_pitch <= size / rect->depth
                       : rect->row_pitch <= size / rect->height))
    return *rect;
  span.origin = first;
  span.width = span.bytes = (size_t)bytes;
  return span;
}

/* Enqueues the copy on the program's queue, so that what the program enqueues
 * later comes after it; an out-of-order queue needs barriers for that. */
static clb_status enqueue_snapshot(clb_context *context, cl_mem from, cl_mem to,
                                   const clb__move *move, cl_event *event) {
  cl_command_queue queue = context->program;
  size_t origin[3] = {(size_t)move->origin, 0, 0}, zero[3] = {0, 0, 0};
  size_t region[3] = {move->width, move->height, move->depth};
  size_t row = move->row_pitch != 0 ? move->row_pitch : move->width;
  size_t slice =
      move->slice_pitch != 0 ? move->slice_pitch : row * move->height;
  bool plain = move->height == 1 && move->depth == 1;
  const char *call = "clEnqueueBarrierWithWaitList";
  cl_int err = CL_SUCCESS;

  *event = NULL;
  if (context->out_of_order)
    err = clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL);
  if (err == CL_SUCCESS) {
    call = plain ? "clEnqueueCopyBuffer" : "clEnqueueCopyBufferRect";
    err = plain ? clEnqueueCopyBuffer(queue, from, to, origin[0], 0,
                                      move->bytes, 0, NULL, event)
                : clEnqueueCopyBufferRect(
                      queue, from, to, origin, zero, region, row, slice,
                      move->width, move->width * move->height, 0, NULL, event);
    if (err != CL_SUCCESS)
      *event = NULL;
  }
  if (err == CL_SUCCESS && context->out_of_order) {
    call = "clEnqueueBarrierWithWaitList";
    err = clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL);
  }
  if (err == CL_SUCCESS) {
    call = "clFlush";
    err = clFlush(queue);
  }
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, call);
}

clb_status clb__source_snapshot(const clb__source *source,
                                const clb__form *form, clb__source *out,
                                clb__move *copied) {
  clb_context *context = source->u.device.context;
  cl_mem from = source->u.device.mem, to = NULL;
  clb__events *before = NULL;
  clb__parked *node;
  clb_status status = CLB_OK;
  cl_event event = NULL;
  clb__move move;
  size_t size = 0;
  cl_int err;

  if (!ASK(from, CL_MEM_SIZE, size, err))
    return clb__fail_cl(err, "clGetMemObjectInfo");
  clb__park_sweep(context); /* snapshots that nobody reads end too */
  move = region_of(form, size);
  node = calloc(1, sizeof *node);
  if (node == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "snapshot: no memory");
  /* The program's list is waited for; a snapshot's copy is on the same queue
   * as the next one, and stays in its list: if it fails, so do both. */
  if (source->u.device.after != NULL && !(source->flags & CLB__SNAPSHOT))
    status = clb__events_wait(source->u.device.after);
  else
    before = source->u.device.after;
  if (status != CLB_OK)
    goto out;
  to = clCreateBuffer(context->cl, CL_MEM_READ_WRITE, move.bytes, NULL, &err);
  if (err != CL_SUCCESS) {
    to = NULL;
    (void)clb__fail_cl(err, "clCreateBuffer");
    status = clb__fail_prefix(CLB_OUT_OF_MEMORY, "snapshot of %zu bytes",
                              move.bytes);
    goto out;
  }
  /* References that the copy needs until it has ended, whoever lets go. */
  if ((err = clRetainMemObject(from)) == CL_SUCCESS)
    node->mem[0] = from;
  if (err == CL_SUCCESS && (err = clRetainMemObject(to)) == CL_SUCCESS)
    node->mem[1] = to;
  if (err != CL_SUCCESS) {
    status = clb__fail_cl(err, "clRetainMemObject");
    goto out;
  }
  status = enqueue_snapshot(context, from, to, &move, &event);
  if (event != NULL)
    node->event = event;
  if (status == CLB_OK)
    status = clb__events_make_behind(before, event, &out->u.device.after);
  if (status != CLB_OK)
    goto out;
  out->ops = source->ops;
  out->flags = CLB__SNAPSHOT;
  out->place = CLB_PLACE_DEVICE;
  out->u.device.context = clb_context_retain(context);
  out->u.device.mem = to;
  to = NULL;
  *copied = move;

out:
  /* With an event the copy is on its way, also where the call failed then. */
  clb__park(context, node);
  if (to != NULL)
    (void)clReleaseMemObject(to);
  return status;
}

/* --- CLB_MAP ---------------------------------------------------------------- */

clb_status clb__source_map(const clb__source *source, uint64_t first,
                           size_t bytes, void **data, clb__parked **out) {
  clb__port port = {.source = source, .direction = CLB__GET};
  unsigned char *mapped;
  clb__facts facts;
  clb_status status = source->ops->facts(source, CLB__GET, false, &facts);

  if (status == CLB_OK && !(facts.plans & CLB_PLAN_MAP))
    return CLB_WOULD_COPY;
  if (status != CLB_OK)
    return status;
  *out = calloc(1, sizeof **out);
  if (*out == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "mapping: no memory");
  status = clb__port_open(&port);
  if (status == CLB_OK)
    status = source->ops->map(&port, first, bytes, &mapped);
  if (status == CLB_OK) {
    cl_int err = clRetainMemObject(source->u.device.mem);
    if (err == CL_SUCCESS) {
      (*out)->mem[0] = source->u.device.mem;
      *data = (*out)->mapped = mapped;
      return CLB_OK;
    }
    (void)source->ops->unmap(&port);
    status = clb__fail_cl(err, "clRetainMemObject");
  }
  free(*out);
  return status;
}
