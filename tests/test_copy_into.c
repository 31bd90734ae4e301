/* clb_bytes_copy_into: any range to any address, and nothing else touched. */
#include "config.h"

#include "fixture.h"

enum { GUARD = 64, LONG = (1 << 20) + 3, SIZE = LONG + 512 };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 12);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

/* Copies a range to 64 k + modulo of a destination whose every other byte is
 * known, and looks at all of them. */
static void expect_exact(clb_bytes *bytes, size_t start, size_t length,
                         size_t modulo, const unsigned char *expected,
                         unsigned char *memory)
{
  unsigned char *dst = memory + GUARD + modulo;

  memset(memory, 0xc3, GUARD + modulo);
  memset(dst, ~expected[start] & 0xff, length);
  memset(dst + length, 0xc3, GUARD);
  ck_ok(clb_bytes_copy_into(bytes, start, dst, length));
  ck_bytes(dst, expected + start, length);
  ck_assert_msg(fixture_other(memory, 0xc3, GUARD + modulo) == GUARD + modulo,
                "bytes before the destination are written");
  ck_assert_msg(fixture_other(dst + length, 0xc3, GUARD) == GUARD,
                "bytes after the destination are written");
}

static unsigned char *aligned_memory(size_t length)
{
  void *memory = NULL;

  ck_assert_int_eq(posix_memalign(&memory, 4096, length), 0);
  return memory;
}

/* [_i]: the plans */
static const unsigned PLANS[] = {0, CLB_PLAN_READ, CLB_PLAN_RECT,
                                 CLB_PLAN_GATHER};

START_TEST(every_start_modulo_64_of_a_long_range_is_exact)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  unsigned char *memory = aligned_memory(SIZE + 3 * GUARD);
  clb_bytes *bytes;

  options.plans = PLANS[_i];
  fixture_options(&options);
  bytes = fixture_handle(buffer, NULL);
  for (size_t start = 0; start < 64; start++) {
    expect_exact(bytes, start, LONG, 16, contents, memory);
    expect_exact(bytes, 64 + start, 7 * start, start, contents, memory);
  }
  for (size_t modulo = 0; modulo < 64; modulo++)
    expect_exact(bytes, 5, 30000, modulo, contents, memory);
  clb_bytes_release(bytes);
  free(memory);
}
END_TEST

START_TEST(every_start_in_a_padded_layout_is_exact)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_layout layout = {2, SHAPE(100, 37), STRIDES(200, 4), 4, 4};
  unsigned char *expected = walk(&layout, contents);
  unsigned char *memory = aligned_memory(SIZE + 3 * GUARD);
  size_t length = walk_length(&layout);
  clb_bytes *bytes;

  options.plans = PLANS[_i];
  options.chunk_size = 4096;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &layout);
  for (size_t start = 0; start < 64; start++) {
    expect_exact(bytes, start, length - start, 16, expected, memory);
    expect_exact(bytes, start, length - 2 * start, start, expected, memory);
    expect_exact(bytes, 148 * 3 + start, start, 1, expected, memory);
  }
  clb_bytes_release(bytes);
  free(expected);
  free(memory);
}
END_TEST

START_TEST(a_range_outside_is_refused_and_nothing_written)
{
  clb_layout layout = {1, SHAPE(100), NULL, 1, 0};
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  unsigned char byte[4] = {1, 2, 3, 4};
  const struct {
    size_t start, length;
  } bad[] = {{100, 1}, {101, 0},        {0, 101},       {99, 2},
             {1, SIZE_MAX}, {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX},
             {SIZE_MAX, 0}, {50, SIZE_MAX - 49}};

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_status(clb_bytes_copy_into(bytes, bad[i].start, byte, bad[i].length),
              CLB_OUT_OF_RANGE);
    ck_assert_str_ne(clb_error_message(), "");
  }
  ck_assert_uint_eq(byte[0], 1);
  ck_assert_uint_eq(byte[3], 4);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(nothing_is_copied_anywhere)
{
  clb_layout layout = {1, SHAPE(100), NULL, 1, 0};
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  unsigned char byte = 9;

  ck_ok(clb_bytes_copy_into(bytes, 0, NULL, 0));
  ck_ok(clb_bytes_copy_into(bytes, 50, &byte, 0));
  ck_ok(clb_bytes_copy_into(bytes, 100, NULL, 0));
  ck_assert_uint_eq(byte, 9);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  ck_status(clb_bytes_copy_into(bytes, 0, NULL, 1), CLB_INVALID_ARGUMENT);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(it_keeps_nothing_and_reads_the_device_each_time)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 13);
  const void *data = NULL;
  struct {
    unsigned char part[100];
  } got;

  ck_ok(clb_bytes_copy_into(bytes, 10, got.part, 100));
  ck_bytes(got.part, contents + 10, 100);
  fixture_store(buffer, other, SIZE);
  ck_ok(clb_bytes_copy_into(bytes, 10, got.part, 100));
  ck_bytes(got.part, other + 10, 100);
  ck_assert_uint_eq(fixture_stats().reads, 2);
  ck_assert_uint_eq(fixture_stats().bytes_read, 200);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(it_uses_the_host_copy_if_there_is_one)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 13);
  unsigned char *memory = aligned_memory(SIZE + 3 * GUARD);

  expect_read(bytes, contents, SIZE);
  fixture_store(buffer, other, SIZE);
  for (size_t start = 0; start < 64; start += 7)
    expect_exact(bytes, start, SIZE - 2 * start, start, contents, memory);
  ck_assert_uint_eq(fixture_stats().reads, 1);
  clb_bytes_release(bytes);
  free(memory);
  free(other);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("copy_into");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, every_start_modulo_64_of_a_long_range_is_exact, 0,
                      4);
  tcase_add_loop_test(all, every_start_in_a_padded_layout_is_exact, 0, 4);
  tcase_add_test(all, a_range_outside_is_refused_and_nothing_written);
  tcase_add_test(all, nothing_is_copied_anywhere);
  tcase_add_test(all, it_keeps_nothing_and_reads_the_device_each_time);
  tcase_add_test(all, it_uses_the_host_copy_if_there_is_one);
  return fixture_main(suite, FIXTURE_DEVICE);
}
