/*
 * Operations of the state machine that have to do with the device: snapshots,
 * prefetches, what kernels get, writes into the buffers.  See model_run.h.
 */
#include "config.h"

#include "model_run.h"

void op_snapshot(void)
{
  struct model_handle *h = run_pick();
  struct model_store *store;

  run_trace("\n  snapshot(#%d)", h->number);
  if (h->edited) {
    run_expect(clb_bytes_snapshot(h->bytes), CLB_UNSUPPORTED);
    return;
  }
  run_expect(clb_bytes_snapshot(h->bytes), CLB_OK);
  if (h->store->kind != MODEL_DEVICE || h->length == 0)
    return;
  store = run_store(MODEL_DEVICE, h->store->data, h->store->size);
  h->store->handles--;
  h->store = store;
  h->store->handles++;
  h->source.certain &= model_in_a_row(&h->source, h->length);
  h->kernels = NULL;
}

/* --- Prefetches ---------------------------------------------------------- */

void op_prefetch(void)
{
  struct model_handle *h = run_pick();
  bool with_event = run_chance(2) && h->done == NULL, started;
  cl_event done = NULL;

  /* Of the library's own memory nobody could tell who holds on to it. */
  if (!run.threads || (h->store->kind == MODEL_COPIED && !model_on_host(h)))
    return;
  run_trace("\n  prefetch(#%d%s)", h->number, with_event ? ", event" : "");
  if (with_event && h->store->kind != MODEL_DEVICE) {
    run_expect(clb_bytes_prefetch(h->bytes, &done), CLB_UNSUPPORTED);
    return;
  }
  started = h->length > 0 && (h->flying || !model_on_host(h));
  if (started)
    run_reads_unknown();
  run_expect(clb_bytes_prefetch(h->bytes, with_event ? &done : NULL), CLB_OK);
  if (with_event && done == NULL)
    run_wrong("no event");
  h->done = with_event ? done : h->done;
  h->prefetched |= started;
  if (!h->flying)
    h->from = h->store;
  h->flying = true;
  model_bring(h);
}

void op_wait(void)
{
  struct model_handle *h = run_pick();
  clb_status status;

  run_trace("\n  wait(#%d)", h->number);
  if (run_chance(2)) {
    status = clb_bytes_wait(h->bytes, run_chance(2) ? 0 : run_below(100000));
    if (!run_expect_or(status, CLB_OK, h->flying ? CLB_TIMEOUT : CLB_OK))
      return;
  } else {
    run_expect(clb_bytes_wait(h->bytes, UINT64_MAX), CLB_OK);
  }
  if (h->flying)
    run_landed(h);
}

/* --- For kernels --------------------------------------------------------- */

static bool is_the_programs(cl_mem mem)
{
  for (int i = 0; i < RUN_BUFFERS; i++)
    if (run.stores[i]->buffer == mem)
      return true;
  return false;
}

/* What it says of the program's buffer, by OpenCL's own word. */
static void check_where(const struct model_handle *h, cl_mem mem,
                        size_t offset)
{
  const struct model_store *store = h->store;
  cl_mem root = NULL;
  size_t origin = 0, size = 0;
  bool sub = h->length < store->size && h->source.at[0] % run.align == 0;

  ck_cl(clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof root,
                           &root, NULL));
  if (store->buffer == NULL) {
    if (is_the_programs(root != NULL ? root : mem))
      run_wrong("a snapshot is in the program's buffer");
    return;
  }
  ck_cl(clGetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof origin, &origin, NULL));
  ck_cl(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof size, &size, NULL));
  if ((root != NULL) != sub || (sub ? root : mem) != store->buffer)
    run_wrong("%s buffer for [%u, +%zu) of %zu", sub ? "no sub" : "no root",
              h->source.at[0], h->length, store->size);
  if (origin + offset != h->source.at[0] ||
      size != (sub ? h->length : store->size))
    run_wrong("a buffer of %zu at %zu + %zu", size, origin, offset);
}

void op_buffer(void)
{
  struct model_handle *h = run_pick();
  unsigned char expected[MODEL_BYTES], got[MODEL_BYTES];
  cl_mem mem = NULL;
  size_t offset = SIZE_MAX;
  clb_status status;
  bool in_a_row = model_in_a_row(&h->source, h->length);

  run_trace("\n  buffer(#%d)", h->number);
  status = clb_bytes_buffer(h->bytes, &mem, &offset);
  if (h->store->kind != MODEL_DEVICE || h->edited ||
      (!in_a_row && h->source.certain)) {
    run_expect(status, CLB_UNSUPPORTED);
    return;
  }
  if (in_a_row)
    run_expect(status, CLB_OK);
  else if (run_expect_or(status, CLB_UNSUPPORTED, CLB_OK))
    return;
  if (h->kernels != NULL && mem != h->kernels)
    run_wrong("another buffer than before");
  h->kernels = mem;
  if (h->length > 0) {
    for (size_t i = 0; i < h->length; i++)
      expected[i] = h->store->data[h->source.at[i]];
    ck_cl(clEnqueueReadBuffer(fx.queue, mem, CL_TRUE, offset, h->length, got,
                              0, NULL, NULL));
    run_same(got, expected, h->length, "the buffer");
    check_where(h, mem, offset);
  }
  ck_cl(clReleaseMemObject(mem));
}

/* --- Writes into the buffers --------------------------------------------- */

/* May bytes [first, end) of a store change? */
static bool is_free(const struct model_store *store, size_t first, size_t end)
{
  for (size_t i = 0; i < run.count; i++) {
    const struct model_handle *h = &run.live[i];

    if (h->mapped == store && h->mapped_at < end &&
        first < h->mapped_at + h->length)
      return false;
  }
  return true;
}

/* What is being read of a store, and has an event to wait for; what has none
 * is waited for. */
static cl_uint flying_on(const struct model_store *store, cl_event *events)
{
  cl_uint count = 0;

  for (size_t i = 0; i < run.count; i++) {
    struct model_handle *h = &run.live[i];

    if (!h->flying || h->from != store)
      continue;
    if (h->done != NULL && run_chance(2))
      events[count++] = h->done;
    else
      run_settle(h);
  }
  return count;
}

static void settle_all(const struct model_store *store)
{
  for (size_t i = 0; i < run.count; i++)
    if (run.live[i].flying && run.live[i].from == store)
      run_settle(&run.live[i]);
}

static void fill(struct model_store *store, size_t first, size_t length,
                 cl_uint count, const cl_event *list)
{
  unsigned char value = (unsigned char)run_below(256);

  ck_cl(clEnqueueFillBuffer(fx.queue, store->buffer, &value, 1, first, length,
                            count, list, NULL));
  memset(store->data + first, value, length);
}

static void overwrite(struct model_store *store, size_t first, size_t length,
                      cl_uint count, const cl_event *list)
{
  unsigned char *data = fixture_bytes(length, fixture_random(&run.state));

  ck_cl(clEnqueueWriteBuffer(fx.queue, store->buffer, CL_TRUE, first, length,
                             data, count, list, NULL));
  memcpy(store->data + first, data, length);
  free(data);
}

/* From another buffer, as far as that goes. */
static void copy_over(struct model_store *store, size_t first, size_t length,
                      cl_uint count, const cl_event *list)
{
  const struct model_store *from = run.stores[run_below(RUN_BUFFERS)];

  if (from == store || length > from->size) {
    fill(store, first, length, count, list);
    return;
  }
  ck_cl(clEnqueueCopyBuffer(fx.queue, from->buffer, store->buffer, 0, first,
                            length, count, list, NULL));
  memcpy(store->data + first, from->data, length);
}

void op_raw_write(void)
{
  size_t which = run_below(RUN_BUFFERS);
  struct model_store *store = run.stores[which];
  size_t first = run_chance(3) ? 0 : run_below(store->size);
  size_t length = run_chance(3) ? store->size - first
                                : 1 + run_below(store->size - first);
  size_t how = run_below(3);
  cl_event events[RUN_LIVE];
  const cl_event *list;
  cl_uint count;

  if (!is_free(store, first, first + length))
    return;
  count = flying_on(store, events);
  list = count > 0 ? events : NULL;
  run_trace("\n  the program writes [%zu, %zu) of buffer %zu, %zu, %u events",
            first, first + length, which, how, (unsigned)count);
  if (how == 0)
    overwrite(store, first, length, count, list);
  else if (how == 1)
    copy_over(store, first, length, count, list);
  else
    fill(store, first, length, count, list);
  settle_all(store);
  if (run.listed)
    ck_cl(clFinish(fx.queue));
}

void op_upload(void)
{
  struct model_handle *h = run_pick();
  size_t which = run_below(RUN_BUFFERS), length;
  struct model_store *store = run.stores[which];
  bool wrong = run_chance(15);
  unsigned char logical[MODEL_BYTES];
  struct model_layout drawn;
  struct model_region region;
  struct model_shape shape;
  size_t first = SIZE_MAX, end = 0;

  if (h->length + wrong > store->size)
    return;
  do
    model_draw_shape(&run.state, h->length + wrong, &shape);
  while (!model_draw_layout(&run.state, &shape, store->size, MODEL_APART,
                            &drawn));
  length = 0;
  if (!wrong)
    model_walk(&drawn.layout, store->size, &region, &length);
  for (size_t i = 0; i < length; i++) {
    first = region.at[i] < first ? region.at[i] : first;
    end = region.at[i] + 1u > end ? region.at[i] + 1u : end;
  }
  if (!is_free(store, first, end))
    return;
  settle_all(store);
  run_trace("\n  upload(#%d) into [%zu, %zu) of buffer %zu%s", h->number,
            first, end, which, wrong ? ", wrong" : "");
  run_reads_unknown();
  run_expect(clb_bytes_upload(h->bytes, run.context, store->buffer,
                              &drawn.layout),
             wrong ? CLB_INVALID_ARGUMENT : CLB_OK);
  if (wrong)
    return;
  model_bytes(h, logical);
  for (size_t i = 0; i < length; i++)
    store->data[region.at[i]] = logical[i];
}
