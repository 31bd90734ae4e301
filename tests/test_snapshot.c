/* clb_bytes_snapshot: what is enqueued later never shows. */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SIZE = 1 << 20, CHUNK = 65536 };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 18);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  /* A job of the library's lets go a moment later. */
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_cl(clFinish(fx.queue));
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static void overwrite(cl_command_queue queue, cl_uchar value)
{
  fixture_fill(queue, buffer, value, SIZE, 0, NULL, NULL);
}

static const struct {
  const char *what;
  size_t ndim, shape[3];
  ptrdiff_t strides[3];
  size_t elem_size, offset;
} LAYOUTS[] = {
    {"whole", 1, {SIZE}, {1}, 1, 0},
    {"words off the alignment", 1, {1000}, {4}, 4, 13},
    {"padded rows", 2, {200, 300}, {5000, 4}, 4, 8},
    {"transposed", 2, {300, 200}, {4, 5000}, 4, 8},
    {"reversed", 2, {200, 300}, {-5000, -4}, 4, 999996},
    {"broadcast", 2, {5, 7}, {0, 12}, 4, 0},
    {"three dimensions", 3, {10, 20, 30}, {50000, 2000, 3}, 2, 1},
    {"rank 0", 0, {0}, {0}, 8, 8},
    {"empty", 2, {0, 7}, {1, 1}, 4, 0},
};
enum { COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static clb_layout layout_of(int index)
{
  clb_layout layout = {LAYOUTS[index].ndim, LAYOUTS[index].shape,
                       LAYOUTS[index].strides, LAYOUTS[index].elem_size,
                       LAYOUTS[index].offset};

  fixture_input = LAYOUTS[index].what;
  return layout;
}

static void expect_later_writes_unseen(int index)
{
  clb_layout layout = layout_of(index);
  unsigned char *expected;
  size_t length = walk_length(&layout);
  clb_bytes *bytes = fixture_handle(buffer, &layout), *view;

  fixture_store(buffer, contents, SIZE);
  expected = walk(&layout, contents);
  ck_ok(clb_bytes_snapshot(bytes));
  overwrite(fx.queue, 0x11);
  ck_cl(clFinish(fx.queue));
  expect_copy_into(bytes, expected, length);
  expect_stream(bytes, expected, length);
  ck_ok(clb_bytes_view(bytes, length / 3, length - length / 4, &view));
  overwrite(fx.queue, 0x22);
  expect_read(view, expected + length / 3, clb_bytes_length(view));
  expect_read(bytes, expected, length);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  free(expected);
}

START_TEST(later_writes_are_not_seen)
{
  for (int i = 0; i < COUNT; i++)
    expect_later_writes_unseen(i);
}
END_TEST

START_TEST(later_writes_of_an_out_of_order_queue_are_not_seen)
{
  cl_command_queue queue =
      fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  unsigned char *filled;
  clb_context *context;

  if (queue == NULL)
    FIXTURE_SKIP("no out-of-order queues");
  filled = fixture_malloc(SIZE);
  ck_ok(clb_context_create(queue, NULL, &context));
  for (int i = 0; i < 8 * COUNT; i++) {
    const cl_uchar value = (cl_uchar)(2 * i);
    clb_layout layout = layout_of(i % COUNT);
    unsigned char *expected;
    clb_bytes *bytes = NULL;

    memset(filled, value, SIZE);
    expected = walk(&layout, filled);
    overwrite(queue, value);
    ck_ok(clb_bytes_from_buffer(context, buffer, &layout, &bytes));
    ck_ok(clb_bytes_snapshot(bytes));
    overwrite(queue, (cl_uchar)(value + 1));
    expect_read(bytes, expected, walk_length(&layout));
    ck_cl(clFinish(queue));
    clb_bytes_release(bytes);
    free(expected);
  }
  clb_context_release(context);
  ck_cl(clReleaseCommandQueue(queue));
  free(filled);
}
END_TEST

START_TEST(what_was_enqueued_before_is_in_it)
{
  unsigned char *expected = fixture_malloc(SIZE);

  for (cl_uchar value = 1; value < 20; value += 2) {
    clb_bytes *bytes = fixture_handle(buffer, NULL);

    overwrite(fx.queue, value);
    ck_ok(clb_bytes_snapshot(bytes));
    overwrite(fx.queue, (cl_uchar)(value + 1));
    memset(expected, value, SIZE);
    expect_read(bytes, expected, SIZE);
    clb_bytes_release(bytes);
  }
  free(expected);
}
END_TEST

START_TEST(it_returns_at_once_behind_a_pending_command)
{
  clb_bytes *bytes;
  unsigned char *expected = fixture_malloc(SIZE);
  cl_uchar value = 0x33;
  cl_event gate;
  cl_int code;
  double start;

  memset(expected, value, SIZE);
  if (fixture_is("Oclgrind")) {
    free(expected);
    FIXTURE_SKIP("a flush behind an unset event blocks in this driver");
  }
  gate = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  bytes = fixture_handle(buffer, NULL);
  fixture_fill(fx.queue, buffer, value, SIZE, 1, &gate, NULL);
  start = fixture_seconds();
  ck_ok(clb_bytes_snapshot(bytes));
  ck_assert_double_lt(fixture_seconds() - start, 2);
  overwrite(fx.queue, 0x44);
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  expect_read(bytes, expected, SIZE);
  clb_bytes_release(bytes);
  ck_cl(clReleaseEvent(gate));
  free(expected);
}
END_TEST

START_TEST(a_view_made_before_reads_the_buffer_still)
{
  unsigned char *other = fixture_bytes(SIZE, 19);
  clb_bytes *bytes = fixture_handle(buffer, NULL), *before, *after;

  ck_ok(clb_bytes_view(bytes, 10, 1000, &before));
  ck_ok(clb_bytes_snapshot(bytes));
  ck_ok(clb_bytes_view(bytes, 10, 1000, &after));
  fixture_store(buffer, other, SIZE);
  expect_read(before, other + 10, 990);
  expect_read(after, contents + 10, 990);
  clb_bytes_release(bytes);
  expect_copy_into(after, contents + 10, 990);
  clb_bytes_release(before);
  clb_bytes_release(after);
  free(other);
}
END_TEST

START_TEST(a_view_has_a_snapshot_of_its_own)
{
  unsigned char *other = fixture_bytes(SIZE, 19);
  clb_layout layout = layout_of(2);
  unsigned char *expected = walk(&layout, contents), *later;
  clb_bytes *bytes = fixture_handle(buffer, &layout), *view;

  ck_ok(clb_bytes_view(bytes, 1111, 9999, &view));
  ck_ok(clb_bytes_snapshot(view));
  fixture_store(buffer, other, SIZE);
  later = walk(&layout, other);
  expect_read(view, expected + 1111, 9999 - 1111);
  expect_read(bytes, later, walk_length(&layout));
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  free(later);
  free(expected);
  free(other);
}
END_TEST

START_TEST(nothing_comes_to_the_host)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *data = NULL;

  ck_ok(clb_bytes_snapshot(bytes));
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  ck_assert_uint_eq(fixture_stats().link_bytes, 0);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(what_is_on_the_host_stays)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 19);
  const void *before, *after = NULL;

  ck_ok(clb_bytes_read(bytes, CLB_COPY, &before));
  fixture_store(buffer, other, SIZE);
  ck_ok(clb_bytes_snapshot(bytes));
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &after));
  ck_assert_ptr_eq(after, before);
  ck_bytes(after, contents, SIZE);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(a_snapshot_outlives_the_buffer)
{
  cl_mem copy = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  clb_bytes *bytes = fixture_handle(copy, NULL);

  ck_ok(clb_bytes_snapshot(bytes));
  ck_cl(clReleaseMemObject(copy));
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_second_one_keeps_what_the_first_has)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  ck_ok(clb_bytes_snapshot(bytes));
  ck_ok(clb_bytes_snapshot(bytes));
  overwrite(fx.queue, 0x55);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

/* Its first copy may be pending still. */
START_TEST(a_second_one_returns_at_once)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL), *view;
  unsigned char *expected = fixture_malloc(SIZE);
  cl_event gate;
  cl_int code;

  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    free(expected);
    FIXTURE_SKIP("a flush behind an unset event blocks in this driver");
  }
  memset(expected, 0x33, SIZE);
  gate = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  fixture_fill(fx.queue, buffer, 0x33, SIZE, 1, &gate, NULL);
  ck_ok(clb_bytes_snapshot(bytes));
  overwrite(fx.queue, 0x44);
  ck_ok(clb_bytes_snapshot(bytes)); /* does not wait: the gate is closed */
  ck_ok(clb_bytes_view(bytes, 1, SIZE, &view));
  ck_ok(clb_bytes_snapshot(view));
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  expect_read(bytes, expected, SIZE);
  expect_read(view, expected, SIZE - 1);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  ck_cl(clReleaseEvent(gate));
  free(expected);
}
END_TEST

START_TEST(a_snapshot_of_any_flags_is_right)
{
  static const cl_mem_flags flags[] = {
      CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS,
      CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY};
  unsigned char *other = fixture_bytes(SIZE, 19);

  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    cl_mem flagged = fixture_buffer(flags[i], contents, SIZE);
    clb_layout layout = layout_of(3);
    unsigned char *expected = walk(&layout, contents);
    clb_bytes *bytes = fixture_handle(flagged, &layout);

    ck_ok(clb_bytes_snapshot(bytes));
    fixture_store(flagged, other, SIZE);
    expect_stream(bytes, expected, walk_length(&layout));
    expect_read(bytes, expected, walk_length(&layout));
    clb_bytes_release(bytes);
    ck_cl(clReleaseMemObject(flagged));
    free(expected);
  }
  free(other);
}
END_TEST

START_TEST(host_sources_have_nothing_to_do)
{
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_copy("abcd", 4, &bytes));
  ck_ok(clb_bytes_snapshot(bytes));
  expect_read(bytes, "abcd", 4);
  clb_bytes_release(bytes);
  ck_ok(clb_bytes_from_host(contents, SIZE, NULL, NULL, &bytes));
  ck_ok(clb_bytes_snapshot(bytes));
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
  ck_status(clb_bytes_snapshot(NULL), CLB_INVALID_ARGUMENT);
}
END_TEST

/* [_i]: 0: written to itself, 1: made of one that was */
START_TEST(after_a_write_it_is_refused_also_of_nothing)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL), *empty = NULL;
  cl_mem mem = NULL;
  size_t offset = 0;
  void *data = NULL;

  if (_i == 1)
    ck_ok(clb_bytes_write(bytes, CLB_COPY, &data));
  ck_ok(clb_bytes_view(bytes, 7, 7, &empty));
  if (_i == 0) {
    ck_ok(clb_bytes_snapshot(empty));
    ck_ok(clb_bytes_evict(empty));
    ck_ok(clb_bytes_write(empty, CLB_NO_COPY, &data));
  }
  ck_status(clb_bytes_snapshot(empty), CLB_UNSUPPORTED);
  ck_status(clb_bytes_evict(empty), CLB_UNSUPPORTED);
  ck_status(clb_bytes_buffer(empty, &mem, &offset), CLB_UNSUPPORTED);
  ck_ok(clb_bytes_write(empty, CLB_COPY, &data));
  expect_read(empty, "", 0);
  clb_bytes_release(empty);
  clb_bytes_release(bytes);
}
END_TEST

/* --- While others read ---------------------------------------------------- */

/* The prefetch waits for the queue, a fill waits for the prefetch, and the
 * snapshot is taken behind the fill.  [_i]: of which layout */
START_TEST(a_prefetch_under_way_does_not_hold_it_up)
{
  clb_layout layout = layout_of(_i);
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &layout), *view = NULL;
  size_t length = clb_bytes_length(bytes);
  cl_event gate, done = NULL;
  cl_int code;
  double start;

  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    free(expected);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  gate = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 1, &gate, NULL));
  ck_ok(clb_bytes_prefetch(bytes, &done));
  fixture_fill(fx.queue, buffer, 0x55, SIZE, 1, &done, NULL);
  start = fixture_seconds();
  ck_ok(clb_bytes_snapshot(bytes));
  ck_assert_double_lt(fixture_seconds() - start, 2);
  if (length > 0)
    ck_status(clb_bytes_wait(bytes, 0), CLB_TIMEOUT);
  ck_ok(clb_bytes_view(bytes, 0, length, &view));
  overwrite(fx.queue, 0x66);
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  expect_read(bytes, expected, length); /* what the prefetch brought */
  memset(expected, 0x55, length);
  expect_read(view, expected, length);
  ck_ok(clb_bytes_evict(bytes));
  expect_read(bytes, expected, length);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  ck_cl(clReleaseEvent(done));
  ck_cl(clReleaseEvent(gate));
  free(expected);
}
END_TEST

/* A context that streams in pieces. */
static clb_bytes *staged_handle(const clb_layout *layout)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.plans = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER;
  options.chunk_size = CHUNK;
  fixture_options(&options);
  return fixture_handle(buffer, layout);
}

struct streaming {
  clb_bytes *bytes;
  cl_mem buffer; /* of the program, which lets go of it */
  struct gathered gathered;
};

static int take_snapshot(const void *data, size_t length, void *user)
{
  struct streaming *streaming = user;

  if (streaming->gathered.pieces == 1) {
    ck_ok(clb_bytes_snapshot(streaming->bytes));
    ck_cl(clReleaseMemObject(streaming->buffer));
    ck_cl(clFinish(fx.queue));
    clb_context_trim(fx.context);
  }
  return gather_sink(data, length, &streaming->gathered);
}

START_TEST(a_stream_goes_on_with_what_it_began_with)
{
  struct streaming streaming = {.buffer = fixture_buffer(CL_MEM_READ_WRITE,
                                                         contents, SIZE)};
  clb_layout layout = layout_of(2);
  unsigned char *expected = walk(&layout, contents);

  clb_bytes_release(staged_handle(NULL));
  streaming.bytes = fixture_handle(streaming.buffer, &layout);
  ck_ok(clb_bytes_stream(streaming.bytes, 0,
                         clb_bytes_length(streaming.bytes), take_snapshot,
                         &streaming));
  ck_assert_uint_gt(streaming.gathered.pieces, 2);
  ck_assert_uint_eq(streaming.gathered.length,
                    clb_bytes_length(streaming.bytes));
  ck_bytes(streaming.gathered.data, expected, streaming.gathered.length);
  expect_copy_into(streaming.bytes, expected, streaming.gathered.length);
  clb_bytes_release(streaming.bytes);
  free(streaming.gathered.data);
  free(expected);
}
END_TEST

enum { LOOKERS = 4, SNAPSHOTS = 100 };

/* Threads that look at one handle, in a way each. */
struct looker {
  pthread_t thread;
  int way;
  clb_bytes *bytes, *same;
  const unsigned char *expected;
  size_t length;
  int right;
  char message[200];
};

static atomic_int looking;

static int look(struct looker *looker)
{
  struct gathered got = {0};
  unsigned char part[1000];
  clb_bytes *made = NULL;
  const void *data = NULL;
  cl_mem mem = NULL;
  size_t offset;
  char plan[200];
  int right;

  switch (looker->way) {
  case 0:
    right = clb_bytes_stream(looker->bytes, 0, looker->length, gather_sink,
                             &got) == CLB_OK &&
            memcmp(got.data, looker->expected, looker->length) == 0;
    free(got.data);
    return right;
  case 1:
    return clb_bytes_copy_into(looker->bytes, 77, part, 1000) == CLB_OK &&
           memcmp(part, looker->expected + 77, 1000) == 0 &&
           clb_bytes_plan(looker->bytes, plan, sizeof plan) == CLB_OK;
  case 2:
    right = clb_bytes_view(looker->bytes, 5, 3500, &made) == CLB_OK &&
            clb_bytes_read(made, CLB_COPY, &data) == CLB_OK &&
            memcmp(data, looker->expected + 5, 3495) == 0;
    clb_bytes_release(made);
    return right;
  default:
    right = clb_bytes_equal(looker->bytes, looker->same, &right) == CLB_OK &&
            right && clb_bytes_prefetch(looker->same, NULL) == CLB_OK &&
            clb_bytes_snapshot(looker->same) == CLB_OK &&
            clb_bytes_buffer(looker->bytes, &mem, &offset) != CLB_DEVICE_ERROR;
    if (mem != NULL)
      (void)clReleaseMemObject(mem);
    return right;
  }
}

static void *look_on(void *user)
{
  struct looker *looker = user;

  while (looker->right && atomic_load(&looking))
    looker->right = look(looker);
  snprintf(looker->message, sizeof looker->message, "%s", clb_error_message());
  return NULL;
}

/* [_i]: of which layout */
START_TEST(others_may_look_meanwhile)
{
  clb_layout layout = layout_of(_i);
  unsigned char *expected = walk(&layout, contents);
  struct looker lookers[LOOKERS];
  clb_bytes *bytes, *same = NULL;

  FIXTURE_NEEDS_THREADS();
  bytes = staged_handle(&layout);
  ck_ok(clb_bytes_clone(bytes, &same));
  atomic_store(&looking, 1);
  for (int i = 0; i < LOOKERS; i++) {
    lookers[i] = (struct looker){.way = i, .bytes = bytes, .same = same,
                                 .expected = expected,
                                 .length = walk_length(&layout), .right = 1};
    ck_assert_int_eq(
        pthread_create(&lookers[i].thread, NULL, look_on, &lookers[i]), 0);
  }
  for (int i = 0; i < SNAPSHOTS; i++) {
    ck_ok(clb_bytes_snapshot(bytes));
    ck_ok(clb_bytes_snapshot(same));
  }
  atomic_store(&looking, 0);
  for (int i = 0; i < LOOKERS; i++) {
    ck_assert_int_eq(pthread_join(lookers[i].thread, NULL), 0);
    ck_assert_msg(lookers[i].right, "thread %d: %s", i, lookers[i].message);
  }
  overwrite(fx.queue, 0x77);
  expect_copy_into(bytes, expected, walk_length(&layout));
  clb_bytes_release(bytes);
  clb_bytes_release(same);
  free(expected);
}
END_TEST

static atomic_int ready;

static void *snapshot_with_the_others(void *bytes)
{
  atomic_fetch_add(&ready, 1);
  while (atomic_load(&ready) < LOOKERS)
    ;
  return clb_bytes_snapshot(bytes) == CLB_OK ? bytes : NULL;
}

/* [_i]: of which layout */
START_TEST(several_at_once_are_one)
{
  clb_layout layout = layout_of(_i);
  unsigned char *expected = walk(&layout, contents);

  FIXTURE_NEEDS_THREADS();
  for (int round = 0; round < 15; round++) {
    clb_bytes *bytes = fixture_handle(buffer, &layout);
    pthread_t threads[LOOKERS];

    fixture_store(buffer, contents, SIZE);
    atomic_store(&ready, 0);
    for (int i = 0; i < LOOKERS; i++)
      ck_assert_int_eq(pthread_create(&threads[i], NULL,
                                      snapshot_with_the_others, bytes), 0);
    for (int i = 0; i < LOOKERS; i++) {
      void *done = NULL;

      ck_assert_int_eq(pthread_join(threads[i], &done), 0);
      ck_assert_ptr_nonnull(done);
    }
    overwrite(fx.queue, 0x99);
    expect_copy_into(bytes, expected, walk_length(&layout));
    clb_bytes_release(bytes);
  }
  free(expected);
}
END_TEST

START_TEST(many_snapshots_leave_no_memory_behind)
{
  struct growth growth = {.times = 25};

  while (growing(&growth)) {
    clb_bytes *bytes = fixture_handle(buffer, NULL);
    unsigned char byte;

    ck_ok(clb_bytes_snapshot(bytes));
    if (_i == 0) { /* nobody looks at the others */
      ck_ok(clb_bytes_copy_into(bytes, 7, &byte, 1));
      ck_assert_uint_eq(byte, contents[7]);
    }
    clb_bytes_release(bytes);
    ck_cl(clFinish(fx.queue));
  }
  /* Those that stayed would be 25 of SIZE on a device of host memory. */
  ck_flat(&growth, 4 * SIZE);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("snapshot");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, later_writes_are_not_seen);
  tcase_add_test(all, later_writes_of_an_out_of_order_queue_are_not_seen);
  tcase_add_test(all, what_was_enqueued_before_is_in_it);
  tcase_add_test(all, it_returns_at_once_behind_a_pending_command);
  tcase_add_test(all, a_view_made_before_reads_the_buffer_still);
  tcase_add_test(all, a_view_has_a_snapshot_of_its_own);
  tcase_add_test(all, nothing_comes_to_the_host);
  tcase_add_test(all, what_is_on_the_host_stays);
  tcase_add_test(all, a_snapshot_outlives_the_buffer);
  tcase_add_test(all, a_second_one_keeps_what_the_first_has);
  tcase_add_test(all, a_second_one_returns_at_once);
  tcase_add_test(all, a_snapshot_of_any_flags_is_right);
  tcase_add_test(all, host_sources_have_nothing_to_do);
  tcase_add_loop_test(all, after_a_write_it_is_refused_also_of_nothing, 0, 2);
  tcase_add_loop_test(all, a_prefetch_under_way_does_not_hold_it_up, 0, COUNT);
  tcase_add_test(all, a_stream_goes_on_with_what_it_began_with);
  tcase_add_loop_test(all, others_may_look_meanwhile, 0, 4);
  tcase_add_loop_test(all, several_at_once_are_one, 1, 4);
  tcase_add_loop_test(all, many_snapshots_leave_no_memory_behind, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
