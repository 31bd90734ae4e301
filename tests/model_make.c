/*
 * Operations of the state machine that make handles: on sources, and of other
 * handles.  See model_run.h.
 */
#include "config.h"

#include "model_run.h"

#include <unistd.h>

/* --- On sources ---------------------------------------------------------- */

enum { FILE_SIZE = 1400 };

static char file_path[] = "/tmp/clbytes-model-XXXXXX";
static unsigned char file_bytes[FILE_SIZE];

void make_file_open(void)
{
  int fd = mkstemp(file_path);
  uint64_t state = 7;

  for (size_t i = 0; i < FILE_SIZE; i++)
    file_bytes[i] = (unsigned char)fixture_random(&state);
  if (fd < 0 || write(fd, file_bytes, FILE_SIZE) != FILE_SIZE ||
      close(fd) != 0) {
    perror(file_path);
    exit(99);
  }
}

void make_file_close(void)
{
  unlink(file_path);
}

static void begin(struct model_handle *made, struct model_store *store)
{
  memset(made, 0, sizeof *made);
  made->refs = 1;
  made->store = store;
  made->lazy_place = true;
  made->source.certain = true;
}

/* A handle on bytes of a store in a row. */
static void begin_flat(struct model_handle *made, struct model_store *store,
                       size_t first, size_t length)
{
  begin(made, store);
  made->length = length;
  model_shape_bytes(&made->shape, length);
  for (size_t i = 0; i < length; i++)
    made->source.at[i] = (uint16_t)(first + i);
}

/* By the list alone, which is empty or has one event; what was enqueued before
 * has ended. */
static clb_status make_listed(cl_mem buffer, const clb_layout *layout,
                              clb_bytes **out)
{
  cl_event event = NULL;
  clb_status status;

  run.listed = true;
  ck_cl(clFinish(fx.queue));
  if (run_chance(2))
    ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 0, NULL, &event));
  run_trace(" after %d events", event != NULL);
  status = clb_bytes_from_buffer_after(run.context, buffer, layout,
                                       event != NULL,
                                       event != NULL ? &event : NULL, out);
  if (event != NULL)
    ck_cl(clReleaseEvent(event));
  return status;
}

static void trace_layout(const clb_layout *layout)
{
  run_trace("((");
  for (size_t d = 0; d < layout->ndim; d++)
    run_trace("%s%zu", d > 0 ? "," : "", layout->shape[d]);
  run_trace("); (");
  for (size_t d = 0; d < layout->ndim; d++)
    run_trace("%s%td", d > 0 ? "," : "", layout->strides[d]);
  run_trace("); %zu; %zu)", layout->elem_size, layout->offset);
}

/* A part of a buffer as one of its own, sometimes; else the buffer. */
static cl_mem sub_buffer(cl_mem root, size_t size, size_t *origin, size_t *room)
{
  cl_buffer_region region;
  cl_mem sub;
  cl_int code;

  *origin = 0;
  *room = size;
  if (!run_chance(4) || size <= run.align)
    return root;
  region.origin = run.align * run_below((size - 1) / run.align + 1);
  region.size = 1 + run_below(size - region.origin);
  sub = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &region,
                          &code);
  ck_cl(code);
  *origin = region.origin;
  *room = region.size;
  run_trace(" of [%zu, %zu)", region.origin, region.origin + region.size);
  return sub;
}

void make_on_buffer(void)
{
  size_t which = run_below(RUN_BUFFERS), origin, room;
  struct model_store *store = run.stores[which];
  struct model_handle made;
  struct model_layout drawn;
  const clb_layout *layout = &drawn.layout;
  clb_bytes *bytes = NULL;
  clb_status status;
  bool inside;
  cl_mem buffer;

  if (!run_room(1))
    return;
  run_trace("\n  #%d = from buffer %zu", run.serial + 1, which);
  buffer = sub_buffer(store->buffer, store->size, &origin, &room);
  if (room <= MODEL_BYTES && run_chance(4)) {
    layout = NULL;
    inside = true;
    begin_flat(&made, store, origin, room);
    run_trace(" whole");
  } else {
    begin(&made, store);
    do
      model_draw_any(&run.state, MODEL_BYTES, &made.shape);
    while (!model_draw_layout(&run.state, &made.shape, room, MODEL_ANY,
                              &drawn));
    if (run_chance(30))
      drawn.layout.offset += room;
    run_trace(" ");
    trace_layout(layout);
    inside = model_walk(layout, room, &made.source, &made.length);
    for (size_t i = 0; i < made.length && inside; i++)
      made.source.at[i] = (uint16_t)(made.source.at[i] + origin);
  }
  status = run_chance(4)
               ? make_listed(buffer, layout, &bytes)
               : clb_bytes_from_buffer(run.context, buffer, layout, &bytes);
  if (buffer != store->buffer)
    ck_cl(clReleaseMemObject(buffer));
  run_expect(status, inside ? CLB_OK : CLB_INVALID_LAYOUT);
  if (!inside)
    return;
  store->handles++;
  run_put(&made, bytes);
}

void make_on_file(void)
{
  size_t length = run_below(MODEL_BYTES + 1);
  size_t offset = run_below(FILE_SIZE - length + 1);
  struct model_handle made;
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  if (run_chance(20)) {
    run_trace("\n  from_file past the end");
    run_expect(clb_bytes_from_file(file_path, FILE_SIZE - length, length + 1,
                                   &bytes),
               CLB_OUT_OF_RANGE);
    return;
  }
  run_trace("\n  #%d = from_file(%zu, %zu)", run.serial + 1, offset, length);
  run_expect(clb_bytes_from_file(file_path, offset, length, &bytes), CLB_OK);
  begin_flat(&made, run_store(MODEL_FILE, file_bytes, FILE_SIZE), offset,
             length);
  made.store->handles = 1;
  run_put(&made, bytes);
}

static void release_memory(void *data, void *user)
{
  struct model_store *store = user;

  free(data);
  atomic_store(&store->memory, NULL);
}

void make_on_host(void)
{
  size_t length = run_chance(20) ? 0 : 1 + run_below(MODEL_BYTES);
  bool foreign = run_chance(2);
  struct model_store *store;
  struct model_handle made;
  unsigned char *data;
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  run_trace("\n  #%d = %s(%zu)", run.serial + 1,
            foreign ? "from_host" : "from_copy", length);
  data = fixture_bytes(length, fixture_random(&run.state));
  store = run_store(foreign ? MODEL_FOREIGN : MODEL_COPIED, data, length);
  if (foreign) {
    atomic_store(&store->memory, data);
    run_expect(clb_bytes_from_host(data, length, release_memory, store,
                                   &bytes),
               CLB_OK);
  } else {
    run_expect(clb_bytes_from_copy(data, length, &bytes), CLB_OK);
    free(data);
  }
  begin_flat(&made, store, 0, length);
  store->handles = 1;
  run_put(&made, bytes);
}

/* --- Of handles ---------------------------------------------------------- */

/*
 * A handle made of one whose bytes may be on their way: it has the host copy or
 * has not, and a look without a copy tells.
 */
static void put_derived(struct model_handle *from, struct model_handle *made,
                        clb_bytes *bytes)
{
  const void *data;
  clb_status status;

  if (from->flying && made->length > 0) {
    status = clb_bytes_read(bytes, CLB_NO_COPY, &data);
    if (run_expect_or(status, CLB_OK, CLB_WOULD_COPY))
      run_landed(from);
    else
      model_forget(made);
  }
  run_put(made, bytes);
}

/* May a handle be made of this one while its bytes are on their way? */
static void ready(struct model_handle *h)
{
  if (h->base != NULL ||
      (h->store->kind != MODEL_DEVICE && h->store->kind != MODEL_FILE) ||
      run_chance(2))
    run_settle(h);
}

void op_view(void)
{
  struct model_handle *h = run_pick(), made;
  size_t start = run_below(h->length + 1);
  size_t end = start + run_below(h->length - start + 1);
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  if (run_chance(4)) {
    start = 0;
    end = h->length;
  }
  ready(h);
  run_trace("\n  #%d = view(#%d, %zu, %zu)", run.serial + 1, h->number, start,
            end);
  run_expect(clb_bytes_view(h->bytes, start, end, &bytes), CLB_OK);
  model_view(h, start, end, &made);
  put_derived(h, &made, bytes);
}

void op_clone(void)
{
  struct model_handle *h = run_pick(), made;
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  ready(h);
  run_trace("\n  #%d = clone(#%d)", run.serial + 1, h->number);
  run_expect(clb_bytes_clone(h->bytes, &bytes), CLB_OK);
  model_clone(h, &made);
  put_derived(h, &made, bytes);
}

/* Start, count and step of a dimension, of elements that are there. */
static void draw_range(size_t n, size_t *start, size_t *count, ptrdiff_t *step)
{
  size_t fit;

  *start = n > 0 ? run_below(n) : 0;
  *step = run_chance(2) ? 1 : 1 + (ptrdiff_t)run_below(3);
  if (run_chance(3))
    *step = -*step;
  fit = n == 0 ? 0
               : (*step > 0 ? n - 1 - *start : *start) /
                         (size_t)(*step > 0 ? *step : -*step) + 1;
  if (*step == 1 && run_chance(2)) {
    *start = 0;
    fit = n;
  }
  *count = run_chance(2) ? fit : run_below(fit + 1);
}

/* What a NULL array stands for. */
static size_t all_that_fit(size_t n, size_t start, ptrdiff_t step)
{
  size_t count = 0;

  for (ptrdiff_t at = (ptrdiff_t)start; at >= 0 && at < (ptrdiff_t)n;
       at += step)
    count++;
  return count;
}

/* The same handle with one dimension's range made wrong. */
static void refused_slice(struct model_handle *h, size_t *start, size_t *count,
                          ptrdiff_t *step)
{
  size_t d = run_below(h->shape.ndim);
  clb_bytes *bytes = NULL;
  clb_status expected = CLB_OUT_OF_RANGE;

  if (run_chance(3)) {
    step[d] = 0;
    expected = CLB_INVALID_ARGUMENT;
  } else if (run_chance(2)) {
    start[d] = h->shape.shape[d] + 1 + run_below(2) * (SIZE_MAX / 2);
  } else {
    count[d] = 1 + all_that_fit(h->shape.shape[d], start[d], step[d]);
  }
  run_trace(" wrong in %zu", d);
  run_expect(clb_bytes_slice(h->bytes, start, count, step, &bytes), expected);
}

void op_slice(void)
{
  struct model_handle *h = run_pick(), made;
  size_t start[MODEL_DIMS], count[MODEL_DIMS];
  ptrdiff_t step[MODEL_DIMS];
  bool no_start = run_chance(6), no_count = run_chance(6);
  bool no_step = run_chance(6);
  clb_bytes *bytes = NULL;
  clb_status status;

  if (!run_room(1))
    return;
  run_settle(h);
  run_trace("\n  #%d = slice(#%d", run.serial + 1, h->number);
  for (size_t d = 0; d < h->shape.ndim; d++) {
    size_t n = h->shape.shape[d];

    draw_range(n, &start[d], &count[d], &step[d]);
    if (no_start)
      start[d] = 0;
    if (no_step)
      step[d] = 1;
    if (no_count || count[d] > all_that_fit(n, start[d], step[d]))
      count[d] = all_that_fit(n, start[d], step[d]);
    run_trace("; %zu %zu %td", start[d], count[d], step[d]);
  }
  run_trace(")");
  if (run_chance(20) && h->shape.ndim > 0 && !h->source.windowed) {
    refused_slice(h, start, count, step);
    return;
  }
  status = clb_bytes_slice(h->bytes, no_start ? NULL : start,
                           no_count ? NULL : count, no_step ? NULL : step,
                           &bytes);
  if (h->source.windowed) {
    if (!run_expect_or(status, CLB_UNSUPPORTED,
                       h->source.certain ? CLB_UNSUPPORTED : CLB_OK)) {
      model_slice(h, start, count, step, &made);
      run_put(&made, bytes);
    }
    return;
  }
  run_expect(status, CLB_OK);
  model_slice(h, start, count, step, &made);
  run_put(&made, bytes);
}

static bool refused_reshape(struct model_handle *h, struct model_shape *shape)
{
  clb_bytes *bytes = NULL;

  if (!run_chance(15))
    return false;
  run_trace(" wrong");
  if (run_chance(2)) {
    shape->elem_size = 0;
    run_expect(clb_bytes_reshape(h->bytes, shape->ndim, shape->shape, 0,
                                 &bytes),
               CLB_INVALID_LAYOUT);
  } else {
    model_draw_shape(&run.state, h->length + 1, shape);
    run_expect(clb_bytes_reshape(h->bytes, shape->ndim, shape->shape,
                                 shape->elem_size, &bytes),
               CLB_INVALID_ARGUMENT);
  }
  return true;
}

void op_reshape(void)
{
  struct model_handle *h = run_pick(), made;
  struct model_shape shape;
  clb_bytes *bytes = NULL;
  clb_status status;
  bool sayable;

  if (!run_room(1))
    return;
  ready(h);
  model_draw_shape(&run.state, h->length, &shape);
  run_trace("\n  #%d = reshape(#%d, (", run.serial + 1, h->number);
  for (size_t d = 0; d < shape.ndim; d++)
    run_trace("%s%zu", d > 0 ? "," : "", shape.shape[d]);
  run_trace("), %zu)", shape.elem_size);
  if (refused_reshape(h, &shape))
    return;
  status = clb_bytes_reshape(h->bytes, shape.ndim, shape.shape,
                             shape.elem_size, &bytes);
  sayable = !h->source.windowed && model_sayable(&h->source, &shape);
  if (sayable)
    run_expect(status, CLB_OK);
  else if (run_expect_or(status, CLB_UNSUPPORTED,
                         h->source.certain ? CLB_UNSUPPORTED : CLB_OK))
    return;
  model_reshape(h, &shape, &made);
  put_derived(h, &made, bytes);
}

static void split_shared(struct model_handle *h, size_t at)
{
  struct model_handle left, right;
  clb_bytes *a = NULL, *b = NULL;

  run_expect(clb_bytes_split(h->bytes, at, CLB_SPLIT_SHARED, &a, &b), CLB_OK);
  model_view(h, 0, at, &left);
  model_view(h, at, h->length, &right);
  run_put(&left, a);
  run_put(&right, b);
}

static void own(struct model_handle *half)
{
  if (half->length == 0)
    return;
  run_reads(model_asks_device(half));
  model_separate(half);
  half->lazy_place = false;
  half->place = CLB_PLACE_HEAP;
}

static void split_owned(struct model_handle *h, size_t at)
{
  struct model_handle left, right;
  clb_bytes *a = NULL, *b = NULL;

  run_expect(clb_bytes_split(h->bytes, at, CLB_SPLIT_OWNED, &a, &b), CLB_OK);
  model_view(h, 0, at, &left);
  model_view(h, at, h->length, &right);
  own(&left);
  own(&right);
  run_put(&left, a);
  run_put(&right, b);
}

void op_split(void)
{
  struct model_handle *h = run_pick();
  size_t at = run_below(h->length + 1);
  bool owned = run_chance(2);

  if (!run_room(2))
    return;
  run_settle(h);
  run_trace("\n  #%d, #%d = split(#%d, %zu, %s)", run.serial + 1,
            run.serial + 2, h->number, at, owned ? "owned" : "shared");
  if (owned)
    split_owned(h, at);
  else
    split_shared(h, at);
}

/* Ranges that are not inside; the message names the handle. */
void op_refused(void)
{
  struct model_handle *h = run_pick();
  size_t past = h->length + 1 + run_below(3);
  clb_bytes *a = NULL, *b = NULL;
  unsigned char byte;
  clb_status status;

  run_trace("\n  refused(#%d)", h->number);
  switch (run_below(4)) {
  case 0:
    status = clb_bytes_view(h->bytes, 1, run_chance(2) ? 0 : past, &a);
    break;
  case 1:
    status = clb_bytes_split(h->bytes, past, CLB_SPLIT_SHARED, &a, &b);
    break;
  case 2:
    status = clb_bytes_copy_into(h->bytes, run_chance(2) ? past : SIZE_MAX,
                                 &byte, 1);
    break;
  default:
    status = clb_bytes_stream(h->bytes, 0, past, gather_sink, NULL);
    break;
  }
  run_expect(status, CLB_OUT_OF_RANGE);
  if (strstr(clb_error_message(), h->label) == NULL)
    run_wrong("the message does not name \"%s\"", h->label);
  if (a != NULL || b != NULL)
    run_wrong("an output of what was refused");
}
