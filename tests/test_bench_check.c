/* The benchmarks' check of what they moved: bytes that are right pass, and one
 * wrong byte anywhere, in any layout, does not.  Needs no device. */
#include "config.h"

#include "../bench/contents.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 7, BYTES = 4096, PIECES = 3 };

/* The logical bytes of a layout, gathered by an independent walk: an index is
 * taken apart by division, and each byte comes from a filled memory. */
static unsigned char *gather(const struct bench_layout *layout)
{
  size_t reach = bench_layout_reach(layout);
  size_t bytes = bench_layout_bytes(layout);
  unsigned char *memory = malloc(reach);
  unsigned char *packed = malloc(bytes);

  ck_assert_ptr_nonnull(memory);
  ck_assert_ptr_nonnull(packed);
  bench_fill_memory(memory, 0, reach, SEED);
  for (size_t i = 0; i < bytes; i++) {
    size_t number = i / layout->element;
    size_t place = layout->offset + i % layout->element;

    for (size_t d = layout->ndim; d > 0; d--) {
      ptrdiff_t along = (ptrdiff_t)(number % layout->shape[d - 1]);

      place += (size_t)(along * layout->strides[d - 1]);
      number /= layout->shape[d - 1];
    }
    ck_assert_uint_lt(place, reach);
    packed[i] = memory[place];
  }
  free(memory);
  return packed;
}

/* Whether the walk finds nothing wrong, if the bytes come in pieces that end
 * within elements. */
static bool walks(const struct bench_layout *layout, const unsigned char *data)
{
  struct bench_walk walk = {.layout = layout, .seed = SEED};
  size_t bytes = bench_layout_bytes(layout);
  size_t piece = bytes / PIECES + 1;
  bool right = true;

  for (size_t at = 0; right && at < bytes; at += piece)
    right = bench_walk_on(data + at, bytes - at < piece ? bytes - at : piece,
                          &walk) == 0;
  return right && walk.at == bytes;
}

START_TEST(right_bytes_of_every_layout_pass)
{
  for (size_t i = 0; i < bench_layout_count(); i++) {
    struct bench_layout layout;
    unsigned char *data;

    if (!bench_layout_make(i, BYTES, &layout))
      continue;
    data = gather(&layout);
    ck_assert_msg(walks(&layout, data), "%s", bench_layout_name(i));
    ck_assert(bench_check_memory(bench_layout_name(i), &layout, SEED, data,
                                 bench_layout_bytes(&layout)));
    free(data);
  }
}
END_TEST

START_TEST(one_wrong_byte_of_any_layout_is_found)
{
  for (size_t i = 0; i < bench_layout_count(); i++) {
    struct bench_layout layout;
    unsigned char *data;

    if (!bench_layout_make(i, BYTES, &layout))
      continue;
    data = gather(&layout);
    for (size_t at = 0; at < bench_layout_bytes(&layout); at++) {
      data[at] ^= 1;
      ck_assert_msg(!walks(&layout, data), "%s, byte %zu",
                    bench_layout_name(i), at);
      data[at] ^= 1;
    }
    data[BYTES / 4] ^= 0x80;
    ck_assert(!bench_check_memory(bench_layout_name(i), &layout, SEED, data,
                                  bench_layout_bytes(&layout)));
    free(data);
  }
}
END_TEST

START_TEST(memory_that_was_not_written_is_found)
{
  unsigned char data[BYTES];
  struct bench_layout layout = bench_contiguous(BYTES);

  memset(data, 0xee, sizeof(data));
  ck_assert(!bench_check_memory("untouched", &layout, SEED, data, BYTES));
  bench_fill_memory(data, 0, BYTES, SEED + 1);
  ck_assert(!bench_check_memory("another seed", &layout, SEED, data, BYTES));
}
END_TEST

START_TEST(every_layout_has_its_size_and_no_more)
{
  for (size_t bytes = 1; bytes <= 16 << 20; bytes *= 4)
    for (size_t i = 0; i < bench_layout_count(); i++) {
      struct bench_layout layout;

      if (!bench_layout_make(i, bytes, &layout))
        continue;
      ck_assert_uint_le(bench_layout_bytes(&layout), bytes);
      ck_assert_uint_gt(bench_layout_bytes(&layout), 0);
      ck_assert_uint_ge(layout.ndim, 1);
    }
}
END_TEST

/* The rectangle of a layout, walked as OpenCL does, gives its bytes. */
START_TEST(a_rectangle_reads_what_the_layout_says)
{
  size_t rectangles = 0;

  for (size_t i = 0; i < bench_layout_count(); i++) {
    struct bench_layout layout;
    struct bench_rect rect;
    unsigned char *data;

    if (!bench_layout_make(i, BYTES, &layout) ||
        !bench_layout_rect(&layout, &rect))
      continue;
    data = gather(&layout);
    for (size_t z = 0, at = 0; z < rect.region[2]; z++)
      for (size_t y = 0; y < rect.region[1]; y++)
        for (size_t x = 0; x < rect.region[0]; x++, at++) {
          size_t place = rect.origin[0] + z * rect.slice_pitch +
                         y * rect.row_pitch + x;
          unsigned char word[4];

          bench_fill_memory(word, place - place % 4, 4, SEED);
          ck_assert_uint_eq(data[at], word[place % 4]);
        }
    free(data);
    rectangles++;
  }
  ck_assert_uint_gt(rectangles, 8);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("bench_check");
  TCase *tests = tcase_create("check");
  SRunner *runner;
  int failed;

  tcase_add_test(tests, right_bytes_of_every_layout_pass);
  tcase_add_test(tests, one_wrong_byte_of_any_layout_is_found);
  tcase_add_test(tests, memory_that_was_not_written_is_found);
  tcase_add_test(tests, every_layout_has_its_size_and_no_more);
  tcase_add_test(tests, a_rectangle_reads_what_the_layout_says);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
