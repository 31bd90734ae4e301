/* Handles on the caller's memory, and on copies of it. */
#include "config.h"

#include "fixture.h"

enum { SIZE = 3000000 };

struct released {
  int calls;
  void *data, *user;
  clb_bytes *other; /* released in turn */
};

static void on_release(void *data, void *user)
{
  struct released *released = user;

  released->calls++;
  released->data = data;
  released->user = user;
  clb_bytes_release(released->other);
  released->other = NULL;
}

START_TEST(the_callers_memory_is_given_as_it_is)
{
  unsigned char *memory = fixture_bytes(SIZE, 50);
  static const clb_access each[] = {CLB_NO_COPY, CLB_MAP, CLB_COPY};
  clb_bytes *bytes = NULL;
  const void *data;

  for (size_t odd = 0; odd < 3; odd++) {
    ck_ok(clb_bytes_from_host(memory + odd, SIZE - odd, NULL, NULL, &bytes));
    ck_assert_uint_eq(clb_bytes_length(bytes), SIZE - odd);
    ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FOREIGN);
    for (size_t i = 0; i < 3; i++) {
      size_t alignment;

      data = NULL;
      ck_ok(clb_bytes_read(bytes, each[i], &data));
      ck_assert_ptr_eq(data, memory + odd);
      ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FOREIGN);
      alignment = clb_bytes_alignment(bytes);
      ck_assert_uint_ge(alignment, 1);
      ck_assert_uint_eq(alignment & (alignment - 1), 0);
      ck_assert_uint_eq((uintptr_t)data % alignment, 0);
    }
    expect_stream(bytes, memory + odd, SIZE - odd);
    expect_copy_into(bytes, memory + odd, SIZE - odd);
    clb_bytes_release(bytes);
  }
  free(memory);
}
END_TEST

START_TEST(pieces_of_a_stream_are_a_mebibyte_at_most)
{
  unsigned char *memory = fixture_bytes(SIZE, 50);
  struct gathered all = {NULL, 0, 0, 0};
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_host(memory, SIZE, NULL, NULL, &bytes));
  ck_ok(clb_bytes_stream(bytes, 11, SIZE - 11, gather_sink, &all));
  ck_assert_uint_eq(all.length, SIZE - 22);
  ck_bytes(all.data, memory + 11, SIZE - 22);
  ck_assert_uint_le(all.longest, 1 << 20);
  free(all.data);
  clb_bytes_release(bytes);
  free(memory);
}
END_TEST

START_TEST(release_is_called_once_when_nothing_uses_the_data)
{
  unsigned char *memory = fixture_bytes(1000, 51);
  struct released released = {0, NULL, NULL, NULL};
  clb_bytes *bytes = NULL, *view, *inner, *empty;

  ck_ok(clb_bytes_from_host(memory, 1000, on_release, &released, &bytes));
  ck_assert_ptr_eq(clb_bytes_retain(bytes), bytes);
  ck_ok(clb_bytes_view(bytes, 100, 900, &view));
  ck_ok(clb_bytes_view(view, 10, 20, &inner));
  ck_ok(clb_bytes_view(inner, 3, 3, &empty));
  clb_bytes_release(bytes);
  clb_bytes_release(bytes);
  clb_bytes_release(empty);
  clb_bytes_release(view);
  ck_assert_int_eq(released.calls, 0);
  expect_read(inner, memory + 110, 10);
  clb_bytes_release(inner);
  ck_assert_int_eq(released.calls, 1);
  ck_assert_ptr_eq(released.data, memory);
  ck_assert_ptr_eq(released.user, &released);
  free(memory);
}
END_TEST

START_TEST(release_may_call_the_library)
{
  struct released released = {0, NULL, NULL, NULL};
  struct released inner = {0, NULL, NULL, NULL};
  clb_bytes *bytes = NULL;
  char memory[4] = "abc";

  ck_ok(clb_bytes_from_host(memory, 4, on_release, &inner, &released.other));
  ck_ok(clb_bytes_from_host(memory, 4, on_release, &released, &bytes));
  clb_bytes_release(bytes);
  ck_assert_int_eq(released.calls, 1);
  ck_assert_int_eq(inner.calls, 1);
}
END_TEST

START_TEST(release_is_not_called_when_making_fails)
{
  struct released released = {0, NULL, NULL, NULL};
  clb_bytes *bytes = NULL;
  char memory[4];

  ck_status(clb_bytes_from_host(NULL, 1, on_release, &released, &bytes),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_host(memory, 4, on_release, &released, NULL),
            CLB_INVALID_ARGUMENT);
  ck_assert_ptr_null(bytes);
  ck_assert_int_eq(released.calls, 0);
}
END_TEST

START_TEST(no_bytes_need_no_memory)
{
  struct released released = {0, &released, NULL, NULL};
  clb_bytes *bytes = NULL, *copy = NULL;
  const void *data = NULL;
  char memory[4];

  ck_ok(clb_bytes_from_host(NULL, 0, on_release, &released, &bytes));
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_assert_ptr_nonnull(data);
  expect_stream(bytes, "", 0);
  ck_ok(clb_bytes_copy_into(bytes, 0, NULL, 0));
  clb_bytes_release(bytes);
  ck_assert_int_eq(released.calls, 1);
  ck_assert_ptr_null(released.data);
  ck_ok(clb_bytes_from_host(memory, 0, on_release, &released, &bytes));
  clb_bytes_release(bytes);
  ck_assert_int_eq(released.calls, 2);
  ck_assert_ptr_eq(released.data, memory);
  data = NULL;
  ck_ok(clb_bytes_from_copy(NULL, 0, &copy));
  ck_ok(clb_bytes_read(copy, CLB_NO_COPY, &data));
  ck_assert_ptr_nonnull(data);
  clb_bytes_release(copy);
}
END_TEST

START_TEST(a_copy_is_independent_of_what_it_was_made_from)
{
  unsigned char *memory = fixture_bytes(SIZE, 52);
  unsigned char *expected = fixture_bytes(SIZE, 52);
  clb_bytes *bytes = NULL, *view;
  const void *data = NULL, *again = NULL;

  ck_ok(clb_bytes_from_copy(memory, SIZE, &bytes));
  memset(memory, 0, SIZE);
  free(memory);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_HEAP);
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &data));
  ck_bytes(data, expected, SIZE);
  ck_assert_uint_ge(clb_bytes_alignment(bytes), 64);
  ck_assert_uint_eq((uintptr_t)data % clb_bytes_alignment(bytes), 0);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &again));
  ck_assert_ptr_eq(again, data);
  ck_ok(clb_bytes_read(bytes, CLB_MAP, &again));
  ck_assert_ptr_eq(again, data);
  expect_stream(bytes, expected, SIZE);
  ck_ok(clb_bytes_view(bytes, 17, SIZE - 3, &view));
  clb_bytes_release(bytes);
  expect_copy_into(view, expected + 17, SIZE - 20);
  ck_ok(clb_bytes_read(view, CLB_NO_COPY, &data));
  ck_assert_uint_eq((uintptr_t)data % clb_bytes_alignment(view), 0);
  ck_bytes(data, expected + 17, SIZE - 20);
  clb_bytes_release(view);
  free(expected);
}
END_TEST

START_TEST(ranges_outside_are_refused)
{
  clb_bytes *bytes = NULL, *view = NULL;
  char byte[8];
  struct gathered all = {NULL, 0, 0, 0};

  ck_ok(clb_bytes_from_copy("abcd", 4, &bytes));
  ck_status(clb_bytes_copy_into(bytes, 0, byte, 5), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_copy_into(bytes, 5, byte, 0), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_copy_into(bytes, 2, byte, SIZE_MAX), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 3, 2, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 0, 5, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, 5, 5, &view), CLB_OUT_OF_RANGE);
  ck_assert_uint_eq(all.pieces, 0);
  ck_assert_ptr_null(view);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(more_than_there_is_memory_is_out_of_memory)
{
  clb_bytes *bytes = NULL;

  if (!fixture_measures_memory())
    FIXTURE_SKIP("a sanitizer's malloc ends the program");
  ck_status(clb_bytes_from_copy("x", SIZE_MAX, &bytes), CLB_OUT_OF_MEMORY);
  ck_status(clb_bytes_from_copy("x", SIZE_MAX - 64, &bytes),
            CLB_OUT_OF_MEMORY);
  ck_status(clb_bytes_from_copy("x", SIZE_MAX / 2, &bytes),
            CLB_OUT_OF_MEMORY);
  ck_assert_ptr_null(bytes);
}
END_TEST

START_TEST(many_handles_leave_memory_flat)
{
  char memory[100] = {0};
  struct growth growth = {.times = 20000};

  while (growing(&growth)) {
    clb_bytes *bytes = NULL, *view;
    const void *data;

    if (growth.round % 2 == 0)
      ck_ok(clb_bytes_from_copy(memory, 100, &bytes));
    else
      ck_ok(clb_bytes_from_host(memory, 100, NULL, NULL, &bytes));
    ck_ok(clb_bytes_set_label(bytes, "some name"));
    ck_ok(clb_bytes_view(bytes, 1, 50, &view));
    ck_ok(clb_bytes_read(view, CLB_COPY, &data));
    clb_bytes_release(bytes);
    clb_bytes_release(view);
  }
  ck_flat(&growth, 1 << 19);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("host");
  TCase *all = tcase_create("host");

  tcase_set_timeout(all, 60);
  suite_add_tcase(suite, all);
  tcase_add_test(all, the_callers_memory_is_given_as_it_is);
  tcase_add_test(all, pieces_of_a_stream_are_a_mebibyte_at_most);
  tcase_add_test(all, release_is_called_once_when_nothing_uses_the_data);
  tcase_add_test(all, release_may_call_the_library);
  tcase_add_test(all, release_is_not_called_when_making_fails);
  tcase_add_test(all, no_bytes_need_no_memory);
  tcase_add_test(all, a_copy_is_independent_of_what_it_was_made_from);
  tcase_add_test(all, ranges_outside_are_refused);
  tcase_add_test(all, more_than_there_is_memory_is_out_of_memory);
  tcase_add_test(all, many_handles_leave_memory_flat);
  return fixture_main(suite, FIXTURE_HOST);
}
