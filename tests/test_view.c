/* clb_bytes_view: every range of every layout, before and after a read. */
#include "config.h"

#include "fixture.h"

enum { SIZE = 4096 };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 16);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  if (fx.context != NULL)
    ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static clb_bytes *view_of(clb_bytes *bytes, size_t start, size_t end)
{
  clb_bytes *view = NULL;

  ck_ok(clb_bytes_view(bytes, start, end, &view));
  ck_assert_uint_eq(clb_bytes_length(view), end - start);
  return view;
}

static const struct {
  const char *what;
  size_t ndim, shape[4];
  ptrdiff_t strides[4];
  size_t elem_size, offset;
} SMALL[] = {
    {"bytes", 1, {30}, {1}, 1, 3},
    {"words off the alignment", 1, {9}, {4}, 4, 64},
    {"padded", 2, {3, 4}, {11, 2}, 2, 1},
    {"padded rows", 2, {4, 3}, {32, 4}, 4, 0},
    {"transposed", 2, {4, 5}, {3, 12}, 3, 0},
    {"broadcast", 1, {7}, {0}, 4, 12},
    {"reversed", 1, {7}, {-8}, 4, 60},
    {"broadcast and reversed", 2, {3, 5}, {0, -2}, 2, 20},
    {"sharing bytes", 2, {5, 4}, {2, 1}, 3, 9},
    {"three dimensions", 3, {2, 3, 4}, {64, 16, 3}, 2, 5},
    {"turned round", 3, {3, 2, 2}, {2, 40, -10}, 2, 100},
    {"four dimensions", 4, {2, 2, 2, 3}, {4, 200, 48, 12}, 4, 7},
    {"rank 0", 0, {0}, {0}, 16, 33},
    {"empty", 2, {0, 4}, {8, 2}, 2, 0},
};
enum { COUNT = sizeof SMALL / sizeof *SMALL, GROUPS = 3 };

static clb_layout small_layout(int index)
{
  clb_layout layout = {SMALL[index].ndim, SMALL[index].shape,
                       SMALL[index].strides, SMALL[index].elem_size,
                       SMALL[index].offset};

  fixture_input = SMALL[index].what;
  return layout;
}

static void expect_every_range(int index, unsigned plans)
{
  clb_layout layout = small_layout(index);
  unsigned char *expected = walk(&layout, contents);
  size_t length = walk_length(&layout);
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *bytes;

  options.plans = plans;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &layout);
  for (size_t start = 0; start <= length; start++)
    for (size_t end = start; end <= length; end++) {
      clb_bytes *view = view_of(bytes, start, end);

      expect_copy_into(view, expected + start, end - start);
      expect_read(view, expected + start, end - start);
      clb_bytes_release(view);
    }
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  clb_bytes_release(bytes);
  free(expected);
}

/* [_i]: a layout of every GROUPS.  With each set of plans that carries all. */
START_TEST(every_range_of_a_small_layout_is_right)
{
  for (int i = _i; i < COUNT; i += GROUPS) {
    expect_every_range(i, 0);
    expect_every_range(i, CLB_PLAN_GATHER);
    expect_every_range(i, CLB_PLAN_RECT | CLB_PLAN_GATHER);
  }
}
END_TEST

/* A view of a view of a view ..., the parent gone, and now and then read. */
static void expect_nested(const clb_layout *layout,
                          const unsigned char *expected, uint64_t *random)
{
  clb_bytes *bytes = fixture_handle(buffer, layout);
  size_t start = 0, size = walk_length(layout);

  for (int depth = 0; depth < 5; depth++) {
    size_t from = fixture_below(random, size / 2 + 1);
    size_t to = size - fixture_below(random, (size - from) / 3 + 1);
    clb_bytes *view;

    if (fixture_below(random, 6) == 0)
      expect_read(bytes, expected + start, size);
    view = view_of(bytes, from, to);
    clb_bytes_release(bytes);
    bytes = view;
    start += from;
    size = to - from;
    expect_stream(bytes, expected + start, size);
  }
  expect_read(bytes, expected + start, size);
  clb_bytes_release(bytes);
}

START_TEST(views_of_views_are_right)
{
  for (int i = 0; i < COUNT; i++) {
    clb_layout layout = small_layout(i);
    unsigned char *expected = walk(&layout, contents);
    uint64_t random = (uint64_t)i;

    for (int round = 0; round < 50; round++)
      expect_nested(&layout, expected, &random);
    free(expected);
  }
}
END_TEST

START_TEST(tails_of_tails_of_16_floats_are_right)
{
  clb_layout layout = {1, SHAPE(16), NULL, 4, 0};
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *from_3 = view_of(bytes, 12, 64);
  clb_bytes *from_5 = view_of(from_3, 8, 52);

  ck_refs(buffer, 4);
  clb_bytes_release(bytes);
  clb_bytes_release(from_3);
  ck_refs(buffer, 2);
  expect_copy_into(from_5, contents + 20, 44);
  expect_read(from_5, contents + 20, 44);
  clb_bytes_release(from_5);
}
END_TEST

START_TEST(tails_of_tails_of_a_padded_matrix_are_right)
{
  clb_layout layout = {2, SHAPE(16, 3), STRIDES(32, 4), 4, 8};
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *from_3 = view_of(bytes, 36, 192);
  clb_bytes *from_5 = view_of(from_3, 24, 156);

  clb_bytes_release(bytes);
  clb_bytes_release(from_3);
  expect_copy_into(from_5, expected + 60, 132);
  expect_read(from_5, expected + 60, 132);
  clb_bytes_release(from_5);
  free(expected);
}
END_TEST

START_TEST(a_view_of_a_padded_row_skips_the_padding)
{
  clb_layout layout = {2, SHAPE(4, 3), STRIDES(32, 4), 4, 0};
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *view = view_of(bytes, 10, 14);
  const unsigned char expected[4] = {contents[10], contents[11], contents[32],
                                     contents[33]};

  expect_read(view, expected, 4);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_view_is_one_dimension_of_bytes)
{
  clb_layout layout = {2, SHAPE(4, 3), STRIDES(32, 4), 4, 0}, got;
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *views[3] = {view_of(bytes, 5, 17), view_of(bytes, 12, 24),
                         view_of(bytes, 7, 7)};

  for (int i = 0; i < 3; i++) {
    ck_ok(clb_bytes_layout(views[i], &got));
    ck_assert_uint_eq(got.ndim, 1);
    ck_assert_uint_eq(got.shape[0], clb_bytes_length(views[i]));
    ck_assert_uint_eq(got.elem_size, 1);
    ck_assert_uint_eq(got.offset, 0);
    ck_assert_ptr_null(got.strides);
    clb_bytes_release(views[i]);
  }
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_range_outside_is_refused)
{
  clb_layout layout = {2, SHAPE(4, 3), STRIDES(32, 4), 4, 0};
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *view = view_of(bytes, 10, 20), *out = NULL;

  ck_status(clb_bytes_view(bytes, 0, 49, &out), CLB_OUT_OF_RANGE);
  ck_message("49");
  ck_message("48");
  ck_status(clb_bytes_view(bytes, 9, 8, &out), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, 49, 49, &out), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, SIZE_MAX, SIZE_MAX, &out),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, 0, SIZE_MAX, &out), CLB_OUT_OF_RANGE);
  /* Inside the parent's parent is not inside. */
  ck_status(clb_bytes_view(view, 0, 11, &out), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, 0, 1, NULL), CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_view(NULL, 0, 0, &out), CLB_INVALID_ARGUMENT);
  ck_assert_ptr_null(out);
  ck_refs(buffer, 3);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(an_empty_view_is_a_pointer_and_no_transfer)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  for (size_t at = 0; at <= SIZE; at += SIZE / 2) {
    clb_bytes *view = view_of(bytes, at, at);
    clb_bytes *inner = view_of(view, 0, 0);
    const void *data = NULL;

    ck_ok(clb_bytes_read(view, CLB_COPY, &data));
    ck_assert_ptr_nonnull(data);
    expect_stream(inner, "", 0);
    ck_ok(clb_bytes_copy_into(inner, 0, NULL, 0));
    clb_bytes_release(view);
    clb_bytes_release(inner);
  }
  ck_assert_uint_eq(fixture_stats().reads, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_view_never_materialises_its_parent)
{
  clb_layout layout = {2, SHAPE(16, 3), STRIDES(32, 4), 4, 8};
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *view = view_of(bytes, 3, 100);
  const void *data = NULL;

  ck_assert_uint_eq(fixture_stats().reads, 0);
  expect_read(view, expected + 3, 97);
  ck_assert_uint_eq(fixture_stats().bytes_read, 97);
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  free(expected);
}
END_TEST

START_TEST(a_view_of_a_materialised_handle_shares_its_copy)
{
  clb_layout layout = {2, SHAPE(16, 3), STRIDES(32, 4), 4, 8};
  unsigned char *expected = walk(&layout, contents);
  unsigned char *other = fixture_bytes(SIZE, 17);
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *before = view_of(bytes, 5, 50), *view, *inner;
  const unsigned char *whole, *part = NULL;
  const void *data;
  uint64_t held;

  expect_read(bytes, expected, 192);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  whole = data;
  held = fixture_stats().host_bytes;
  view = view_of(bytes, 5, 50);
  inner = view_of(view, 10, 20);
  ck_ok(clb_bytes_read(view, CLB_NO_COPY, &data));
  part = data;
  ck_assert_ptr_eq(part, whole + 5);
  ck_assert_uint_eq((uintptr_t)part % clb_bytes_alignment(view), 0);
  ck_ok(clb_bytes_read(inner, CLB_COPY, &data));
  ck_bytes(data, expected + 15, 10);
  ck_assert_uint_eq(fixture_stats().host_bytes, held);
  ck_assert_uint_eq(fixture_stats().reads, 1);

  /* Freed with its last holder, not with the first. */
  clb_bytes_release(bytes);
  clb_bytes_release(view);
  fixture_store(buffer, other, SIZE);
  expect_read(inner, expected + 15, 10);
  ck_assert_uint_eq(fixture_stats().host_bytes, held);
  clb_bytes_release(inner);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);

  /* One made before the read has the source, and sees the write. */
  free(expected);
  expected = walk(&layout, other);
  expect_read(before, expected + 5, 45);
  clb_bytes_release(before);
  free(expected);
  free(other);
}
END_TEST

START_TEST(a_view_outlives_its_parent_and_the_program)
{
  clb_layout layout = {2, SHAPE(16, 3), STRIDES(32, 4), 4, 8};
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  clb_bytes *view = view_of(bytes, 7, 99);

  clb_bytes_release(bytes);
  clb_context_release(fx.context);
  fx.context = NULL;
  expect_stream(view, expected + 7, 92);
  expect_read(view, expected + 7, 92);
  clb_bytes_release(view);
  free(expected);
}
END_TEST

/* Origins that sub-buffers are refused for, and those that they are not. */
START_TEST(no_alignment_is_needed)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  for (size_t start = 0; start < 1100; start += 1 + start / 7) {
    clb_bytes *view = view_of(bytes, start, SIZE - start / 3);

    expect_copy_into(view, contents + start, SIZE - start / 3 - start);
    clb_bytes_release(view);
  }
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(views_of_a_sub_buffers_handle_are_right)
{
  cl_buffer_region region = {512, 2048};
  cl_int code;
  cl_mem sub = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                 &region, &code);
  clb_bytes *bytes, *view, *inner;

  ck_cl(code);
  bytes = fixture_handle(sub, NULL);
  view = view_of(bytes, 512, 2048);
  inner = view_of(view, 512, 1025);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(sub));
  expect_stream(view, contents + 1024, 1536);
  expect_read(inner, contents + 1536, 513);
  clb_bytes_release(view);
  clb_bytes_release(inner);
}
END_TEST

START_TEST(a_view_inherits_the_label)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL), *view;
  unsigned char byte;

  ck_ok(clb_bytes_set_label(bytes, "decoder.bias"));
  view = view_of(bytes, 0, 10);
  clb_bytes_release(bytes);
  ck_status(clb_bytes_copy_into(view, 10, &byte, 1), CLB_OUT_OF_RANGE);
  ck_message("decoder.bias");
  clb_bytes_release(view);
}
END_TEST

START_TEST(parts_put_together_are_the_whole)
{
  clb_layout layout = {3, SHAPE(5, 7, 9), STRIDES(600, 80, 8), 4, 0};
  unsigned char *expected = walk(&layout, contents);
  size_t length = walk_length(&layout), at = 0;
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  struct gathered all = {NULL, 0, 0, 0};

  for (size_t step = 1; at < length; step++) {
    size_t end = at + step < length ? at + step : length;
    clb_bytes *view = view_of(bytes, at, end);

    ck_ok(clb_bytes_stream(view, 0, end - at, gather_sink, &all));
    clb_bytes_release(view);
    at = end;
  }
  ck_assert_uint_eq(all.length, length);
  ck_bytes(all.data, expected, length);
  clb_bytes_release(bytes);
  free(all.data);
  free(expected);
}
END_TEST

START_TEST(the_bytes_of_a_reshaped_element_lie_in_a_row)
{
  const struct {
    clb_layout layout;
    clb_status status;
  } cases[] = {
      {{2, SHAPE(7, 13), STRIDES(13, -1), 1, 12}, CLB_UNSUPPORTED},
      {{2, SHAPE(7, 13), STRIDES(26, 2), 1, 0}, CLB_UNSUPPORTED},
      {{2, SHAPE(7, 13), STRIDES(0, 0), 1, 0}, CLB_UNSUPPORTED},
      {{2, SHAPE(7, 13), STRIDES(99, 1), 1, 0}, CLB_OK},
      {{1, SHAPE(7), STRIDES(-13), 13, 200}, CLB_OK},
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned char *expected = walk(&cases[i].layout, contents);
    clb_bytes *bytes = fixture_handle(buffer, &cases[i].layout), *made = NULL;

    ck_status(clb_bytes_reshape(bytes, 1, SHAPE(7), 13, &made),
              cases[i].status);
    if (made != NULL)
      expect_read(made, expected, 91);
    clb_bytes_release(made);
    clb_bytes_release(bytes);
    free(expected);
  }
}
END_TEST

/* Four elements of 16 bytes, of which the second and the third meet. */
START_TEST(a_range_over_rows_that_meet_is_contiguous)
{
  clb_layout layout = {2, SHAPE(2, 2), STRIDES(36, 20), 16, 256};
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &layout), *view = NULL;
  size_t offset;
  cl_mem mem;

  for (size_t end = 33; end <= 49; end++) {
    ck_ok(clb_bytes_view(bytes, 17, end, &view));
    ck_status(clb_bytes_buffer(view, &mem, &offset),
              end <= 48 ? CLB_OK : CLB_UNSUPPORTED);
    if (end <= 48) {
      ck_assert_uint_eq(offset, 256 + 21);
      ck_cl(clReleaseMemObject(mem));
    }
    expect_read(view, expected + 17, end - 17);
    clb_bytes_release(view);
  }
  clb_bytes_release(bytes);
  free(expected);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("view");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, every_range_of_a_small_layout_is_right, 0, GROUPS);
  tcase_add_test(all, views_of_views_are_right);
  tcase_add_test(all, tails_of_tails_of_16_floats_are_right);
  tcase_add_test(all, tails_of_tails_of_a_padded_matrix_are_right);
  tcase_add_test(all, a_view_of_a_padded_row_skips_the_padding);
  tcase_add_test(all, a_view_is_one_dimension_of_bytes);
  tcase_add_test(all, a_range_outside_is_refused);
  tcase_add_test(all, an_empty_view_is_a_pointer_and_no_transfer);
  tcase_add_test(all, a_view_never_materialises_its_parent);
  tcase_add_test(all, a_view_of_a_materialised_handle_shares_its_copy);
  tcase_add_test(all, a_view_outlives_its_parent_and_the_program);
  tcase_add_test(all, no_alignment_is_needed);
  tcase_add_test(all, views_of_a_sub_buffers_handle_are_right);
  tcase_add_test(all, a_view_inherits_the_label);
  tcase_add_test(all, parts_put_together_are_the_whole);
  tcase_add_test(all, the_bytes_of_a_reshaped_element_lie_in_a_row);
  tcase_add_test(all, a_range_over_rows_that_meet_is_contiguous);
  return fixture_main(suite, FIXTURE_DEVICE);
}
