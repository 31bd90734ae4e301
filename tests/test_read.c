/* clb_bytes_read: access modes, pointers, places, counters, the limit. */
#include "config.h"

#include "fixture.h"

#include <pthread.h>

enum { SIZE = 40000 };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 9);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static const void *read_it(clb_bytes *bytes, clb_access access)
{
  const void *data = NULL;

  ck_ok(clb_bytes_read(bytes, access, &data));
  ck_assert_ptr_nonnull(data);
  return data;
}

static void expect_would_copy(clb_bytes *bytes, clb_access access)
{
  const void *data = contents;

  ck_status(clb_bytes_read(bytes, access, &data), CLB_WOULD_COPY);
  ck_assert_ptr_eq(data, contents);
}

static clb_layout padded(void)
{
  static const size_t shape[2] = {100, 25};
  static const ptrdiff_t strides[2] = {384, 8};
  clb_layout layout = {2, shape, strides, 8, 16};

  return layout;
}

START_TEST(a_copy_is_made_once_and_keeps_its_pointer)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *first;

  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  first = read_it(bytes, CLB_COPY);
  ck_bytes(first, contents, SIZE);
  for (int i = 0; i < 5; i++) {
    ck_assert_ptr_eq(read_it(bytes, CLB_COPY), first);
    ck_assert_ptr_eq(read_it(bytes, CLB_NO_COPY), first);
  }
  ck_assert_uint_eq(fixture_stats().reads, 1);
  ck_assert_uint_eq(fixture_stats().bytes_read, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(no_copy_before_a_copy_does_nothing)
{
  clb_layout layout = padded();
  clb_bytes *bytes[2] = {fixture_handle(buffer, NULL),
                         fixture_handle(buffer, &layout)};

  for (int i = 0; i < 2; i++) {
    expect_would_copy(bytes[i], CLB_NO_COPY);
    ck_assert_int_eq(clb_bytes_place(bytes[i]), CLB_PLACE_DEVICE);
    clb_bytes_release(bytes[i]);
  }
  ck_assert_uint_eq(fixture_stats().reads, 0);
  ck_assert_uint_eq(fixture_stats().link_bytes, 0);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
}
END_TEST

START_TEST(a_failed_argument_changes_nothing)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *data = contents;

  ck_status(clb_bytes_read(NULL, CLB_COPY, &data), CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_read(bytes, CLB_COPY, NULL), CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_read(bytes, (clb_access)3, &data),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_read(bytes, (clb_access)-1, &data),
            CLB_INVALID_ARGUMENT);
  ck_assert_ptr_eq(data, contents);
  expect_would_copy(bytes, CLB_NO_COPY);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(place_and_alignment_are_those_of_the_pointer)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  size_t alignment = clb_bytes_alignment(bytes);
  const void *data;

  ck_assert_uint_eq(alignment, 64);
  data = read_it(bytes, CLB_COPY);
  ck_assert(clb_bytes_place(bytes) == CLB_PLACE_HEAP ||
            clb_bytes_place(bytes) == CLB_PLACE_PINNED);
  alignment = clb_bytes_alignment(bytes);
  ck_assert_uint_ge(alignment, 64);
  ck_assert_uint_eq(alignment & (alignment - 1), 0);
  ck_assert_uint_eq((uintptr_t)data % alignment, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(host_bytes_are_those_that_copies_hold)
{
  clb_layout layout = padded();
  clb_bytes *one = fixture_handle(buffer, NULL);
  clb_bytes *two = fixture_handle(buffer, &layout);
  size_t peak;

  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  read_it(one, CLB_COPY);
  ck_assert_uint_ge(fixture_stats().host_bytes, SIZE);
  ck_assert_uint_lt(fixture_stats().host_bytes, SIZE + 8192);
  read_it(two, CLB_COPY);
  peak = fixture_stats().host_bytes;
  ck_assert_uint_ge(peak, SIZE + 20000);
  clb_bytes_release(one);
  ck_assert_uint_le(fixture_stats().host_bytes, peak - SIZE);
  clb_bytes_release(two);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_assert_uint_eq(fixture_stats().host_peak, peak);
}
END_TEST

START_TEST(a_copy_is_stable_when_the_buffer_changes)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 10);
  const void *data = read_it(bytes, CLB_COPY);

  fixture_store(buffer, other, SIZE);
  ck_bytes(data, contents, SIZE);
  ck_assert_ptr_eq(read_it(bytes, CLB_COPY), data);
  ck_bytes(data, contents, SIZE);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(what_was_enqueued_before_is_seen)
{
  const cl_command_queue_properties order[2] = {
      0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
  cl_command_queue queue = fixture_queue(order[_i]);
  unsigned char *expected = fixture_malloc(SIZE);
  clb_layout layout = padded();
  clb_context *context;

  if (queue == NULL) {
    free(expected);
    FIXTURE_SKIP("no out-of-order queues");
  }
  ck_ok(clb_context_create(queue, NULL, &context));
  for (int strided = 0; strided < 2; strided++)
    for (cl_uchar value = 1; value < 10; value++) {
      clb_bytes *bytes;

      ck_ok(clb_bytes_from_buffer(context, buffer, strided ? &layout : NULL,
                                  &bytes));
      /* Enqueued after the handle was made, before it is read. */
      fixture_fill(queue, buffer, value, SIZE, 0, NULL, NULL);
      memset(expected, value, SIZE);
      expect_read(bytes, expected, clb_bytes_length(bytes));
      clb_bytes_release(bytes);
    }
  clb_context_release(context);
  ck_cl(clReleaseCommandQueue(queue));
  free(expected);
}
END_TEST

START_TEST(a_read_of_nothing_is_a_pointer_and_no_transfer)
{
  clb_layout empty = {2, SHAPE(0, 5), STRIDES(1, 1), 4, 0};
  clb_bytes *bytes = fixture_handle(buffer, &empty);
  const void *data = read_it(bytes, CLB_COPY);

  ck_assert_ptr_eq(read_it(bytes, CLB_COPY), data);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_retained_handle_outlives_the_first_release)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *data = read_it(bytes, CLB_COPY);

  ck_assert_ptr_eq(clb_bytes_retain(bytes), bytes);
  clb_bytes_release(bytes);
  ck_bytes(data, contents, SIZE);
  ck_assert_ptr_eq(read_it(bytes, CLB_NO_COPY), data);
  clb_bytes_release(bytes);
}
END_TEST

/* Sizes around one chunk and far past the ring's limit. */
START_TEST(sizes_about_the_chunk_are_right)
{
  static const size_t lengths[] = {1,    4095, 4096,  4097, 8191,
                                   8192, 8193, 12293, SIZE};
  static const unsigned plans[] = {0, CLB_PLAN_READ, CLB_PLAN_RECT,
                                   CLB_PLAN_GATHER};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.chunk_size = 4096;
  options.staging_limit = 8192;
  options.plans = plans[_i];
  fixture_options(&options);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    clb_layout layout = {1, &lengths[i], NULL, 1, 0};
    clb_bytes *bytes = fixture_handle(buffer, &layout);

    expect_stream(bytes, contents, lengths[i]);
    expect_read(bytes, contents, lengths[i]);
    clb_bytes_release(bytes);
  }
  ck_assert_uint_le(fixture_stats().staging_peak, 8192);
}
END_TEST

/* --- The limit ----------------------------------------------------------- */

START_TEST(past_the_host_limit_is_out_of_memory)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *one, *two, *nothing;
  clb_layout layout = padded(), empty = {1, SHAPE(0), NULL, 1, 0};
  unsigned char *expected = walk(&layout, contents);
  const void *data = NULL;
  uint64_t held;

  options.host_limit = SIZE + 4096;
  fixture_options(&options);
  one = fixture_handle(buffer, NULL);
  two = fixture_handle(buffer, &layout);
  nothing = fixture_handle(buffer, &empty);
  read_it(one, CLB_COPY);
  held = fixture_stats().host_bytes;
  for (int i = 0; i < 3; i++) {
    ck_status(clb_bytes_read(two, CLB_COPY, &data), CLB_OUT_OF_MEMORY);
    ck_assert_ptr_null(data);
    ck_assert_uint_eq(fixture_stats().host_bytes, held);
    expect_would_copy(two, CLB_NO_COPY);
  }
  ck_message("44096");
  /* What keeps nothing, and what is no device handle, is not limited. */
  expect_copy_into(two, expected, 20000);
  expect_stream(two, expected, 20000);
  read_it(nothing, CLB_COPY);
  clb_bytes_release(one);
  expect_read(two, expected, 20000);
  clb_bytes_release(two);
  clb_bytes_release(nothing);
  free(expected);
}
END_TEST

START_TEST(a_tensor_larger_than_the_host_limit_streams)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *bytes;
  const void *data = NULL;

  options.host_limit = 1;
  fixture_options(&options);
  bytes = fixture_handle(buffer, NULL);
  ck_status(clb_bytes_read(bytes, CLB_COPY, &data), CLB_OUT_OF_MEMORY);
  expect_stream(bytes, contents, SIZE);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  clb_bytes_release(bytes);
}
END_TEST

/* --- CLB_MAP ------------------------------------------------------------- */

START_TEST(a_mapping_has_a_pointer_of_its_own)
{
  clb_bytes *bytes;
  const void *mapped, *copy;

  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  bytes = fixture_handle(buffer, NULL);
  mapped = read_it(bytes, CLB_MAP);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_MAPPED);
  ck_assert_uint_eq((uintptr_t)mapped % clb_bytes_alignment(bytes), 0);
  ck_bytes(mapped, contents, SIZE);
  ck_assert_ptr_eq(read_it(bytes, CLB_MAP), mapped);
  /* Only mapped: nothing is on the host that is the handle's own. */
  expect_would_copy(bytes, CLB_NO_COPY);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);

  copy = read_it(bytes, CLB_COPY);
  ck_assert_ptr_ne(copy, mapped);
  ck_bytes(copy, contents, SIZE);
  ck_assert_int_ne(clb_bytes_place(bytes), CLB_PLACE_MAPPED);
  ck_assert_ptr_eq(read_it(bytes, CLB_NO_COPY), copy);
  ck_assert_ptr_eq(read_it(bytes, CLB_MAP), mapped);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_MAPPED);
  ck_bytes(mapped, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_handle_with_a_copy_is_still_mapped)
{
  clb_bytes *bytes;
  const void *mapped, *copy;

  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  bytes = fixture_handle(buffer, NULL);
  copy = read_it(bytes, CLB_COPY);
  mapped = read_it(bytes, CLB_MAP);
  ck_assert_ptr_ne(mapped, copy);
  ck_bytes(mapped, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_copy_outlives_the_mapping_and_a_write)
{
  clb_bytes *mapping, *copied;
  unsigned char *other = fixture_bytes(SIZE, 11);
  const void *copy;

  if (!fixture_maps()) {
    free(other);
    FIXTURE_SKIP("mapping moves bytes on this device");
  }
  mapping = fixture_handle(buffer, NULL);
  read_it(mapping, CLB_MAP);
  ck_ok(clb_bytes_view(mapping, 0, SIZE, &copied));
  expect_would_copy(copied, CLB_NO_COPY);
  copy = read_it(copied, CLB_COPY);
  clb_bytes_release(mapping);
  fixture_store(buffer, other, SIZE);
  ck_bytes(copy, contents, SIZE);
  expect_copy_into(copied, contents, SIZE);
  clb_bytes_release(copied);
  free(other);
}
END_TEST

START_TEST(mapped_views_of_any_start_are_right)
{
  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  for (size_t start = 0; start < 130; start += 13) {
    clb_bytes *bytes = fixture_handle(buffer, NULL), *view;
    size_t length = SIZE - 2 * start;

    ck_ok(clb_bytes_view(bytes, start, start + length, &view));
    ck_bytes(read_it(view, CLB_MAP), contents + start, length);
    ck_bytes(read_it(bytes, CLB_MAP), contents, SIZE);
    clb_bytes_release(bytes);
    ck_bytes(read_it(view, CLB_MAP), contents + start, length);
    clb_bytes_release(view);
  }
}
END_TEST

START_TEST(a_mapping_sees_what_was_enqueued_before)
{
  clb_bytes *bytes;
  cl_uchar value = 0x77;
  const void *mapped;

  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  bytes = fixture_handle(buffer, NULL);
  fixture_fill(fx.queue, buffer, value, SIZE, 0, NULL, NULL);
  mapped = read_it(bytes, CLB_MAP);
  ck_assert_uint_eq(fixture_other(mapped, value, SIZE), SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(strided_handles_cannot_be_mapped)
{
  clb_layout strided = padded();
  clb_layout reversed = {1, SHAPE(4), STRIDES(-4), 4, 12};
  clb_layout broadcast = {1, SHAPE(4), STRIDES(0), 4, 0};
  const clb_layout *layouts[] = {&strided, &reversed, &broadcast};

  for (int i = 0; i < 3; i++) {
    clb_bytes *bytes = fixture_handle(buffer, layouts[i]);

    expect_would_copy(bytes, CLB_MAP);
    ck_assert_uint_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
    read_it(bytes, CLB_COPY);
    expect_would_copy(bytes, CLB_MAP);
    clb_bytes_release(bytes);
  }
  ck_assert_uint_eq(fixture_stats().reads, 3);
}
END_TEST

START_TEST(without_mapping_a_map_would_copy)
{
  clb_bytes *bytes;

  if (fixture_maps())
    FIXTURE_SKIP("this device maps");
  bytes = fixture_handle(buffer, NULL);
  expect_would_copy(bytes, CLB_MAP);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  clb_bytes_release(bytes);
}
END_TEST

/* A buffer that the host may not read has no mapping to read. */
START_TEST(a_buffer_closed_to_the_host_is_not_mapped)
{
  cl_mem closed = fixture_buffer(CL_MEM_HOST_NO_ACCESS, contents, SIZE);
  clb_bytes *bytes = fixture_handle(closed, NULL);

  expect_would_copy(bytes, CLB_MAP);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(closed));
}
END_TEST

/* --- Threads ------------------------------------------------------------- */

enum { THREADS = 64 };

struct reader {
  clb_bytes *bytes;
  pthread_barrier_t *barrier;
  const void *data;
  clb_status status;
};

static void *read_in_a_thread(void *user)
{
  struct reader *reader = user;

  pthread_barrier_wait(reader->barrier);
  reader->status = clb_bytes_read(reader->bytes, CLB_COPY, &reader->data);
  return NULL;
}

START_TEST(threads_that_arrive_together_share_one_transfer)
{
  clb_layout layout = padded();
  unsigned char *expected = walk(&layout, contents);
  struct reader readers[THREADS];
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;

  FIXTURE_NEEDS_THREADS();
  ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
  for (uint64_t round = 1; round <= 20; round++) {
    clb_bytes *bytes = fixture_handle(buffer, &layout);

    for (int i = 0; i < THREADS; i++) {
      readers[i] = (struct reader){bytes, &barrier, NULL, CLB_TIMEOUT};
      ck_assert_int_eq(
          pthread_create(&threads[i], NULL, read_in_a_thread, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
      ck_assert_int_eq(readers[i].status, CLB_OK);
      ck_assert_ptr_eq(readers[i].data, readers[0].data);
    }
    ck_bytes(readers[0].data, expected, 20000);
    ck_assert_uint_eq(fixture_stats().reads, round);
    ck_assert_uint_eq(fixture_stats().bytes_read, round * 20000);
    clb_bytes_release(bytes);
  }
  pthread_barrier_destroy(&barrier);
  free(expected);
}
END_TEST

START_TEST(threads_that_map_together_get_one_pointer)
{
  struct reader readers[THREADS];
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;
  clb_bytes *bytes;
  const void *mapped;

  FIXTURE_NEEDS_THREADS();
  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
  bytes = fixture_handle(buffer, NULL);
  for (int i = 0; i < THREADS; i++) {
    readers[i] = (struct reader){bytes, &barrier, NULL, CLB_TIMEOUT};
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, read_in_a_thread, &readers[i]), 0);
  }
  mapped = read_it(bytes, CLB_MAP);
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(readers[i].status, CLB_OK);
    ck_assert_ptr_eq(readers[i].data, readers[0].data);
  }
  ck_assert_ptr_ne(readers[0].data, mapped);
  ck_assert_ptr_eq(read_it(bytes, CLB_MAP), mapped);
  ck_bytes(readers[0].data, contents, SIZE);
  clb_bytes_release(bytes);
  pthread_barrier_destroy(&barrier);
}
END_TEST

/* Every waiter makes its own try, and each is refused for itself. */
START_TEST(threads_that_fail_together_each_fail)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  struct reader readers[THREADS];
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;
  clb_bytes *bytes;

  FIXTURE_NEEDS_THREADS();
  options.host_limit = 100;
  fixture_options(&options);
  ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
  bytes = fixture_handle(buffer, NULL);
  for (int i = 0; i < THREADS; i++) {
    readers[i] = (struct reader){bytes, &barrier, NULL, CLB_TIMEOUT};
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, read_in_a_thread, &readers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(readers[i].status, CLB_OUT_OF_MEMORY);
    ck_assert_ptr_null(readers[i].data);
  }
  clb_bytes_release(bytes);
  pthread_barrier_destroy(&barrier);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("read");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, a_copy_is_made_once_and_keeps_its_pointer);
  tcase_add_test(all, no_copy_before_a_copy_does_nothing);
  tcase_add_test(all, a_failed_argument_changes_nothing);
  tcase_add_test(all, place_and_alignment_are_those_of_the_pointer);
  tcase_add_test(all, host_bytes_are_those_that_copies_hold);
  tcase_add_test(all, a_copy_is_stable_when_the_buffer_changes);
  tcase_add_loop_test(all, what_was_enqueued_before_is_seen, 0, 2);
  tcase_add_test(all, a_read_of_nothing_is_a_pointer_and_no_transfer);
  tcase_add_test(all, a_retained_handle_outlives_the_first_release);
  tcase_add_loop_test(all, sizes_about_the_chunk_are_right, 0, 4);
  tcase_add_test(all, past_the_host_limit_is_out_of_memory);
  tcase_add_test(all, a_tensor_larger_than_the_host_limit_streams);
  tcase_add_test(all, a_mapping_has_a_pointer_of_its_own);
  tcase_add_test(all, a_handle_with_a_copy_is_still_mapped);
  tcase_add_test(all, a_copy_outlives_the_mapping_and_a_write);
  tcase_add_test(all, mapped_views_of_any_start_are_right);
  tcase_add_test(all, a_mapping_sees_what_was_enqueued_before);
  tcase_add_test(all, strided_handles_cannot_be_mapped);
  tcase_add_test(all, without_mapping_a_map_would_copy);
  tcase_add_test(all, a_buffer_closed_to_the_host_is_not_mapped);
  tcase_add_test(all, threads_that_arrive_together_share_one_transfer);
  tcase_add_test(all, threads_that_map_together_get_one_pointer);
  tcase_add_test(all, threads_that_fail_together_each_fail);
  return fixture_main(suite, FIXTURE_DEVICE);
}
