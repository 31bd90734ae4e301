/* clb_bytes_snapshot: what is enqueued later never shows. */
#include "config.h"

#include "fixture.h"

enum { SIZE = 1 << 20 };

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
  tcase_add_loop_test(all, many_snapshots_leave_no_memory_behind, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
