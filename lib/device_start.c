/*
 * device_start.c - the commands of one move between a buffer and the host: a
 * plain or rectangular transfer, or two commands with scratch in between, or a
 * kernel and a transfer.
 */
#include "config.h"

#include "device_source.h"

static clb_context *context_of(const clb__port *port) {
  return port->source->u.device.context;
}

/* The row and slice pitch that say a packed rectangle. */
typedef struct rect_words {
  size_t origin[3], packed[3], region[3];
  size_t row, slice, packed_row, packed_slice;
} rect_words;

static rect_words rect_of(const clb__move *move, size_t packed_at) {
  rect_words rect = {.origin = {(size_t)move->origin, 0, 0},
               .packed = {packed_at, 0, 0},
               .region = {move->width, move->height, move->depth},
               .row = move->row_pitch,
               .slice = move->slice_pitch,
               .packed_row = move->width,
               .packed_slice = move->width * move->height};

  /* Every pitch is given, also where it says nothing: OpenCL 1.2, 5.2.2. */
  if (rect.row == 0)
    rect.row = rect.packed_row;
  if (rect.slice == 0)
    rect.slice = rect.row * move->height;
  return rect;
}

static bool is_plain(const clb__move *move) {
  return move->height == 1 && move->depth == 1;
}

/* Between the buffer and host memory. */
static cl_int enqueue(const clb__port *port, unsigned char *data,
                      const clb__move *move, cl_event *event,
                      const char **call) {
  cl_command_queue queue =
      port->quick ? context_of(port)->program : context_of(port)->queue;
  cl_mem mem = port->source->u.device.mem;
  rect_words r = rect_of(move, 0);

  if (port->direction == CLB__GET) {
    *call = is_plain(move) ? "clEnqueueReadBuffer" : "clEnqueueReadBufferRect";
    return is_plain(move)
               ? clEnqueueReadBuffer(queue, mem, CL_FALSE, (size_t)move->origin,
                                     move->bytes, data, 0, NULL, event)
               : clEnqueueReadBufferRect(queue, mem, CL_FALSE, r.origin,
                                         r.packed, r.region, r.row, r.slice,
                                         r.packed_row, r.packed_slice, data, 0,
                                         NULL, event);
  }
  *call = is_plain(move) ? "clEnqueueWriteBuffer" : "clEnqueueWriteBufferRect";
  return is_plain(move)
             ? clEnqueueWriteBuffer(queue, mem, CL_FALSE, (size_t)move->origin,
                                    move->bytes, data, 0, NULL, event)
             : clEnqueueWriteBufferRect(queue, mem, CL_FALSE, r.origin,
                                        r.packed, r.region, r.row, r.slice,
                                        r.packed_row, r.packed_slice, data, 0,
                                        NULL, event);
}

/* Between the buffer and a place in scratch, on the device. */
static cl_int enqueue_copy(const clb__port *port, cl_mem scratch, size_t at,
                           const clb__move *move, cl_event *event,
                           const char **call) {
  cl_command_queue queue = context_of(port)->queue;
  cl_mem mem = port->source->u.device.mem;
  rect_words r = rect_of(move, at);

  *call = is_plain(move) ? "clEnqueueCopyBuffer" : "clEnqueueCopyBufferRect";
  if (port->direction == CLB__GET)
    return is_plain(move)
               ? clEnqueueCopyBuffer(queue, mem, scratch, (size_t)move->origin,
                                     at, move->bytes, 0, NULL, event)
               : clEnqueueCopyBufferRect(queue, mem, scratch, r.origin,
                                         r.packed, r.region, r.row, r.slice,
                                         r.packed_row, r.packed_slice, 0, NULL,
                                         event);
  return is_plain(move)
             ? clEnqueueCopyBuffer(queue, scratch, mem, at,
                                   (size_t)move->origin, move->bytes, 0, NULL,
                                   event)
             : clEnqueueCopyBufferRect(queue, scratch, mem, r.packed, r.origin,
                                       r.region, r.packed_row, r.packed_slice,
                                       r.row, r.slice, 0, NULL, event);
}

/* Between scratch and host memory. */
static cl_int enqueue_scratch(const clb__port *port, cl_command_queue queue,
                              cl_mem scratch, size_t at, unsigned char *data,
                              size_t bytes, cl_event *event,
                              const char **call) {
  if (port->direction == CLB__GET) {
    *call = "clEnqueueReadBuffer";
    return clEnqueueReadBuffer(queue, scratch, CL_FALSE, at, bytes, data, 0,
                               NULL, event);
  }
  *call = "clEnqueueWriteBuffer";
  return clEnqueueWriteBuffer(queue, scratch, CL_FALSE, at, bytes, data, 0,
                              NULL, event);
}

/* A move by two commands, between which the bytes are in scratch.  The queue is
 * in-order; both events are kept, since an error need not be carried on. */
typedef struct hop {
  clb__port *port;
  clb__block *block;
  unsigned char *data;
  const clb__move *move;
  const clb__pack *pack; /* NULL: a copy of the bytes as they lie */
  cl_mem region;         /* what the kernel packs */
  cl_command_queue queue;
  size_t at; /* in scratch */
  const char *call;
} hop;

/* Between the buffer and scratch. */
static cl_int hop_on_device(hop *one) {
  clb__block *block = one->block;
  cl_event *event = &block->event[block->events];
  cl_int err;

  if (one->pack == NULL) {
    err = enqueue_copy(one->port, block->scratch, one->at, one->move, event,
                       &one->call);
  } else {
    err = clb__kernels_enqueue(context_of(one->port), one->queue,
                               one->port->direction, one->pack, one->region,
                               block->scratch, one->at, event, &one->call);
  }
  block->events += err == CL_SUCCESS;
  return err;
}

/* Between scratch and the host. */
static cl_int hop_over_link(hop *one) {
  clb__block *block = one->block;
  cl_int err = enqueue_scratch(one->port, one->queue, block->scratch, one->at,
                               one->data, one->move->bytes,
                               &block->event[block->events], &one->call);

  block->events += err == CL_SUCCESS;
  return err;
}

static clb_status hop_through_scratch(hop *one) {
  bool get = one->port->direction == CLB__GET;
  clb_status status = clb__staging_scratch(context_of(one->port), one->block);
  cl_int err;

  if (status != CLB_OK)
    return status;
  err = get ? hop_on_device(one) : hop_over_link(one);
  if (err == CL_SUCCESS)
    err = get ? hop_over_link(one) : hop_on_device(one);
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, one->call);
}

static clb_status start_one(clb__port *port, clb__block *block, size_t at,
                            unsigned char *data, const clb__move *move) {
  hop one = {.port = port, .block = block, .data = data, .move = move,
             .queue = context_of(port)->queue, .at = at};
  const char *call;
  cl_int err;

  if (!clb__host_may(port->source, port->direction))
    return hop_through_scratch(&one);
  err = enqueue(port, data, move, &block->event[block->events], &call);
  block->events += err == CL_SUCCESS;
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, call);
}

/* A kernel may not have a buffer that it may not read, or write, as an
 * argument: it works on a copy of the part's span, which for a put is copied
 * back, with what lies between the elements as it was. */
static clb_status hop_beside(hop *one, clb__form *form, size_t start) {
  bool wide = clb__pack_wide(form); /* as the kernel that was built */
  clb__block *block = one->block;
  cl_mem mem = one->port->source->u.device.mem;
  cl_command_queue queue = one->queue;
  clb__pack pack;
  uint64_t first, bytes;
  clb_status status;
  cl_int err;

  clb__form_narrow(form, &start, one->move->bytes);
  clb__form_span(form, &first, &bytes);
  form->origin -= first;
  status = clb__staging_beside(context_of(one->port), block, (size_t)bytes);
  if (status != CLB_OK)
    return status;
  err = clEnqueueCopyBuffer(queue, mem, block->beside, (size_t)first, 0,
                            (size_t)bytes, 0, NULL,
                            &block->event[block->events]);
  block->events += err == CL_SUCCESS;
  if (err == CL_SUCCESS) {
    clb__pack_make(form, start, one->move->bytes, &pack);
    pack.wide = wide;
    one->pack = &pack;
    one->region = block->beside;
    status = hop_through_scratch(one);
    if (status != CLB_OK || one->port->direction == CLB__GET)
      return status;
    /* A span that could not be copied here must not be copied back. */
    status = clb__flush(queue);
    if (status == CLB_OK)
      status = clb__staging_wait(block);
    if (status != CLB_OK)
      return status;
    err = clEnqueueCopyBuffer(queue, block->beside, mem, 0, (size_t)first,
                              (size_t)bytes, 0, NULL,
                              &block->event[block->events]);
    block->events += err == CL_SUCCESS;
  }
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, "clEnqueueCopyBuffer");
}

static clb_status start_packed(clb__port *port, const clb__plan *plan,
                               clb__block *block, size_t at,
                               unsigned char *data, const clb__move *move) {
  clb__form form = plan->form;
  clb__pack pack;
  hop one = {.port = port, .block = block, .data = data, .move = move,
             .pack = &pack, .region = port->source->u.device.mem, .at = at};
  /* Parts of an upload may share a span: one after the other then. */
  unsigned lane = clb__kernel_may(port->source, port->direction) ? block->lane : 0;
  clb_status status = clb__context_lane(context_of(port), lane, &one.queue);

  if (status != CLB_OK)
    return status;
  if (!clb__kernel_may(port->source, port->direction))
    return hop_beside(&one, &form, move->start);
  clb__pack_make(&form, move->start, move->bytes, &pack);
  return hop_through_scratch(&one);
}

/* Whether the rows or slices, each with the whole of its pitch, are more than
 * the buffer has. */
static bool pitches_leave(const clb__port *port, const clb__move *move) {
  if (move->depth > 1)
    return move->slice_pitch > port->size / move->depth;
  return move->height > 1 && move->row_pitch > port->size / move->height;
}

/* NVIDIA's driver refuses a rect whose last pitch ends past the buffer, though
 * its last row does not (seen with 580.159): the last slice or row of such a
 * one is a command of its own. */
static clb_status start_cut(clb__port *port, clb__block *block, size_t at,
                            unsigned char *data, const clb__move *move) {
  clb__move first = *move, last = *move;
  clb_status status;

  if (!pitches_leave(port, move))
    return start_one(port, block, at, data, move);
  if (move->depth > 1) {
    first.depth--;
    last.depth = 1;
    last.origin += (uint64_t)first.depth * move->slice_pitch;
  } else {
    first.height--;
    last.height = 1;
    last.origin += (uint64_t)first.height * move->row_pitch;
  }
  first.bytes = first.width * first.height * first.depth;
  last.bytes = last.width * last.height * last.depth;
  status = start_cut(port, block, at, data, &first);
  return status == CLB_OK ? start_cut(port, block, at + first.bytes,
                                      data + first.bytes, &last)
                          : status;
}

clb_status clb__device_start(clb__port *port, const clb__plan *plan,
                             clb__block *block, size_t at, unsigned char *data,
                             const clb__move *move) {
  clb_context *context = context_of(port);
  /* Nothing of another upload's between the copy of a span and its way back:
   * it would be lost. */
  bool alone = port->direction == CLB__PUT &&
               !clb__kernel_may(port->source, port->direction);
  clb_status status;

  if (alone)
    pthread_mutex_lock(&context->span_lock);
  status = plan->kind == CLB_PLAN_PACK && !clb__form_contiguous(&plan->form)
               ? start_packed(port, plan, block, at, data, move)
               : start_cut(port, block, at, data, move);
  if (alone)
    pthread_mutex_unlock(&context->span_lock);
  return status;
}
