/* Who keeps what alive: every order of releasing, and no trace afterwards. */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SIZE = 20000 };

static unsigned char *contents;
static atomic_int destroyed;

static void setup(void)
{
  fixture_setup_cl();
  contents = fixture_bytes(SIZE, 33);
  atomic_store(&destroyed, 0);
}

static void teardown(void)
{
  free(contents);
  fixture_teardown_cl();
}

static void CL_CALLBACK count_destroyed(cl_mem memory, void *user)
{
  (void)memory;
  (void)user;
  atomic_fetch_add(&destroyed, 1);
}

/* A buffer whose end is counted. */
static cl_mem counted_buffer(void)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);

  ck_cl(clSetMemObjectDestructorCallback(buffer, count_destroyed, NULL));
  return buffer;
}

static void expect_destroyed(int count)
{
  WAIT_UNTIL(atomic_load(&destroyed) >= count);
  ck_assert_int_eq(atomic_load(&destroyed), count);
}

static clb_layout padded(void)
{
  static const size_t shape[2] = {100, 25};
  static const ptrdiff_t strides[2] = {200, 4};
  clb_layout layout = {2, shape, strides, 4, 16};

  return layout;
}

/* --- Orders -------------------------------------------------------------- */

enum { BUFFER, QUEUE, CONTEXT, CL_CONTEXT, HANDLE, VIEW, OBJECTS };

struct objects {
  cl_mem buffer;
  cl_command_queue queue;
  cl_context cl;
  clb_context *context;
  clb_bytes *handle, *view;
};

static void release_one(struct objects *o, int which)
{
  switch (which) {
  case BUFFER:
    ck_cl(clReleaseMemObject(o->buffer));
    break;
  case QUEUE:
    ck_cl(clReleaseCommandQueue(o->queue));
    break;
  case CONTEXT:
    clb_context_release(o->context);
    break;
  case CL_CONTEXT:
    ck_cl(clReleaseContext(o->cl));
    break;
  case HANDLE:
    clb_bytes_release(o->handle);
    break;
  default:
    clb_bytes_release(o->view);
  }
}

/* Makes everything, releases it in this order and reads, before each release,
 * what is still held: by the handle or the view, with reads of kind kind. */
static void try_order(const int order[OBJECTS], int kind)
{
  clb_layout layout = padded();
  unsigned char *expected = walk(&layout, contents);
  struct objects o;
  int held[OBJECTS];
  cl_int code;

  ck_cl(clRetainContext(fx.cl));
  o.cl = fx.cl;
  o.queue = clCreateCommandQueue(o.cl, fx.device, 0, &code);
  ck_cl(code);
  o.buffer = counted_buffer();
  ck_ok(clb_context_create(o.queue, NULL, &o.context));
  ck_ok(clb_bytes_from_buffer(o.context, o.buffer,
                              kind % 2 == 0 ? NULL : &layout, &o.handle));
  ck_ok(clb_bytes_view(o.handle, 5, 4999, &o.view));
  for (int i = 0; i < OBJECTS; i++)
    held[i] = 1;
  for (int i = 0; i < OBJECTS; i++) {
    const unsigned char *logical = kind % 2 == 0 ? contents : expected;
    const void *data;

    if (held[HANDLE] && kind < 2)
      expect_copy_into(o.handle, logical, clb_bytes_length(o.handle));
    if (held[HANDLE] && kind >= 2)
      expect_read(o.handle, logical, clb_bytes_length(o.handle));
    if (held[HANDLE] && kind == 4)
      (void)clb_bytes_read(o.handle, CLB_MAP, &data);
    if (held[VIEW] && i > 2)
      expect_copy_into(o.view, logical + 5, 4994);
    held[order[i]] = 0;
    release_one(&o, order[i]);
  }
  free(expected);
}

static void each_permutation(int *order, int from, int kind, int *count)
{
  if (from == OBJECTS) {
    try_order(order, kind);
    ++*count;
    return;
  }
  for (int i = from; i < OBJECTS; i++) {
    int swap = order[from];

    order[from] = order[i];
    order[i] = swap;
    each_permutation(order, from + 1, kind, count);
    order[i] = order[from];
    order[from] = swap;
  }
}

/* [_i]: 0, 1 copies of contiguous, strided; 2, 3 materialised; 4 mapped too */
START_TEST(everything_may_be_released_in_any_order)
{
  int order[OBJECTS] = {BUFFER, QUEUE, CONTEXT, CL_CONTEXT, HANDLE, VIEW};
  int count = 0;

  each_permutation(order, 0, _i, &count);
  ck_assert_int_eq(count, 720);
  expect_destroyed(720);
}
END_TEST

/* The program keeps nothing at all, not even the OpenCL context. */
START_TEST(a_handle_alone_is_enough)
{
  cl_mem buffer = counted_buffer();
  clb_context *context;
  clb_bytes *bytes = NULL;

  ck_ok(clb_context_create(fx.queue, NULL, &context));
  ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
  ck_cl(clReleaseMemObject(buffer));
  ck_cl(clReleaseCommandQueue(fx.queue));
  ck_cl(clReleaseContext(fx.cl));
  fx.queue = NULL;
  fx.cl = NULL;
  clb_context_release(context);
  ck_assert_int_eq(atomic_load(&destroyed), 0);
  expect_stream(bytes, contents, SIZE);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
  expect_destroyed(1);
}
END_TEST

/* --- While a read runs --------------------------------------------------- */

struct reader {
  clb_bytes *bytes;
  atomic_int running;
  int wrong;
};

static int compare_sink(const void *data, size_t length, void *user)
{
  struct reader *reader = user;

  atomic_store(&reader->running, 1);
  (void)data;
  (void)length;
  return 0;
}

static void *read_in_a_thread(void *user)
{
  struct reader *reader = user;
  const void *data;

  if (clb_bytes_stream(reader->bytes, 0, SIZE, compare_sink, reader) !=
          CLB_OK ||
      clb_bytes_read(reader->bytes, CLB_COPY, &data) != CLB_OK ||
      memcmp(data, contents, SIZE) != 0)
    reader->wrong = 1;
  clb_bytes_release(reader->bytes);
  return NULL;
}

START_TEST(the_program_may_let_go_while_a_read_runs)
{
  const int rounds = 200;

  FIXTURE_NEEDS_THREADS();
  for (int i = 0; i < rounds; i++) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
    struct reader reader = {NULL, 0, 0};
    pthread_t thread;
    clb_context *context;
    cl_command_queue queue = fixture_queue(0);
    cl_mem buffer = counted_buffer();

    options.chunk_size = 4096;
    options.plans = i % 2 == 0 ? 0 : CLB_PLAN_READ;
    ck_ok(clb_context_create(queue, &options, &context));
    ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &reader.bytes));
    ck_assert_int_eq(pthread_create(&thread, NULL, read_in_a_thread, &reader),
                     0);
    while (i % 3 != 0 && !atomic_load(&reader.running))
      ;
    ck_cl(clReleaseMemObject(buffer));
    ck_cl(clReleaseCommandQueue(queue));
    clb_context_release(context);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(reader.wrong, 0);
  }
  expect_destroyed(rounds);
}
END_TEST

/* --- No trace ------------------------------------------------------------ */

/* [_i]: 0 plain, 1 strided, 2 after a list, 3 views */
START_TEST(many_handles_leave_memory_flat)
{
  struct growth growth = {.times = fixture_is("Oclgrind") ? 2000 : 5000};
  clb_layout layout = padded(), plain = {1, SHAPE(3000), NULL, 1, 0};
  unsigned char *expected = walk(&layout, contents);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  cl_event done;
  cl_int code;
  clb_context *context;

  done = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  ck_cl(clSetUserEventStatus(done, CL_COMPLETE));
  ck_ok(clb_context_create(fx.queue, NULL, &context));
  while (growing(&growth)) {
    clb_bytes *bytes = NULL, *view = NULL;
    const void *data;

    if (_i == 2)
      ck_ok(clb_bytes_from_buffer_after(context, buffer, &layout, 1, &done,
                                        &bytes));
    else
      ck_ok(clb_bytes_from_buffer(context, buffer,
                                  _i == 0 ? &plain : &layout, &bytes));
    if (_i == 3)
      ck_ok(clb_bytes_view(bytes, 10, 2000, &view));
    ck_ok(clb_bytes_read(_i == 3 ? view : bytes, CLB_COPY, &data));
    if (growth.round % 1024 == 0)
      ck_bytes(data, _i == 0 ? contents : _i == 3 ? expected + 10 : expected,
               1900);
    clb_bytes_release(bytes);
    clb_bytes_release(view);
  }
  /* As many handles, events or copies that stayed would be more. */
  ck_flat(&growth, 1 << 19);
  clb_context_release(context);
  ck_assert_uint_eq(fixture_event_refs(done), 1);
  ck_refs(buffer, 1);
  ck_cl(clReleaseEvent(done));
  ck_cl(clReleaseMemObject(buffer));
  free(expected);
}
END_TEST

START_TEST(labels_and_layouts_go_with_their_handle)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  size_t shape[64];
  clb_layout layout = {64, shape, NULL, 4, 0};
  clb_context *context;
  char label[1000];
  struct growth growth = {.times = 4000};

  for (int d = 0; d < 64; d++)
    shape[d] = 1;
  memset(label, 'l', sizeof label - 1);
  label[sizeof label - 1] = '\0';
  ck_ok(clb_context_create(fx.queue, NULL, &context));
  while (growing(&growth)) {
    clb_bytes *bytes, *view;

    ck_ok(clb_bytes_from_buffer(context, buffer, &layout, &bytes));
    ck_ok(clb_bytes_set_label(bytes, label));
    ck_ok(clb_bytes_view(bytes, 0, 2, &view));
    ck_ok(clb_bytes_set_label(bytes, "another"));
    clb_bytes_release(bytes);
    clb_bytes_release(view);
  }
  ck_flat(&growth, 1 << 19);
  clb_context_release(context);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(failed_creations_leave_nothing)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  clb_layout bad = {2, SHAPE(1000, 1000), STRIDES(4, 4), 4, SIZE};
  clb_context *context;
  struct growth growth = {.times = 10000};

  ck_ok(clb_context_create(fx.queue, NULL, &context));
  while (growing(&growth)) {
    clb_bytes *bytes = NULL;

    ck_status(clb_bytes_from_buffer(context, buffer, &bad, &bytes),
              CLB_INVALID_LAYOUT);
  }
  ck_flat(&growth, 1 << 19);
  clb_context_release(context);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("lifetime");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, everything_may_be_released_in_any_order, 0, 5);
  tcase_add_test(all, a_handle_alone_is_enough);
  tcase_add_test(all, the_program_may_let_go_while_a_read_runs);
  tcase_add_loop_test(all, many_handles_leave_memory_flat, 0, 4);
  tcase_add_test(all, labels_and_layouts_go_with_their_handle);
  tcase_add_test(all, failed_creations_leave_nothing);
  return fixture_main(suite, FIXTURE_DEVICE);
}
