/*
 * Operations of the state machine that make handles on sources.  See
 * model_run.h.
 */
#include "config.h"

#include "model_run.h"

#include <unistd.h>

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
