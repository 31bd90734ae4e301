/* Making handles on buffers: what is checked, what is retained. */
#include "config.h"

#include "fixture.h"

#include <limits.h>

enum { SIZE = 4096 };

static unsigned char *bytes_of;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  bytes_of = fixture_bytes(SIZE, 3);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, bytes_of, SIZE);
}

static void teardown(void)
{
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(bytes_of);
  fixture_teardown();
}

/* Refused, with every one of these numbers in the message and nothing
 * retained or written. */
static void refused_in(cl_mem where, const clb_layout *layout,
                       clb_status status, const char *numbers)
{
  clb_bytes *out = (clb_bytes *)&fx;
  cl_uint refs = fixture_buffer_refs(where);
  char words[128];

  ck_status(clb_bytes_from_buffer(fx.context, where, layout, &out), status);
  ck_assert_ptr_eq(out, (clb_bytes *)&fx);
  ck_refs(where, refs);
  snprintf(words, sizeof words, "%s", numbers);
  for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
    ck_message(word);
  ck_status(clb_bytes_from_buffer_after(fx.context, where, layout, 0, NULL,
                                        &out),
            status);
  ck_assert_ptr_eq(out, (clb_bytes *)&fx);
  ck_refs(where, refs);
}

#define REFUSED(layout_, status, numbers)                                      \
  do {                                                                         \
    clb_layout ck_layout_ = layout_;                                           \
    refused_in(buffer, &ck_layout_, status, numbers);                          \
  } while (0)
#define LAYOUT(...) ((clb_layout){__VA_ARGS__})

START_TEST(one_byte_past_the_buffer_is_refused)
{
  REFUSED(LAYOUT(1, SHAPE(1024), STRIDES(4), 4, 1), CLB_INVALID_LAYOUT,
          "4096");
  REFUSED(LAYOUT(1, SHAPE(1024), NULL, 4, 1), CLB_INVALID_LAYOUT, "4096");
  REFUSED(LAYOUT(1, SHAPE(4097), NULL, 1, 0), CLB_INVALID_LAYOUT, "4097 4096");
  REFUSED(LAYOUT(2, SHAPE(2, 3), STRIDES(4085, 4), 4, 0), CLB_INVALID_LAYOUT,
          "4096");
  REFUSED(LAYOUT(0, NULL, NULL, 4097, 0), CLB_INVALID_LAYOUT, "4097 4096");
  REFUSED(LAYOUT(0, NULL, NULL, 1, 4096), CLB_INVALID_LAYOUT, "4096");
  REFUSED(LAYOUT(1, SHAPE(2), STRIDES(-4), 4, 4093), CLB_INVALID_LAYOUT,
          "4093 4096");
  REFUSED(LAYOUT(1, SHAPE(7), STRIDES(0), 4, 4093), CLB_INVALID_LAYOUT,
          "4093 4096");
}
END_TEST

START_TEST(up_to_the_last_byte_is_accepted)
{
  static const struct {
    size_t ndim, shape[2];
    ptrdiff_t strides[2];
    size_t elem_size, offset;
  } good[] = {
      {1, {1024}, {4}, 4, 0},       {1, {1023}, {4}, 4, 4},
      {2, {2, 3}, {4084, 4}, 4, 0}, {0, {0}, {0}, 4096, 0},
      {0, {0}, {0}, 1, 4095},       {1, {2}, {-4}, 4, 4092},
      {1, {1024}, {-4}, 4, 4092},   {1, {7}, {0}, 4, 4092},
      {2, {2, 2}, {-8, 8}, 8, 8},
  };

  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    clb_layout layout = {good[i].ndim, good[i].shape, good[i].strides,
                         good[i].elem_size, good[i].offset};
    unsigned char *expected = walk(&layout, bytes_of);
    clb_bytes *bytes = fixture_handle(buffer, &layout);

    expect_read(bytes, expected, walk_length(&layout));
    clb_bytes_release(bytes);
    free(expected);
  }
}
END_TEST

START_TEST(a_negative_stride_before_byte_0_is_refused)
{
  REFUSED(LAYOUT(1, SHAPE(5), STRIDES(-4), 4, 15), CLB_INVALID_LAYOUT, "15");
  REFUSED(LAYOUT(1, SHAPE(2), STRIDES(-1), 1, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(2, SHAPE(3, 3), STRIDES(-8, -1), 1, 17), CLB_INVALID_LAYOUT,
          "17");
  /* What another dimension adds does not bring it back. */
  REFUSED(LAYOUT(2, SHAPE(2, 2), STRIDES(-8, 8), 4, 7), CLB_INVALID_LAYOUT,
          "7");
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
  const size_t big = (size_t)1 << (sizeof(size_t) * 4 + 1); /* 2^33 */
  const size_t half = (size_t)1 << (sizeof(size_t) * 4);    /* 2^32 */
  const size_t most = SIZE_MAX;

  REFUSED(LAYOUT(2, SHAPE(big, big), NULL, 4, 0), CLB_INVALID_LAYOUT,
          "8589934592");
  REFUSED(LAYOUT(2, SHAPE(big, big), STRIDES(0, 0), 4, 0), CLB_INVALID_LAYOUT,
          "8589934592");
  REFUSED(LAYOUT(2, SHAPE(half, half), STRIDES(0, 0), 1, 0),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(2, SHAPE(most, 2), NULL, 1, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(most), NULL, 1, 0), CLB_INVALID_LAYOUT, "4096");
  REFUSED(LAYOUT(1, SHAPE(most / 4 + 1), NULL, 4, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(most / 2 + 2), STRIDES(0), 2, 0),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(2), STRIDES(4), most, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(0, NULL, NULL, most, most), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(1), NULL, 1, most), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(2), NULL, 2, most - 1), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(2), STRIDES(PTRDIFF_MAX), 1, 0),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(3), STRIDES(PTRDIFF_MAX), 1, 2),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(2), STRIDES(PTRDIFF_MIN), 1, 0),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(3), STRIDES(PTRDIFF_MIN), 1, 8),
          CLB_INVALID_LAYOUT, "");
  /* Sums that wrap round to something small. */
  REFUSED(LAYOUT(2, SHAPE(2, 2), STRIDES(PTRDIFF_MIN, PTRDIFF_MIN), 1, 8),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(3, SHAPE(3, 2, 2), STRIDES(PTRDIFF_MAX, 1, 1), 1, 0),
          CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(2, SHAPE(2, 2), STRIDES(PTRDIFF_MIN, PTRDIFF_MAX), 1, 8),
          CLB_INVALID_LAYOUT, "");
}
END_TEST

START_TEST(an_element_of_no_bytes_is_refused)
{
  REFUSED(LAYOUT(1, SHAPE(4), STRIDES(4), 0, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(1, SHAPE(0), NULL, 0, 0), CLB_INVALID_LAYOUT, "");
  REFUSED(LAYOUT(0, NULL, NULL, 0, 0), CLB_INVALID_LAYOUT, "");
}
END_TEST

START_TEST(dimensions_without_a_shape_are_refused)
{
  REFUSED(LAYOUT(1, NULL, NULL, 4, 0), CLB_INVALID_ARGUMENT, "");
  REFUSED(LAYOUT(1, NULL, STRIDES(4), 4, 0), CLB_INVALID_ARGUMENT, "");
  REFUSED(LAYOUT(64, NULL, NULL, 4, 0), CLB_INVALID_ARGUMENT, "");
}
END_TEST

START_TEST(sixty_four_dimensions_are_the_most)
{
  size_t shape[65];
  ptrdiff_t strides[65];
  clb_bytes *bytes;

  for (size_t d = 0; d < 65; d++) {
    shape[d] = d % 9 == 0 ? 2 : 1;
    strides[d] = (ptrdiff_t)d;
  }
  REFUSED(LAYOUT(65, shape, strides, 4, 0), CLB_INVALID_LAYOUT, "65");
  REFUSED(LAYOUT(SIZE_MAX, shape, strides, 4, 0), CLB_INVALID_LAYOUT, "");
  for (int packed = 0; packed < 2; packed++) {
    clb_layout layout = {64, shape, packed ? NULL : strides, 4, 0};
    clb_layout back;
    unsigned char *expected = walk(&layout, bytes_of);

    bytes = fixture_handle(buffer, &layout);
    expect_read(bytes, expected, walk_length(&layout));
    ck_ok(clb_bytes_layout(bytes, &back));
    ck_assert_uint_eq(back.ndim, 64);
    ck_bytes(back.shape, shape, 64 * sizeof *shape);
    clb_bytes_release(bytes);
    free(expected);
  }
}
END_TEST

/* An empty tensor reaches nothing, whatever its other numbers. */
START_TEST(empty_layouts_are_accepted_whatever_they_say)
{
  const size_t most = SIZE_MAX;
  clb_layout empty[] = {
      LAYOUT(1, SHAPE(0), NULL, 1, 0),
      LAYOUT(2, SHAPE(0, 5), STRIDES(PTRDIFF_MAX, PTRDIFF_MIN), 4, 0),
      LAYOUT(3, SHAPE(3, 0, 2), STRIDES(0, 0, 4), 4, 0),
      LAYOUT(2, SHAPE(0, most), NULL, 8, most),
      LAYOUT(3, SHAPE(most, most, 0), NULL, most, most),
      LAYOUT(3, SHAPE(most, 0, most), STRIDES(-1, -1, -1), 1, 0),
      LAYOUT(1, SHAPE(0), STRIDES(-4), 4, SIZE + 1),
  };

  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    clb_bytes *bytes = fixture_handle(buffer, &empty[i]);
    clb_layout layout;
    const void *data = NULL;

    ck_assert_uint_eq(clb_bytes_length(bytes), 0);
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    ck_assert_ptr_nonnull(data);
    expect_stream(bytes, "", 0);
    ck_ok(clb_bytes_copy_into(bytes, 0, NULL, 0));
    ck_ok(clb_bytes_layout(bytes, &layout));
    ck_assert_uint_eq(layout.ndim, empty[i].ndim);
    ck_bytes(layout.shape, empty[i].shape, layout.ndim * sizeof(size_t));
    clb_bytes_release(bytes);
  }
  ck_assert_uint_eq(fixture_stats().reads, 0);
  ck_assert_uint_eq(fixture_stats().link_bytes, 0);
}
END_TEST

START_TEST(the_stride_of_an_extent_of_1_says_nothing)
{
  clb_layout layout = {3, SHAPE(1, 10, 1),
                       STRIDES(PTRDIFF_MIN, 8, PTRDIFF_MAX), 8, 16};
  clb_bytes *bytes = fixture_handle(buffer, &layout);

  expect_read(bytes, bytes_of + 16, 80);
  clb_bytes_release(bytes);
}
END_TEST

/* A length of 1 TiB out of one byte: nothing may count in 32 bits. */
START_TEST(a_broadcast_of_a_tebibyte_is_read_at_its_end)
{
#if SIZE_MAX > UINT32_MAX
  const size_t huge = (size_t)1 << 40;
  clb_layout layout = {1, SHAPE(huge), STRIDES(0), 1, 5};
  clb_bytes *bytes = fixture_handle(buffer, &layout), *view;
  unsigned char got[100], expected[100];
  struct gathered all = {NULL, 0, 0, 0};

  memset(expected, bytes_of[5], sizeof expected);
  ck_assert_uint_eq(clb_bytes_length(bytes), huge);
  memset(got, bytes_of[5] ^ 0xff, sizeof got);
  ck_ok(clb_bytes_copy_into(bytes, huge - 100, got, 100));
  ck_bytes(got, expected, 100);
  ck_ok(clb_bytes_stream(bytes, huge - 100, huge, gather_sink, &all));
  ck_assert_uint_eq(all.length, 100);
  ck_bytes(all.data, expected, 100);
  free(all.data);
  ck_ok(clb_bytes_view(bytes, huge / 2 + 3, huge / 2 + 103, &view));
  expect_read(view, expected, 100);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
#endif
}
END_TEST

START_TEST(no_layout_is_the_whole_buffer_as_bytes)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  clb_layout layout;

  ck_ok(clb_bytes_layout(bytes, &layout));
  ck_assert_uint_eq(layout.ndim, 1);
  ck_assert_uint_eq(layout.shape[0], SIZE);
  ck_assert_uint_eq(layout.elem_size, 1);
  ck_assert_uint_eq(layout.offset, 0);
  ck_assert_ptr_null(layout.strides);
  expect_read(bytes, bytes_of, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(the_callers_layout_is_copied)
{
  size_t shape[2] = {3, 5};
  ptrdiff_t strides[2] = {64, 8};
  clb_layout layout = {2, shape, strides, 4, 16}, back;
  unsigned char *expected = walk(&layout, bytes_of);
  clb_bytes *bytes = fixture_handle(buffer, &layout);

  shape[0] = shape[1] = 1000;
  strides[0] = strides[1] = 1;
  memset(&layout, 0xff, sizeof layout);
  expect_read(bytes, expected, 60);
  ck_ok(clb_bytes_layout(bytes, &back));
  ck_assert_uint_eq(back.ndim, 2);
  ck_assert_uint_eq(back.shape[0], 3);
  ck_assert_uint_eq(back.shape[1], 5);
  ck_assert_uint_eq(back.elem_size, 4);
  ck_assert_ptr_null(back.strides);
  ck_assert_uint_eq(back.offset, 0);
  clb_bytes_release(bytes);
  free(expected);
}
END_TEST

START_TEST(null_arguments_are_refused)
{
  clb_bytes *out = NULL;

  ck_status(clb_bytes_from_buffer(NULL, buffer, NULL, &out),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_buffer(fx.context, NULL, NULL, &out),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_buffer(fx.context, buffer, NULL, NULL),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_buffer_after(NULL, buffer, NULL, 0, NULL, &out),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 0, NULL,
                                        NULL),
            CLB_INVALID_ARGUMENT);
  ck_assert_ptr_null(out);
}
END_TEST

START_TEST(a_buffer_of_another_context_is_refused)
{
  cl_int code;
  cl_context other = clCreateContext(NULL, 1, &fx.device, NULL, NULL, &code);
  cl_mem stranger;

  ck_cl(code);
  stranger = clCreateBuffer(other, CL_MEM_READ_WRITE, 64, NULL, &code);
  ck_cl(code);
  refused_in(stranger, NULL, CLB_INVALID_ARGUMENT, "");
  ck_cl(clReleaseMemObject(stranger));
  ck_cl(clReleaseContext(other));
}
END_TEST

START_TEST(an_image_is_refused)
{
  cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  cl_image_desc description;
  cl_bool images = CL_FALSE;
  cl_mem image;
  cl_int code;

  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_IMAGE_SUPPORT, sizeof images,
                        &images, NULL));
  if (!images)
    FIXTURE_SKIP("no images");
  memset(&description, 0, sizeof description);
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = description.image_height = 16;
  image = clCreateImage(fx.cl, CL_MEM_READ_WRITE, &format, &description, NULL,
                        &code);
  ck_cl(code);
  refused_in(image, NULL, CLB_INVALID_ARGUMENT, "");
  ck_cl(clReleaseMemObject(image));
}
END_TEST

/* --- What is retained ---------------------------------------------------- */

START_TEST(each_live_handle_retains_the_buffer_once)
{
  clb_bytes *bytes[10], *view, *inner;

  for (cl_uint i = 0; i < 10; i++) {
    bytes[i] = fixture_handle(buffer, NULL);
    ck_refs(buffer, 2 + i);
  }
  ck_ok(clb_bytes_view(bytes[0], 12, 64, &view));
  ck_refs(buffer, 12);
  ck_ok(clb_bytes_view(view, 8, 52, &inner));
  ck_refs(buffer, 13);
  clb_bytes_release(view);
  ck_refs(buffer, 12);
  expect_read(inner, bytes_of + 20, 44);
  clb_bytes_release(inner);
  for (cl_uint i = 0; i < 10; i++) {
    ck_assert_ptr_eq(clb_bytes_retain(bytes[i]), bytes[i]);
    clb_bytes_release(bytes[i]);
    ck_refs(buffer, 11 - i);
    clb_bytes_release(bytes[i]);
    ck_refs(buffer, 10 - i);
  }
}
END_TEST

/* A sub-buffer of [512, 1536). */
static cl_mem sub_buffer(cl_mem_flags flags)
{
  cl_buffer_region region = {512, 1024};
  cl_int code;
  cl_mem sub = clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION,
                                 &region, &code);

  ck_cl(code);
  return sub;
}

START_TEST(offsets_are_relative_to_the_sub_buffer)
{
  cl_mem sub = sub_buffer(0);
  clb_layout layout = {2, SHAPE(3, 2), STRIDES(100, 4), 4, 8};
  unsigned char *expected = walk(&layout, bytes_of + 512);
  clb_bytes *part = fixture_handle(sub, &layout);
  clb_bytes *all = fixture_handle(sub, NULL);

  ck_assert_uint_eq(clb_bytes_length(all), 1024);
  expect_stream(all, bytes_of + 512, 1024);
  expect_read(all, bytes_of + 512, 1024);
  expect_stream(part, expected, 24);
  expect_read(part, expected, 24);
  clb_bytes_release(part);
  clb_bytes_release(all);
  ck_cl(clReleaseMemObject(sub));
  free(expected);
}
END_TEST

START_TEST(a_sub_buffer_may_go_before_its_handle)
{
  cl_mem sub = sub_buffer(0);
  cl_uint refs = fixture_buffer_refs(buffer);
  clb_bytes *bytes = fixture_handle(sub, NULL);

  ck_assert_uint_gt(fixture_buffer_refs(buffer), refs);
  ck_cl(clReleaseMemObject(sub));
  expect_read(bytes, bytes_of + 512, 1024);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(what_leaves_the_sub_buffer_is_refused)
{
  cl_mem sub = sub_buffer(0);
  clb_layout after = {1, SHAPE(1024), NULL, 1, 1};
  clb_layout before = {1, SHAPE(2), STRIDES(-1), 1, 0};
  clb_layout far = {0, NULL, NULL, 1, 1024};

  refused_in(sub, &after, CLB_INVALID_LAYOUT, "1024");
  refused_in(sub, &before, CLB_INVALID_LAYOUT, "");
  refused_in(sub, &far, CLB_INVALID_LAYOUT, "1024");
  ck_cl(clReleaseMemObject(sub));
}
END_TEST

START_TEST(the_last_handle_frees_the_sub_buffer)
{
  cl_mem sub = sub_buffer(0);
  clb_bytes *bytes = fixture_handle(sub, NULL);

  clb_bytes_release(bytes);
  ck_refs(sub, 1);
  ck_cl(clReleaseMemObject(sub));
  /* The fixture sees that the root has one reference. */
}
END_TEST

/* --- Access flags -------------------------------------------------------- */

static void expect_all_ways(cl_mem from, const clb_layout *layout,
                            const unsigned char *contents)
{
  unsigned char *expected = walk(layout, contents);
  clb_bytes *bytes = fixture_handle(from, layout), *view;
  size_t length = walk_length(layout);

  expect_copy_into(bytes, expected, length);
  expect_stream(bytes, expected, length);
  ck_ok(clb_bytes_view(bytes, 1, length - 1, &view));
  expect_read(view, expected + 1, length - 2);
  clb_bytes_release(view);
  ck_ok(clb_bytes_snapshot(bytes));
  expect_read(bytes, expected, length);
  clb_bytes_release(bytes);
  free(expected);
}

static void expect_layouts(cl_mem from, const unsigned char *contents)
{
  clb_layout layouts[] = {
      LAYOUT(1, SHAPE(1000), NULL, 1, 3),
      LAYOUT(2, SHAPE(15, 7), STRIDES(64, 4), 4, 4),
      LAYOUT(2, SHAPE(16, 15), STRIDES(4, 64), 4, 0),
      LAYOUT(1, SHAPE(9), STRIDES(-12), 4, 900),
      LAYOUT(2, SHAPE(3, 5), STRIDES(0, 8), 8, 0),
  };

  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    expect_all_ways(from, &layouts[i], contents);
}

static const struct {
  const char *what;
  cl_mem_flags flags;
} FLAGS[] = {
    {"read and write", CL_MEM_READ_WRITE},
    {"read only", CL_MEM_READ_ONLY},
    {"write only", CL_MEM_WRITE_ONLY},
    {"host read only", CL_MEM_HOST_READ_ONLY},
    {"host write only", CL_MEM_HOST_WRITE_ONLY},
    {"host no access", CL_MEM_HOST_NO_ACCESS},
    {"write only, host no access", CL_MEM_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS},
    {"read only, host write only", CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY},
    {"alloc host ptr", CL_MEM_ALLOC_HOST_PTR},
};
enum { FLAGS_COUNT = sizeof FLAGS / sizeof *FLAGS };

START_TEST(a_buffer_of_any_flags_is_read)
{
  for (int i = 0; i < FLAGS_COUNT; i++) {
    cl_mem flagged = fixture_buffer(FLAGS[i].flags, bytes_of, 1024);

    fixture_input = FLAGS[i].what;
    expect_layouts(flagged, bytes_of);
    ck_refs(flagged, 1);
    ck_cl(clReleaseMemObject(flagged));
  }
}
END_TEST

START_TEST(a_sub_buffer_of_any_flags_is_read)
{
  for (int i = 0; i < FLAGS_COUNT; i++) {
    cl_mem sub;

    if ((FLAGS[i].flags & CL_MEM_ALLOC_HOST_PTR) != 0)
      continue; /* no flag of a sub-buffer */
    fixture_input = FLAGS[i].what;
    sub = sub_buffer(FLAGS[i].flags);
    expect_layouts(sub, bytes_of + 512);
    ck_cl(clReleaseMemObject(sub));
  }
}
END_TEST

START_TEST(a_sub_buffer_inherits_that_the_host_may_not_read)
{
  cl_mem root = fixture_buffer(CL_MEM_HOST_NO_ACCESS, bytes_of, SIZE);
  cl_buffer_region region = {512, 1024};
  cl_int code;
  cl_mem sub = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                 &region, &code);

  ck_cl(code);
  expect_layouts(sub, bytes_of + 512);
  ck_cl(clReleaseMemObject(sub));
  ck_refs(root, 1);
  ck_cl(clReleaseMemObject(root));
}
END_TEST

START_TEST(a_buffer_on_the_programs_memory_is_read)
{
  unsigned char *memory = NULL;
  cl_mem used;
  cl_int code;

  ck_assert_int_eq(posix_memalign((void **)&memory, 4096, 4096), 0);
  memcpy(memory, bytes_of, 1024);
  used = clCreateBuffer(fx.cl, CL_MEM_USE_HOST_PTR, 1024, memory, &code);
  ck_cl(code);
  expect_layouts(used, bytes_of);
  ck_cl(clReleaseMemObject(used));
  free(memory);
}
END_TEST

START_TEST(making_a_handle_reads_nothing)
{
  clb_bytes *bytes[100];

  for (int i = 0; i < 100; i++)
    bytes[i] = fixture_handle(buffer, NULL);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  ck_assert_uint_eq(fixture_stats().link_bytes, 0);
  ck_assert_uint_eq(fixture_stats().staging_peak, 0);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  ck_assert_int_eq(clb_bytes_place(bytes[0]), CLB_PLACE_DEVICE);
  for (int i = 0; i < 100; i++)
    clb_bytes_release(bytes[i]);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("from_buffer");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, one_byte_past_the_buffer_is_refused);
  tcase_add_test(all, up_to_the_last_byte_is_accepted);
  tcase_add_test(all, a_negative_stride_before_byte_0_is_refused);
  tcase_add_test(all, sizes_that_overflow_are_refused);
  tcase_add_test(all, an_element_of_no_bytes_is_refused);
  tcase_add_test(all, dimensions_without_a_shape_are_refused);
  tcase_add_test(all, sixty_four_dimensions_are_the_most);
  tcase_add_test(all, empty_layouts_are_accepted_whatever_they_say);
  tcase_add_test(all, the_stride_of_an_extent_of_1_says_nothing);
  tcase_add_test(all, a_broadcast_of_a_tebibyte_is_read_at_its_end);
  tcase_add_test(all, no_layout_is_the_whole_buffer_as_bytes);
  tcase_add_test(all, the_callers_layout_is_copied);
  tcase_add_test(all, null_arguments_are_refused);
  tcase_add_test(all, a_buffer_of_another_context_is_refused);
  tcase_add_test(all, an_image_is_refused);
  tcase_add_test(all, each_live_handle_retains_the_buffer_once);
  tcase_add_test(all, offsets_are_relative_to_the_sub_buffer);
  tcase_add_test(all, a_sub_buffer_may_go_before_its_handle);
  tcase_add_test(all, what_leaves_the_sub_buffer_is_refused);
  tcase_add_test(all, the_last_handle_frees_the_sub_buffer);
  tcase_add_test(all, a_buffer_of_any_flags_is_read);
  tcase_add_test(all, a_sub_buffer_of_any_flags_is_read);
  tcase_add_test(all, a_sub_buffer_inherits_that_the_host_may_not_read);
  tcase_add_test(all, a_buffer_on_the_programs_memory_is_read);
  tcase_add_test(all, making_a_handle_reads_nothing);
  return fixture_main(suite, FIXTURE_DEVICE);
}
