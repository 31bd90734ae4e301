/* clb_bytes_stream: pieces, order, cancelling, limits, sinks that call back. */
#include "config.h"

#include "fixture.h"

#include <pthread.h>

enum { CHUNK = 4096, LIMIT = 8192, SIZE = 10 * LIMIT + 77 };

static unsigned char *contents;
static cl_mem buffer;

/* A small ring, and no plan that could do without it. */
static void setup(void)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  fixture_setup();
  options.chunk_size = CHUNK;
  options.staging_limit = LIMIT;
  options.plans = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER;
  fixture_options(&options);
  contents = fixture_bytes(SIZE, 14);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  if (fx.context != NULL) {
    ck_assert_uint_eq(fixture_stats().host_bytes, 0);
    ck_assert_uint_le(fixture_stats().staging_peak, LIMIT);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static clb_layout padded(void)
{
  static const size_t shape[2] = {150, 75};
  static const ptrdiff_t strides[2] = {500, 4};
  clb_layout layout = {2, shape, strides, 4, 12};

  return layout;
}

static clb_layout transposed(void)
{
  static const size_t shape[2] = {125, 150};
  static const ptrdiff_t strides[2] = {4, 500};
  clb_layout layout = {2, shape, strides, 4, 0};

  return layout;
}

START_TEST(pieces_are_at_most_a_chunk_and_in_order)
{
  clb_layout layouts[2] = {padded(), transposed()};

  for (int i = 0; i < 3; i++) {
    const clb_layout *layout = i < 2 ? &layouts[i] : NULL;
    size_t length = i < 2 ? walk_length(layout) : SIZE;
    unsigned char *expected = i < 2 ? walk(layout, contents) : contents;
    clb_bytes *bytes = fixture_handle(buffer, layout);
    struct gathered all = {NULL, 0, 0, 0};

    ck_ok(clb_bytes_stream(bytes, 0, length, gather_sink, &all));
    ck_assert_uint_eq(all.length, length);
    ck_bytes(all.data, expected, length);
    ck_assert_uint_le(all.longest, CHUNK);
    ck_assert_uint_ge(all.pieces, (length + CHUNK - 1) / CHUNK);
    free(all.data);
    clb_bytes_release(bytes);
    if (i < 2)
      free(expected);
  }
  ck_assert_uint_eq(fixture_stats().reads, 3);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
}
END_TEST

START_TEST(ten_times_the_limit_streams_within_it)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  for (int i = 0; i < 10; i++)
    expect_stream(bytes, contents, SIZE);
  ck_assert_uint_gt(fixture_stats().staging_peak, 0);
  ck_assert_uint_le(fixture_stats().staging_peak, LIMIT);
  ck_assert_uint_le(fixture_stats().staging_bytes, LIMIT);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_read_of_ten_times_the_limit_stays_within_it)
{
  clb_layout layout = transposed();
  unsigned char *expected = walk(&layout, contents);
  clb_bytes *one = fixture_handle(buffer, NULL);
  clb_bytes *two = fixture_handle(buffer, &layout);

  expect_read(one, contents, SIZE);
  expect_read(two, expected, walk_length(&layout));
  ck_assert_uint_le(fixture_stats().staging_peak, LIMIT);
  clb_bytes_release(one);
  clb_bytes_release(two);
  free(expected);
}
END_TEST

START_TEST(every_range_is_exact)
{
  clb_layout layouts[2] = {padded(), transposed()};
  uint64_t random = 99;

  for (int l = 0; l < 2; l++) {
    unsigned char *expected = walk(&layouts[l], contents);
    size_t length = walk_length(&layouts[l]);
    clb_bytes *bytes = fixture_handle(buffer, &layouts[l]);

    for (int i = 0; i < 200; i++) {
      size_t start = fixture_below(&random, length + 1);
      size_t end = start + fixture_below(&random, length - start + 1);
      struct gathered all = {NULL, 0, 0, 0};

      ck_ok(clb_bytes_stream(bytes, start, end, gather_sink, &all));
      ck_assert_uint_eq(all.length, end - start);
      ck_bytes(all.data, expected + start, end - start);
      ck_assert_uint_le(all.longest, CHUNK);
      free(all.data);
    }
    clb_bytes_release(bytes);
    free(expected);
  }
}
END_TEST

START_TEST(an_empty_range_calls_no_sink)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  struct gathered all = {NULL, 0, 0, 0};

  ck_ok(clb_bytes_stream(bytes, 0, 0, gather_sink, &all));
  ck_ok(clb_bytes_stream(bytes, 5, 5, gather_sink, &all));
  ck_ok(clb_bytes_stream(bytes, SIZE, SIZE, gather_sink, &all));
  ck_assert_uint_eq(all.pieces, 0);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_range_outside_calls_no_sink)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  struct gathered all = {NULL, 0, 0, 0};

  ck_status(clb_bytes_stream(bytes, 0, SIZE + 1, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 6, 5, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, SIZE + 1, SIZE + 1, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, SIZE_MAX, SIZE_MAX, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 0, SIZE_MAX, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 0, SIZE, NULL, &all),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_stream(NULL, 0, 0, gather_sink, &all),
            CLB_INVALID_ARGUMENT);
  ck_assert_uint_eq(all.pieces, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_host_copy_is_streamed_without_the_device)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 15);
  struct gathered all = {NULL, 0, 0, 0};

  expect_read(bytes, contents, SIZE);
  fixture_store(buffer, other, SIZE);
  ck_ok(clb_bytes_stream(bytes, 1, SIZE, gather_sink, &all));
  ck_bytes(all.data, contents + 1, SIZE - 1);
  ck_assert_uint_le(all.longest, CHUNK);
  ck_assert_uint_eq(fixture_stats().reads, 1);
  free(all.data);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(each_stream_reads_the_device_anew)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  unsigned char *other = fixture_bytes(SIZE, 15);

  expect_stream(bytes, contents, SIZE);
  fixture_store(buffer, other, SIZE);
  expect_stream(bytes, other, SIZE);
  ck_assert_uint_eq(fixture_stats().reads, 2);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

/* --- Cancelling ---------------------------------------------------------- */

struct stopper {
  size_t pieces, stop_at;
  int value;
};

static int stop_sink(const void *data, size_t length, void *user)
{
  struct stopper *stopper = user;

  (void)data;
  (void)length;
  return ++stopper->pieces == stopper->stop_at ? stopper->value : 0;
}

START_TEST(a_sink_that_stops_is_not_called_again)
{
  clb_layout layouts[2] = {padded(), transposed()};
  static const int values[] = {1, -1, 1 << 30};

  for (int i = 0; i < 3; i++) {
    const clb_layout *layout = i < 2 ? &layouts[i] : NULL;
    size_t length = i < 2 ? walk_length(layout) : SIZE;
    unsigned char *expected = i < 2 ? walk(layout, contents) : contents;
    clb_bytes *bytes = fixture_handle(buffer, layout);

    for (size_t at = 1; at < 9; at++) {
      struct stopper stopper = {0, at, values[at % 3]};

      ck_status(clb_bytes_stream(bytes, 0, length, stop_sink, &stopper),
                CLB_CANCELLED);
      ck_assert_uint_eq(stopper.pieces, at);
    }
    expect_stream(bytes, expected, length);
    clb_bytes_release(bytes);
    if (i < 2)
      free(expected);
  }
}
END_TEST

/* --- Sinks that call the library ----------------------------------------- */

struct caller {
  pthread_t thread;
  clb_bytes *bytes;   /* the one that is streamed */
  clb_bytes *other;   /* another of the same context */
  size_t pieces, length, depth;
};

static int reading_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;
  clb_bytes *view;
  unsigned char part[64];

  ck_assert(pthread_equal(caller->thread, pthread_self()));
  ck_bytes(data, contents + caller->length, length);
  expect_copy_into(caller->other, contents, SIZE);
  expect_stream(caller->other, contents, SIZE);
  ck_ok(clb_bytes_copy_into(caller->bytes, 1, part, sizeof part));
  ck_bytes(part, contents + 1, sizeof part);
  ck_ok(clb_bytes_view(caller->other, 3, 5000, &view));
  expect_read(view, contents + 3, 4997);
  ck_ok(clb_bytes_snapshot(view));
  clb_bytes_release(view);
  view = fixture_handle(buffer, NULL);
  ck_ok(clb_bytes_snapshot(view));
  expect_stream(view, contents, SIZE);
  clb_bytes_release(view);
  clb_context_trim(fx.context);
  fixture_stats();
  /* What was passed is still what it was. */
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  caller->pieces++;
  return 0;
}

START_TEST(a_sink_may_read_and_stream_other_handles)
{
  struct caller caller = {pthread_self(), fixture_handle(buffer, NULL),
                          fixture_handle(buffer, NULL), 0, 0, 0};

  ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, reading_sink, &caller));
  ck_assert_uint_eq(caller.length, SIZE);
  ck_assert_uint_ge(caller.pieces, SIZE / CHUNK);
  clb_bytes_release(caller.bytes);
  clb_bytes_release(caller.other);
}
END_TEST

/* Materialises the very handle that is being streamed. */
static int self_reading_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;

  expect_read(caller->bytes, contents, SIZE);
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  return 0;
}

START_TEST(a_sink_may_read_the_handle_that_it_streams)
{
  struct caller caller = {pthread_self(), fixture_handle(buffer, NULL), NULL,
                          0, 0, 0};

  ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, self_reading_sink, &caller));
  ck_assert_uint_eq(caller.length, SIZE);
  clb_bytes_release(caller.bytes);
}
END_TEST

/* Streams the same handle from its first piece, to a depth. */
static int nesting_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;

  if (caller->depth > 0) {
    struct caller inner = *caller;

    inner.depth--;
    inner.length = 0;
    caller->depth = 0;
    ck_ok(clb_bytes_stream(caller->bytes, 0, SIZE, nesting_sink, &inner));
    ck_assert_uint_eq(inner.length, SIZE);
  }
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  return 0;
}

START_TEST(streams_nest_deeper_than_the_ring_has_blocks)
{
  struct caller caller = {pthread_self(), fixture_handle(buffer, NULL), NULL,
                          0, 0, 20};

  ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, nesting_sink, &caller));
  ck_assert_uint_eq(caller.length, SIZE);
  ck_assert_uint_le(fixture_stats().staging_peak, LIMIT);
  ck_assert_uint_gt(fixture_stats().pageable_blocks, 0);
  clb_bytes_release(caller.bytes);
}
END_TEST

static int uploading_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;
  cl_mem copy = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  unsigned char *got = fixture_malloc(SIZE);

  ck_ok(clb_bytes_upload(caller->other, fx.context, copy, NULL));
  fixture_fetch(copy, got, SIZE);
  ck_bytes(got, contents, SIZE);
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  free(got);
  ck_cl(clReleaseMemObject(copy));
  return 0;
}

START_TEST(a_sink_may_upload)
{
  struct caller caller = {pthread_self(), fixture_handle(buffer, NULL),
                          fixture_handle(buffer, NULL), 0, 0, 0};

  ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, uploading_sink, &caller));
  ck_assert_uint_eq(caller.length, SIZE);
  clb_bytes_release(caller.bytes);
  clb_bytes_release(caller.other);
}
END_TEST

/* The program lets go of everything but the handle while it is streamed. */
static int releasing_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;

  if (caller->pieces++ == 0) {
    clb_context_release(fx.context);
    fx.context = NULL;
    clb_bytes_release(caller->other);
  }
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  return 0;
}

START_TEST(a_sink_may_release_the_programs_references)
{
  struct caller caller = {pthread_self(), fixture_handle(buffer, NULL),
                          fixture_handle(buffer, NULL), 0, 0, 0};

  ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, releasing_sink, &caller));
  ck_assert_uint_eq(caller.length, SIZE);
  clb_bytes_release(caller.bytes);
}
END_TEST

static int last_releasing_sink(const void *data, size_t length, void *user)
{
  struct caller *caller = user;

  clb_bytes_release(caller->bytes);
  caller->bytes = NULL;
  ck_bytes(data, contents + caller->length, length);
  caller->length += length;
  return 0;
}

START_TEST(a_sink_may_release_the_handle_that_it_streams)
{
  struct caller caller = {pthread_self(), NULL, NULL, 0, 0, 0};
  const void *data;
  int on_host;

  for (on_host = 0; on_host < 2; on_host++) {
    caller.bytes = fixture_handle(buffer, NULL);
    caller.length = 0;
    if (on_host)
      ck_ok(clb_bytes_read(caller.bytes, CLB_COPY, &data));
    ck_ok(clb_bytes_stream(caller.bytes, 0, SIZE, last_releasing_sink,
                           &caller));
    ck_assert_uint_eq(caller.length, SIZE);
    ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  }
}
END_TEST

static int failing_inside_sink(const void *data, size_t length, void *user)
{
  clb_bytes *bytes = user;
  unsigned char byte;

  (void)data;
  (void)length;
  ck_status(clb_bytes_copy_into(bytes, SIZE, &byte, 1), CLB_OUT_OF_RANGE);
  return 0;
}

START_TEST(a_failure_inside_a_sink_is_the_sinks)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  ck_ok(clb_bytes_stream(bytes, 0, SIZE, failing_inside_sink, bytes));
  clb_bytes_release(bytes);
}
END_TEST

/* --- Two streams in turn ------------------------------------------------- */

/* Each sink takes one piece, then waits until the other stream has taken one:
 * neither may need a block that the other holds. */
struct turn {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int next;      /* whose turn it is */
  int ended[2];
};

struct side {
  struct turn *turn;
  int index;
  clb_bytes *bytes;
  const unsigned char *expected;
  size_t length;
  clb_status status;
};

static int taking_turns_sink(const void *data, size_t length, void *user)
{
  struct side *side = user;
  struct turn *turn = side->turn;
  int differs = memcmp(data, side->expected + side->length, length) != 0;

  pthread_mutex_lock(&turn->mutex);
  while (turn->next != side->index && !turn->ended[1 - side->index])
    pthread_cond_wait(&turn->changed, &turn->mutex);
  turn->next = 1 - side->index;
  pthread_cond_broadcast(&turn->changed);
  pthread_mutex_unlock(&turn->mutex);
  side->length += length;
  return differs;
}

static void *stream_in_a_thread(void *user)
{
  struct side *side = user;

  side->status = clb_bytes_stream(side->bytes, 0,
                                  clb_bytes_length(side->bytes),
                                  taking_turns_sink, side);
  pthread_mutex_lock(&side->turn->mutex);
  side->turn->ended[side->index] = 1;
  pthread_cond_broadcast(&side->turn->changed);
  pthread_mutex_unlock(&side->turn->mutex);
  return NULL;
}

START_TEST(two_streams_are_consumed_in_turn)
{
  clb_layout layout = transposed();
  unsigned char *expected = walk(&layout, contents);
  struct turn turn = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0,
                      {0, 0}};
  struct side sides[2] = {
      {&turn, 0, NULL, contents, 0, CLB_TIMEOUT},
      {&turn, 1, NULL, expected, 0, CLB_TIMEOUT},
  };
  pthread_t threads[2];

  if (fixture_is("Oclgrind")) {
    free(expected);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  /* One block in all: both need it. */
  if (_i == 1) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

    options.chunk_size = options.staging_limit = CHUNK;
    options.plans = CLB_PLAN_READ | CLB_PLAN_GATHER;
    fixture_options(&options);
  }
  sides[0].bytes = fixture_handle(buffer, NULL);
  sides[1].bytes = fixture_handle(buffer, &layout);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, stream_in_a_thread, &sides[i]), 0);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_status(sides[i].status, CLB_OK);
    ck_assert_uint_eq(sides[i].length, clb_bytes_length(sides[i].bytes));
    clb_bytes_release(sides[i].bytes);
  }
  free(expected);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("stream");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, pieces_are_at_most_a_chunk_and_in_order);
  tcase_add_test(all, ten_times_the_limit_streams_within_it);
  tcase_add_test(all, a_read_of_ten_times_the_limit_stays_within_it);
  tcase_add_test(all, every_range_is_exact);
  tcase_add_test(all, an_empty_range_calls_no_sink);
  tcase_add_test(all, a_range_outside_calls_no_sink);
  tcase_add_test(all, a_host_copy_is_streamed_without_the_device);
  tcase_add_test(all, each_stream_reads_the_device_anew);
  tcase_add_test(all, a_sink_that_stops_is_not_called_again);
  tcase_add_test(all, a_sink_may_read_and_stream_other_handles);
  tcase_add_test(all, a_sink_may_read_the_handle_that_it_streams);
  tcase_add_test(all, streams_nest_deeper_than_the_ring_has_blocks);
  tcase_add_test(all, a_sink_may_upload);
  tcase_add_test(all, a_sink_may_release_the_programs_references);
  tcase_add_test(all, a_sink_may_release_the_handle_that_it_streams);
  tcase_add_test(all, a_failure_inside_a_sink_is_the_sinks);
  tcase_add_loop_test(all, two_streams_are_consumed_in_turn, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
