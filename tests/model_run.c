/*
 * See model_run.h.
 */
#include "config.h"

#include "model_run.h"

#include <stdarg.h>
#include <sys/mman.h>

struct run run;

/* --- The trace ----------------------------------------------------------- */

/* Shared with the parent, who prints it when a test's process has died. */
static struct trace {
  uint64_t seed;
  size_t used;
  char text[1 << 15];
} *trace;

void run_trace_open(void)
{
  void *memory = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (memory == MAP_FAILED) {
    perror("mmap");
    exit(99);
  }
  trace = memory;
}

void run_trace(const char *format, ...)
{
  size_t room = sizeof trace->text - trace->used;
  va_list list;
  int length;

  va_start(list, format);
  length = vsnprintf(trace->text + trace->used, room, format, list);
  va_end(list);
  if (length > 0)
    trace->used += (size_t)length < room ? (size_t)length : room - 1;
}

void run_trace_print(void)
{
  fprintf(stderr, "the sequence%s\nagain with CLBYTES_TEST_SEQUENCES=1 "
                  "CLBYTES_TEST_SEED=%ju\n",
          trace->text, (uintmax_t)trace->seed);
}

void run_wrong(const char *format, ...)
{
  char what[512];
  va_list list;

  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  ck_abort_msg("%s; the last error \"%s\"; CLBYTES_TEST_SEED=%ju", what,
               clb_error_message(), (uintmax_t)trace->seed);
  abort();
}

void run_expect(clb_status status, clb_status expected)
{
  if (status != expected)
    run_wrong("%s, not %s", clb_status_name(status),
              clb_status_name(expected));
}

bool run_expect_or(clb_status status, clb_status expected, clb_status other)
{
  if (status != expected && status != other)
    run_wrong("%s, not %s or %s", clb_status_name(status),
              clb_status_name(expected), clb_status_name(other));
  return status == expected;
}

void run_same(const void *got, const unsigned char *expected, size_t length,
              const char *what)
{
  size_t at = fixture_difference(got, expected, length);

  if (at != length)
    run_wrong("%s differs at %zu of %zu: %#x, not %#x", what, at, length,
              ((const unsigned char *)got)[at], expected[at]);
}

/* --- Chance -------------------------------------------------------------- */

size_t run_below(size_t limit)
{
  return fixture_below(&run.state, limit);
}

bool run_chance(size_t in)
{
  return run_below(in) == 0;
}

/* --- Once ---------------------------------------------------------------- */

static bool context_maps(clb_context *context)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, "map", 4);
  clb_bytes *bytes = NULL;
  const void *data;
  bool maps;

  ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
  maps = clb_bytes_read(bytes, CLB_MAP, &data) == CLB_OK;
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  return maps;
}

void run_open(void)
{
  static const unsigned plans[RUN_CONTEXTS] = {
      0, CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER, CLB_PLAN_GATHER,
      CLB_PLAN_PACK};

  for (int i = 0; i < RUN_CONTEXTS; i++) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

    options.plans = plans[i];
    options.chunk_size = 4096;
    ck_ok(clb_context_create(fx.queue, &options, &run.contexts[i]));
    run.contexts_map[i] = context_maps(run.contexts[i]);
  }
  run.threads = !fixture_is("Oclgrind"); /* crashes with two threads in it */
  run.align = fixture_sub_buffer_align();
}

void run_close(void)
{
  for (int i = 0; i < RUN_CONTEXTS; i++)
    clb_context_release(run.contexts[i]);
}

/* --- A sequence ---------------------------------------------------------- */

struct model_store *run_store(int kind, const unsigned char *data, size_t size)
{
  struct model_store *store = fixture_malloc(sizeof *store);

  if (run.store_count == RUN_STORES)
    run_wrong("no room for a store");
  memset(store, 0, sizeof *store);
  store->kind = kind;
  store->size = size;
  memcpy(store->data, data, size);
  run.stores[run.store_count++] = store;
  return store;
}

static clb_stats stats(void)
{
  clb_stats all;

  clb_context_stats(run.context, &all, sizeof all);
  return all;
}

void run_begin(uint64_t seed)
{
  size_t which;

  trace->seed = run.state = seed;
  trace->used = 0;
  trace->text[0] = '\0';
  which = run_below(2 * RUN_CONTEXTS);
  which = which < RUN_CONTEXTS ? which : 0;
  run.context = run.contexts[which];
  run.maps = run.contexts_map[which];
  run.count = run.store_count = 0;
  run.serial = run.picked = 0;
  run.listed = false;
  run.reads_known = true;
  run.reads = stats().reads;
  model_host_bytes = 0;
  run_trace(" (context %zu):", which);
  for (int i = 0; i < RUN_BUFFERS; i++) {
    size_t size = i == 0 ? 1 + run_below(MODEL_BYTES)
                         : MODEL_BYTES + run_below(MODEL_STORE - MODEL_BYTES);
    unsigned char *data = fixture_bytes(size, fixture_random(&run.state));
    struct model_store *store = run_store(MODEL_DEVICE, data, size);

    store->buffer = fixture_buffer(CL_MEM_READ_WRITE, data, size);
    free(data);
  }
}

void run_end(void)
{
  run_trace("\n  release all");
  while (run.count > 0)
    run_release(run_below(run.count));
  ck_cl(clFinish(fx.queue));
  if (model_host_bytes != 0)
    run_wrong("the model has %zu bytes left", model_host_bytes);
  for (size_t i = 0; i < run.store_count; i++) {
    struct model_store *store = run.stores[i];

    RUN_SOON(atomic_load(&store->memory) == NULL);
    if (store->buffer != NULL) {
      RUN_SOON((clb_context_trim(run.context),
            fixture_buffer_refs(store->buffer) == 1));
      ck_cl(clReleaseMemObject(store->buffer));
    }
    free(store);
  }
  RUN_SOON(stats().host_bytes == 0);
}

/* --- Handles ------------------------------------------------------------- */

bool run_room(size_t handles)
{
  return run.count + handles <= RUN_LIVE;
}

struct model_handle *run_put(const struct model_handle *made, clb_bytes *bytes)
{
  struct model_handle *h = &run.live[run.count++];

  *h = *made;
  h->bytes = bytes;
  h->number = ++run.serial;
  return h;
}

struct model_handle *run_pick(void)
{
  struct model_handle *h = &run.live[run_below(run.count)];

  for (size_t i = 0; i < run.count; i++)
    if (run.live[i].number == run.picked && run_chance(2))
      h = &run.live[i];
  run.picked = h->number;
  return h;
}

void run_release(size_t index)
{
  struct model_handle *h = &run.live[index];

  if (--h->refs > 0) {
    clb_bytes_release(h->bytes);
    return;
  }
  /* What others share with a handle that is in flight cannot be known, and only
   * the program's buffers tell when a thread has let go of one. */
  if (h->flying &&
      (h->store->buffer == NULL || h->base != NULL || run_chance(2)))
    run_settle(h);
  clb_bytes_release(h->bytes);
  if (h->done != NULL)
    ck_cl(clReleaseEvent(h->done));
  model_drop(h);
  if (h->store->kind == MODEL_FOREIGN && h->store->handles == 0 &&
      !h->store->haunted && atomic_load(&h->store->memory) != NULL)
    run_wrong("the program's memory is not released");
  if (index != --run.count)
    *h = run.live[run.count];
}

void run_settle(struct model_handle *h)
{
  if (!h->flying)
    return;
  run_expect(clb_bytes_wait(h->bytes, UINT64_MAX), CLB_OK);
  run_landed(h);
}

void run_landed(struct model_handle *h)
{
  cl_int state = CL_QUEUED;

  h->flying = false;
  if (h->done == NULL)
    return;
  ck_cl(clWaitForEvents(1, &h->done));
  ck_cl(clGetEventInfo(h->done, CL_EVENT_COMMAND_EXECUTION_STATUS,
                       sizeof state, &state, NULL));
  if (state != CL_COMPLETE)
    run_wrong("the event of a prefetch is %d", (int)state);
  ck_cl(clReleaseEvent(h->done));
  h->done = NULL;
}

/* --- Between operations -------------------------------------------------- */

void run_reads(unsigned accesses)
{
  run.reads += accesses;
}

void run_reads_unknown(void)
{
  run.reads_known = false;
}

static void check_handle(const struct model_handle *h)
{
  unsigned char expected[MODEL_BYTES];

  if (clb_bytes_length(h->bytes) != h->length)
    run_wrong("#%d: the length is %zu, not %zu", h->number,
              clb_bytes_length(h->bytes), h->length);
  /* While a prefetch is on its way, it is in one place or the other. */
  if (!(h->flying && h->lazy_place) &&
      clb_bytes_place(h->bytes) != model_place(h))
    run_wrong("#%d: the place is %d, not %d", h->number,
              (int)clb_bytes_place(h->bytes), (int)model_place(h));
  if (h->pointer != NULL) {
    model_bytes(h, expected);
    run_same(h->pointer, expected, h->length, "the memory of a read");
  }
  if (h->map_pointer != NULL)
    run_same(h->map_pointer, h->mapped->data + h->mapped_at, h->length,
             "the mapping");
}

void run_check(void)
{
  bool flying = false;
  clb_stats now;

  for (size_t i = 0; i < run.count; i++) {
    check_handle(&run.live[i]);
    flying |= run.live[i].flying;
  }
  for (size_t i = 0; i < run.store_count; i++) {
    const struct model_store *store = run.stores[i];

    if (store->kind == MODEL_FOREIGN && store->handles > 0)
      run_same(atomic_load(&store->memory), store->data, store->size,
               "the program's memory");
  }
  now = stats();
  if (!run.reads_known) {
    if (!flying)
      RUN_SOON(stats().host_bytes == model_host_bytes);
    return;
  }
  if (now.host_bytes != model_host_bytes)
    run_wrong("host_bytes is %ju, not %zu", (uintmax_t)now.host_bytes,
              model_host_bytes);
  if (now.reads != run.reads)
    run_wrong("the device served %ju accesses too many",
              (uintmax_t)(now.reads - run.reads));
}
