/*
 * source_device.c - contents in an OpenCL buffer.
 *
 * Transfers address the root buffer with an offset, on the library's own
 * in-order queue, with no wait list; what the program enqueued before is waited
 * for by the host in open.  Making, snapshots and CLB_MAP are in
 * device_buffer.c.
 */
#include "config.h"

#include "kernels.h"
#include "source.h"

/* Smaller accesses get on with figures that may be wrong. */
#define WORTH_MEASURING ((size_t)1 << 20)

/* What accesses may lose in all for the want of a kernel until it is built
 * aside.  A program that reads but a little never has one built. */
#define MISSED_US 2000.0

static clb_context *context_of(const clb__port *port) {
  return port->source->u.device.context;
}

static clb_status device_retain(const clb__source *source) {
  cl_int err = clRetainMemObject(source->u.device.mem);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainMemObject");
  clb_context_retain(source->u.device.context);
  clb__events_retain(source->u.device.after);
  return CLB_OK;
}

static void device_release(clb__source *source) {
  clb__events_release(source->u.device.after);
  if (source->u.device.mem != NULL)
    (void)clReleaseMemObject(source->u.device.mem);
  clb_context_release(source->u.device.context);
}

static pthread_mutex_t *device_lock(const clb__source *source) {
  return &source->u.device.context->lock;
}

static bool *device_pooled(const clb__source *source) {
  return &source->u.device.context->pooled;
}

static bool host_may(const clb__source *source, clb__direction direction) {
  return !(source->flags & (direction == CLB__GET ? CLB__HOST_CANNOT_READ
                                                  : CLB__HOST_CANNOT_WRITE));
}

static bool kernel_may(const clb__source *source, clb__direction direction) {
  return !(source->flags & (direction == CLB__GET ? CLB__KERNEL_CANNOT_READ
                                                  : CLB__KERNEL_CANNOT_WRITE));
}

static clb_status device_facts(const clb__source *source,
                               clb__direction direction, clb__facts *facts) {
  clb_context *context = source->u.device.context;
  clb_status status = clb__device_facts(context, direction, facts);

  if (status != CLB_OK)
    return status;
  facts->pack_beside = !kernel_may(source, direction);
  if (direction == CLB__PUT || context->out_of_order ||
      source->u.device.after != NULL || !host_may(source, direction))
    facts->quick_bytes = 0;
  if (!host_may(source, direction))
    facts->command_us *= 2; /* through scratch */
  /* A put maps for reading too: what is between the elements has to stay. */
  if (!host_may(source, CLB__GET) || !host_may(source, direction))
    facts->plans &= ~(unsigned)CLB_PLAN_MAP;
  return CLB_OK;
}

static clb_status device_order(clb__port *port) {
  const clb__source *source = port->source;
  clb_status status;
  cl_int err = clGetMemObjectInfo(source->u.device.mem, CL_MEM_SIZE,
                                  sizeof port->size, &port->size, NULL);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetMemObjectInfo");
  clb__park_sweep(context_of(port));
  port->marker = NULL;
  if (port->quick)
    return CLB_OK;
  status = source->u.device.after != NULL
               ? clb__events_flush(source->u.device.after)
               : clb__queue_mark(context_of(port), &port->marker);
  port->ordered = status == CLB_OK;
  return status;
}

static void device_drop(clb__port *port) {
  if (port->marker != NULL)
    (void)clReleaseEvent(port->marker);
  port->marker = NULL;
  port->ordered = false;
}

static bool device_ready(const clb__port *port) {
  return port->marker != NULL
             ? clb__event_ready(port->marker)
             : clb__events_ready(port->source->u.device.after);
}

static clb_status device_await(clb__port *port) {
  cl_event marker = port->marker;

  port->marker = NULL;
  port->ordered = false;
  if (port->quick)
    return CLB_OK;
  if (port->watching)
    return marker != NULL ? clb__marker_watch(context_of(port), marker)
                          : clb__events_watch(port->source->u.device.after);
  return marker != NULL ? clb__marker_wait(context_of(port), marker)
                        : clb__events_wait(port->source->u.device.after);
}

static clb_status device_close(clb__port *port) {
  (void)port;
  return CLB_OK;
}

static clb__block *device_take(clb__port *port, bool bare, bool must) {
  if (bare)
    return clb__block_bare(context_of(port)->chunk_size);
  return clb__staging_take(context_of(port), must);
}

static void device_give(clb__port *port, clb__block *block) {
  /* Ours is an in-order queue: the last one ends last. */
  if (block->events > 0)
    clb__park_keep(context_of(port), port->source->u.device.mem,
                   block->event[block->events - 1]);
  clb__staging_give(context_of(port), block);
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

  if (!host_may(port->source, port->direction))
    return hop_through_scratch(&one);
  err = enqueue(port, data, move, &block->event[block->events], &call);
  block->events += err == CL_SUCCESS;
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, call);
}

static clb_status flush(cl_command_queue queue) {
  cl_int err = clFlush(queue);

  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, "clFlush");
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
    status = flush(queue);
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
  unsigned lane = kernel_may(port->source, port->direction) ? block->lane : 0;
  clb_status status = clb__context_lane(context_of(port), lane, &one.queue);

  if (status != CLB_OK)
    return status;
  if (!kernel_may(port->source, port->direction))
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

static clb_status device_start(clb__port *port, const clb__plan *plan,
                               clb__block *block, size_t at,
                               unsigned char *data, const clb__move *move) {
  clb_context *context = context_of(port);
  /* Nothing of another upload's between the copy of a span and its way back:
   * it would be lost. */
  bool alone = port->direction == CLB__PUT &&
               !kernel_may(port->source, port->direction);
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

static clb_status device_flush(clb__port *port, clb__block *block) {
  clb_context *context = context_of(port);
  clb_status status = CLB_OK;

  if (port->quick)
    return flush(context->program);
  if (block->lane != 0 && context->second != NULL)
    status = flush(context->second);
  return status == CLB_OK ? flush(context->queue) : status;
}

/* The host's memory may be the device's own, too; or pinned for it. */
static bool device_reaches(const clb__port *port, const void *memory,
                           size_t length) {
  clb_context *context = context_of(port);

  return host_may(port->source, port->direction) &&
         (context->processor || clb__host_is_pinned(context, memory, length));
}

static unsigned device_helpers(const clb__port *port) {
  return clb__context_helpers(context_of(port));
}

static clb_status device_wait(clb__port *port, clb__block *block) {
  (void)port;
  return clb__staging_wait(block);
}

static clb_status device_map(clb__port *port, uint64_t first, size_t bytes,
                             unsigned char **data) {
  cl_map_flags flags =
      port->direction == CLB__GET ? CL_MAP_READ : CL_MAP_READ | CL_MAP_WRITE;
  void *mapped;
  clb_status status = clb__map(context_of(port), port->source->u.device.mem,
                               flags, (size_t)first, bytes, &mapped);

  if (status == CLB_OK)
    *data = port->mapped = mapped;
  return status;
}

static clb_status device_unmap(clb__port *port) {
  clb_status status;
  cl_event event;
  cl_int end = CL_COMPLETE;
  cl_int err = clb__unmap(context_of(port), port->source->u.device.mem,
                          port->mapped, &event);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clEnqueueUnmapMemObject");
  status = clb__event_wait(event, &end);
  if (status != CLB_OK)
    clb__park_keep(context_of(port), port->source->u.device.mem, event);
  else if (end < CL_COMPLETE)
    status = clb__event_fail(end, "clEnqueueUnmapMemObject");
  (void)clReleaseEvent(event);
  return status;
}

const clb__source_ops clb__device_ops = {
    .retain = device_retain,
    .release = device_release,
    .lock = device_lock,
    .pooled = device_pooled,
    .facts = device_facts,
    .order = device_order,
    .await = device_await,
    .ready = device_ready,
    .drop = device_drop,
    .close = device_close,
    .take = device_take,
    .give = device_give,
    .start = device_start,
    .flush = device_flush,
    .wait = device_wait,
    .reaches = device_reaches,
    .helpers = device_helpers,
    .map = device_map,
    .unmap = device_unmap,
};

/* --- Choosing --------------------------------------------------------------- */

/* A chosen plan's kernel, built; or what it would have saved, noted.  The
 * failure of a compiler is no failure of the access: it goes another way. */
static clb_status commit_to(const clb__source *source, clb__direction direction,
                            clb__plan *plan, bool *again) {
  clb_context *context = source->u.device.context;
  bool wide = clb__pack_wide(&plan->form);
  clb__error before;
  clb_status status;

  *again = false;
  if (plan->missed_us > 0) {
    clb__error_keep(&before);
    clb__kernels_miss(context, direction, wide, plan->missed_us);
    /* A processor's compiler would take the program's cores, and one driver of
     * those (Oclgrind) takes no second thread. */
    if (!context->processor &&
        clb__kernels_missed(context, direction, wide) >= MISSED_US)
      clb__kernels_build_aside(context, direction, wide);
    clb__error_put_back(&before);
  }
  if (plan->kind != CLB_PLAN_PACK || clb__form_contiguous(&plan->form) ||
      clb__kernels_state(context, direction, wide) == CLB__BUILT)
    return CLB_OK;
  clb__error_keep(&before);
  status = clb__kernels_build(context, direction, wide);
  *again = status == CLB_UNSUPPORTED &&
           (context->plans & ~(unsigned)CLB_PLAN_PACK) != 0;
  if (*again)
    clb__error_put_back(&before);
  return *again ? CLB_OK : status;
}

/* Where a kernel would have carried the layout, what its compiler said is the
 * cause. */
static clb_status why_not(const clb__source *source, clb__direction direction,
                          const clb__facts *facts, const clb__form *form) {
  return clb__source_is_device(source) && facts->plans & CLB_PLAN_PACK &&
                 clb__pack_can(form)
             ? clb__kernels_why(source->u.device.context, direction,
                                clb__pack_wide(form), CLB_UNSUPPORTED)
             : CLB_UNSUPPORTED;
}

clb_status clb__source_plan(const clb__source *source, clb__direction direction,
                            const clb__form *form, size_t start, size_t end,
                            unsigned flags, clb__plan *plan) {
  size_t chunk = source->ops->chunk;
  bool again = false;
  clb_status status;

  if (chunk == 0)
    chunk = source->u.device.context->chunk_size;
  if (flags & CLB__COMMIT && clb__source_is_device(source) &&
      !clb__form_contiguous(form) && end - start >= WORTH_MEASURING)
    clb__device_measure(source->u.device.context);
  do {
    clb__facts facts;
    status = source->ops->facts(source, direction, &facts);
    if (!(flags & CLB__MAY_BE_QUICK))
      facts.quick_bytes = 0;
    if (status == CLB_OK)
      status = clb__plan_choose(plan, &facts, form, start, end, chunk,
                                direction);
    if (status == CLB_UNSUPPORTED)
      return why_not(source, direction, &facts, form);
    if (status == CLB_OK && flags & CLB__COMMIT && clb__source_is_device(source))
      status = commit_to(source, direction, plan, &again);
  } while (status == CLB_OK && again);
  return status;
}
