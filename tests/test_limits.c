/* Figures near the ends of their types: lengths, strides, names. */
#include "config.h"

#include "fixture.h"

enum { SIZE = 4096, SHOWN = 5000 };

/* Stops a stream that would take for ever. */
struct few {
  size_t pieces, length;
  unsigned char last;
};

static int take_few(const void *data, size_t length, void *user)
{
  struct few *few = user;

  few->length += length;
  few->last = ((const unsigned char *)data)[length - 1];
  return ++few->pieces == 3;
}

static const unsigned plans[] = {0, CLB_PLAN_READ | CLB_PLAN_GATHER,
                                 CLB_PLAN_GATHER};

static void expect_tail(clb_bytes *bytes, unsigned char value)
{
  unsigned char tail[SHOWN], expected[SHOWN];
  size_t length = clb_bytes_length(bytes);

  memset(expected, value, sizeof expected);
  ck_ok(clb_bytes_copy_into(bytes, length - SHOWN, tail, SHOWN));
  ck_bytes(tail, expected, SHOWN);
}

START_TEST(a_broadcast_of_all_that_can_be_counted_streams)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_layout all = {1, SHAPE(SIZE_MAX), STRIDES(0), 1, 7};
  unsigned char *data = fixture_bytes(SIZE, 70);
  cl_mem buffer = fixture_buffer(0, data, SIZE);
  double start = fixture_seconds();
  struct few few = {0, 0, 0};
  clb_bytes *bytes, *view;
  const void *pointer;
  char text[200];

  options.plans = plans[_i];
  options.chunk_size = 65536;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &all);
  ck_status(clb_bytes_stream(bytes, 0, SIZE_MAX, take_few, &few),
            CLB_CANCELLED);
  ck_assert_uint_eq(few.length, 3 * 65536);
  ck_assert_uint_eq(few.last, data[7]);
  ck_ok(clb_bytes_plan(bytes, text, sizeof text));
  ck_assert_msg(strstr(text, ", 281474976710656 chunks") != NULL, "%s", text);
  expect_tail(bytes, data[7]);
  ck_ok(clb_bytes_view(bytes, SIZE_MAX - SHOWN, SIZE_MAX, &view));
  expect_tail(view, data[7]);
  clb_bytes_release(view);
  ck_ok(clb_bytes_snapshot(bytes));
  expect_tail(bytes, data[7]);
  ck_assert_double_lt(fixture_seconds() - start, 5);

  if (fixture_measures_memory()) { /* a checker may stop at such a figure */
    ck_status(clb_bytes_read(bytes, CLB_COPY, &pointer), CLB_OUT_OF_MEMORY);
    WAIT_UNTIL(fixture_stats().host_bytes == 0);
    ck_assert_uint_eq(fixture_stats().host_bytes, 0);
    ck_assert_uint_eq(fixture_stats().host_peak, 0);
  }
  clb_bytes_release(bytes);
  clReleaseMemObject(buffer);
  free(data);
}
END_TEST

/* The steps between its rows are more than a signed number holds. */
START_TEST(rows_of_exabytes_are_right)
{
  const size_t row = SIZE_MAX / 4 + 1;
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_layout rows = {2, SHAPE(3, row), STRIDES(-1, 0), 1, 2};
  unsigned char *data = fixture_bytes(SIZE, 71), two[2];
  cl_mem buffer = fixture_buffer(0, data, SIZE);
  clb_bytes *bytes;
  int snapshot;

  options.plans = plans[_i];
  options.chunk_size = SIZE_MAX;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &rows);
  ck_status(clb_bytes_upload(bytes, fx.context, buffer, &rows),
            CLB_INVALID_LAYOUT);
  clb_bytes_release(bytes);

  options.chunk_size = 0;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &rows);
  for (snapshot = 0; snapshot < 2; snapshot++) {
    ck_ok(clb_bytes_copy_into(bytes, row - 1, two, 2));
    ck_assert_uint_eq(two[0], data[2]);
    ck_assert_uint_eq(two[1], data[1]);
    expect_tail(bytes, data[0]);
    ck_ok(clb_bytes_snapshot(bytes));
  }
  clb_bytes_release(bytes);
  clReleaseMemObject(buffer);
  free(data);
}
END_TEST

/* A chunk that nobody has the memory for. */
START_TEST(a_chunk_of_the_whole_address_space_is_out_of_memory)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_layout rows = {2, SHAPE(3, SIZE_MAX / 4 + 1), STRIDES(-1, 0), 1, 2};
  cl_mem buffer = fixture_buffer(0, NULL, SIZE);
  struct few few = {0, 0, 0};
  clb_bytes *bytes;

  if (!fixture_measures_memory())
    FIXTURE_SKIP("a checker may stop at such an allocation");
  options.plans = CLB_PLAN_READ | CLB_PLAN_GATHER;
  options.chunk_size = SIZE_MAX;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &rows);
  ck_status(clb_bytes_stream(bytes, 0, clb_bytes_length(bytes), take_few, &few),
            CLB_OUT_OF_MEMORY);
  ck_assert_uint_eq(few.pieces, 0);
  clb_bytes_release(bytes);
  clReleaseMemObject(buffer);
}
END_TEST

START_TEST(a_long_name_hides_no_cause)
{
  cl_int err;
  cl_event failed = clCreateUserEvent(fx.cl, &err);
  cl_mem from, to;
  char name[2000];
  clb_bytes *bytes;
  const void *data;

  ck_cl(err);
  ck_cl(clSetUserEventStatus(failed, CL_OUT_OF_RESOURCES));
  from = fixture_buffer(0, NULL, SIZE);
  to = fixture_buffer(0, NULL, SIZE);
  ck_ok(clb_bytes_from_buffer_after(fx.context, from, NULL, 1, &failed,
                                    &bytes));
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  ck_ok(clb_bytes_set_label(bytes, name));
  ck_status(clb_bytes_read(bytes, CLB_COPY, &data), CLB_DEVICE_ERROR);
  ck_message("nnn");
  ck_message("CL_OUT_OF_RESOURCES");
  /* Which names it twice. */
  ck_status(clb_bytes_upload(bytes, fx.context, to, NULL), CLB_DEVICE_ERROR);
  ck_message("nnn");
  ck_message("CL_OUT_OF_RESOURCES");
  ck_assert_int_eq(clb_error_cl(), CL_OUT_OF_RESOURCES);
  clb_bytes_release(bytes);
  clReleaseMemObject(from);
  clReleaseMemObject(to);
  clReleaseEvent(failed);
}
END_TEST

START_TEST(a_long_path_hides_no_cause)
{
  char path[4000];
  clb_bytes *bytes = NULL;

  memset(path, '/', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  ck_status(clb_bytes_from_file(path, 0, 0, &bytes), CLB_INVALID_ARGUMENT);
  ck_message("///");
  ck_message("not a regular file");
  path[sizeof path - 2] = 'n';
  ck_status(clb_bytes_from_file(path, 0, 0, &bytes), CLB_IO_ERROR);
  ck_message("///");
  ck_message("open: ");
  ck_status(clb_bytes_from_file(NULL, 0, 0, &bytes), CLB_INVALID_ARGUMENT);
  ck_message("path is NULL");
}
END_TEST

/* The same words, whether the device or the host copy was streamed. */
START_TEST(a_stream_that_was_stopped_is_named)
{
  cl_mem buffer = fixture_buffer(0, NULL, 3 * SIZE);
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  struct few few = {0, 0, 0};
  clb_bytes *bytes;
  char first[200];
  const void *data;

  options.chunk_size = SIZE;
  fixture_options(&options);
  bytes = fixture_handle(buffer, NULL);
  ck_status(clb_bytes_stream(bytes, 0, 3 * SIZE, take_few, &few),
            CLB_CANCELLED);
  snprintf(first, sizeof first, "%s", clb_error_message());
  ck_message("[0, 12288)");
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  few.pieces = 0;
  ck_status(clb_bytes_stream(bytes, 0, 3 * SIZE, take_few, &few),
            CLB_CANCELLED);
  ck_assert_str_eq(clb_error_message(), first);
  clb_bytes_release(bytes);
  clReleaseMemObject(buffer);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("limits");
  TCase *all = fixture_case(suite, "all", 20);
  const int masks = sizeof plans / sizeof *plans;

  tcase_add_loop_test(all, a_broadcast_of_all_that_can_be_counted_streams, 0,
                      masks);
  tcase_add_loop_test(all, rows_of_exabytes_are_right, 0, masks);
  tcase_add_test(all, a_chunk_of_the_whole_address_space_is_out_of_memory);
  tcase_add_test(all, a_long_name_hides_no_cause);
  tcase_add_test(all, a_long_path_hides_no_cause);
  tcase_add_test(all, a_stream_that_was_stopped_is_named);
  return fixture_main(suite, FIXTURE_DEVICE);
}
