/*
 * clb_bytes_prefetch and clb_bytes_wait: what is in flight together, its end in
 * any order, its event, its failure, and what it leaves behind.
 */
#include "config.h"

#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

enum { SIZE = 1 << 20, HANDLES = 8, CHUNK = 65536, LIMIT = 4 * CHUNK };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 29);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  if (buffer != NULL)
    ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

/* Plain reads through staging, whatever the device would do. */
static void stage(void)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.plans = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER;
  options.chunk_size = CHUNK;
  options.staging_limit = LIMIT;
  fixture_options(&options);
}

static cl_event user_event(void)
{
  cl_int code;
  cl_event event = clCreateUserEvent(fx.cl, &code);

  ck_cl(code);
  return event;
}

/* What is enqueued on the queue later waits for the event. */
static cl_event close_gate(cl_command_queue queue)
{
  cl_event gate = user_event();

  ck_cl(clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL));
  return gate;
}

static void open_gate(cl_event gate)
{
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  ck_cl(clReleaseEvent(gate));
}

static cl_int state_of(cl_event event)
{
  cl_int state = CL_QUEUED;

  ck_cl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                       &state, NULL));
  return state;
}

static cl_int end_of(cl_event event)
{
  (void)clWaitForEvents(1, &event);
  WAIT_UNTIL(state_of(event) <= CL_COMPLETE);
  return state_of(event);
}

/* --- Several in flight --------------------------------------------------- */

START_TEST(several_are_in_flight_within_the_staging_limit)
{
  clb_bytes *bytes[HANDLES];
  cl_event done[HANDLES], gate;

  FIXTURE_NEEDS_THREADS();
  stage();
  gate = close_gate(fx.queue);
  for (int i = 0; i < HANDLES; i++) {
    bytes[i] = fixture_handle(buffer, NULL);
    ck_ok(clb_bytes_prefetch(bytes[i], &done[i]));
    ck_assert_int_gt(state_of(done[i]), CL_COMPLETE);
    ck_status(clb_bytes_wait(bytes[i], 0), CLB_TIMEOUT);
  }
  ck_assert_uint_eq(fixture_stats().reads, 0);
  open_gate(gate);
  for (int i = HANDLES - 1; i >= 0; i--) { /* in any order */
    ck_assert_int_eq(end_of(done[i]), CL_COMPLETE);
    ck_ok(clb_bytes_wait(bytes[i], 0));
    expect_read(bytes[i], contents, SIZE);
    ck_cl(clReleaseEvent(done[i]));
    clb_bytes_release(bytes[i]);
  }
  ck_assert_uint_eq(fixture_stats().reads, HANDLES);
  ck_assert_uint_eq(fixture_stats().bytes_read, (uint64_t)HANDLES * SIZE);
  ck_assert_uint_gt(fixture_stats().staging_peak, 0);
  ck_assert_uint_le(fixture_stats().staging_peak, LIMIT);
}
END_TEST

/* The program gets on while the queue is held up: with the last of many on
 * another queue, with nothing that the first ones wait for. */
START_TEST(those_that_wait_hold_nobody_up)
{
  cl_command_queue queue = fixture_queue(0);
  clb_context *free_one = NULL;
  clb_bytes *held[2 * HANDLES], *bytes = NULL;
  cl_event gate, done;

  FIXTURE_NEEDS_THREADS();
  gate = close_gate(fx.queue);
  ck_ok(clb_context_create(queue, NULL, &free_one));
  for (int i = 0; i < 2 * HANDLES; i++) {
    held[i] = fixture_handle(buffer, NULL);
    ck_ok(clb_bytes_prefetch(held[i], NULL));
  }
  ck_ok(clb_bytes_from_buffer(free_one, buffer, NULL, &bytes));
  ck_ok(clb_bytes_prefetch(bytes, &done));
  WAIT_UNTIL(state_of(done) <= CL_COMPLETE);
  ck_assert_int_eq(state_of(done), CL_COMPLETE);
  expect_read(bytes, contents, SIZE);
  ck_cl(clReleaseEvent(done));
  clb_bytes_release(bytes);
  clb_context_release(free_one);
  open_gate(gate);
  for (int i = 0; i < 2 * HANDLES; i++) {
    expect_read(held[i], contents, SIZE);
    clb_bytes_release(held[i]);
  }
  ck_cl(clReleaseCommandQueue(queue));
}
END_TEST

/* Lists of events that end in the opposite order. */
START_TEST(the_last_may_be_the_first_to_end)
{
  clb_bytes *bytes[HANDLES];
  cl_event before[HANDLES], done[HANDLES];

  FIXTURE_NEEDS_THREADS();
  for (int i = 0; i < HANDLES; i++) {
    before[i] = user_event();
    ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 1, &before[i],
                                      &bytes[i]));
    ck_ok(clb_bytes_prefetch(bytes[i], &done[i]));
  }
  for (int i = HANDLES - 1; i >= 0; i--) {
    ck_assert_int_gt(state_of(done[i]), CL_COMPLETE);
    open_gate(before[i]);
    WAIT_UNTIL(state_of(done[i]) <= CL_COMPLETE);
    ck_assert_int_eq(state_of(done[i]), CL_COMPLETE);
  }
  for (int i = 0; i < HANDLES; i++) {
    expect_read(bytes[i], contents, SIZE);
    clb_bytes_release(bytes[i]);
    ck_cl(clReleaseEvent(done[i]));
  }
}
END_TEST

/* --- Releases ------------------------------------------------------------ */

/* The program gives everything back, in this order, before anything ran. */
START_TEST(all_may_be_released_in_flight)
{
  FIXTURE_NEEDS_THREADS();
  for (int round = 0; round < 20; round++) {
    cl_command_queue queue = fixture_queue(0);
    clb_context *context = NULL;
    clb_bytes *bytes = NULL, *kept = NULL;
    cl_mem mem = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
    cl_event gate = close_gate(queue), done[2];

    ck_ok(clb_context_create(queue, NULL, &context));
    ck_ok(clb_bytes_from_buffer(context, mem, NULL, &bytes));
    ck_ok(clb_bytes_from_buffer(context, mem, NULL, &kept));
    ck_ok(clb_bytes_prefetch(bytes, &done[0]));
    ck_ok(clb_bytes_prefetch(kept, &done[1]));
    if (round % 2 == 0)
      open_gate(gate);
    clb_bytes_release(bytes);
    clb_context_release(context);
    ck_cl(clReleaseMemObject(mem));
    ck_cl(clReleaseCommandQueue(queue));
    if (round % 2 != 0)
      open_gate(gate);
    expect_read(kept, contents, SIZE);
    clb_bytes_release(kept);
    for (int i = 0; i < 2; i++) {
      ck_assert_int_eq(end_of(done[i]), CL_COMPLETE);
      ck_cl(clReleaseEvent(done[i]));
    }
  }
}
END_TEST

/* Where nobody is left to look, nothing is read. */
START_TEST(what_was_released_is_not_read)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  cl_event gate, done;

  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  gate = close_gate(fx.queue);
  for (int i = 0; i < 4 * HANDLES; i++) { /* more than there are threads */
    clb_bytes *before = fixture_handle(buffer, NULL);

    ck_ok(clb_bytes_prefetch(before, NULL));
    clb_bytes_release(before);
  }
  ck_ok(clb_bytes_prefetch(bytes, &done));
  clb_bytes_release(bytes);
  open_gate(gate);
  ck_assert_int_eq(end_of(done), CL_COMPLETE);
  ck_cl(clReleaseEvent(done));
  ck_refs(buffer, 1);
  ck_assert_uint_lt(fixture_stats().reads, HANDLES);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
}
END_TEST

/* --- The event ----------------------------------------------------------- */

/* A fill of the buffer waits for the event: what is read is from before. */
static void fill_after(cl_command_queue queue, uint64_t rounds)
{
  for (uint64_t i = 0; i < rounds; i++) {
    unsigned char old = (unsigned char)i, new = (unsigned char)(i + 1);
    clb_bytes *bytes = fixture_handle(buffer, NULL);
    const void *data;
    cl_event done;

    fixture_fill(fx.queue, buffer, old, SIZE, 0, NULL, NULL);
    ck_ok(clb_bytes_prefetch(bytes, &done));
    fixture_fill(queue, buffer, new, SIZE, 1, &done, NULL);
    ck_cl(clFlush(queue));
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    ck_assert_uint_eq(fixture_other(data, old, SIZE), SIZE);
    clb_bytes_release(bytes);
    ck_cl(clReleaseEvent(done));
    ck_cl(clFinish(queue));
  }
}

START_TEST(a_fill_that_waits_for_the_event_is_not_seen)
{
  uint64_t rounds = fixture_number("CLBYTES_TEST_ORDER", 100);

  FIXTURE_NEEDS_THREADS();
  fill_after(fx.queue, rounds);
  stage();
  fill_after(fx.queue, rounds);
}
END_TEST

START_TEST(a_fill_on_another_queue_is_not_seen)
{
  uint64_t rounds = fixture_number("CLBYTES_TEST_ORDER", 100);
  cl_command_queue other;

  FIXTURE_NEEDS_THREADS();
  if (fixture_is("rusticl"))
    FIXTURE_SKIP("a fill whose marker has ended is not always there for other "
                 "queues in this driver, where two have filled the buffer");
  other = fixture_queue(0);
  fill_after(other, rounds);
  stage();
  fill_after(other, rounds);
  ck_cl(clReleaseCommandQueue(other));
}
END_TEST

static void *open_gate_later(void *gate)
{
  fixture_sleep(0.05);
  open_gate(gate);
  return NULL;
}

/* The program sits in clFinish, with whatever lock its driver holds there.
 * [_i]: the prefetch waits for the queue, or for a list of one or two. */
START_TEST(the_program_may_finish_a_queue_that_waits_for_the_event)
{
  clb_bytes *bytes = NULL;
  cl_event gate, done = NULL, list[2];
  pthread_t opener;

  if (fixture_is("Oclgrind"))
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  for (int round = 0; round < 5; round++) {
    gate = user_event();
    for (int i = 0; i < 2; i++)
      ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 1, &gate, &list[i]));
    if (_i == 0)
      bytes = fixture_handle(buffer, NULL);
    else
      ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, NULL,
                                        (cl_uint)_i, list, &bytes));
    ck_ok(clb_bytes_prefetch(bytes, &done));
    fixture_fill(fx.queue, buffer, 0x5f, SIZE, 1, &done, NULL);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_later, gate), 0);
    ck_cl(clFinish(fx.queue));
    ck_assert_int_eq(state_of(done), CL_COMPLETE);
    ck_assert_int_eq(pthread_join(opener, NULL), 0);
    expect_read(bytes, contents, SIZE);
    clb_bytes_release(bytes);
    ck_cl(clReleaseEvent(done));
    for (int i = 0; i < 2; i++)
      ck_cl(clReleaseEvent(list[i]));
    fixture_store(buffer, contents, SIZE);
  }
}
END_TEST

START_TEST(event_of_what_is_there_has_ended)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL), *empty = NULL;
  cl_event done = NULL;

  expect_read(bytes, contents, SIZE);
  ck_ok(clb_bytes_view(bytes, 5, 5, &empty));
  ck_ok(clb_bytes_prefetch(bytes, &done));
  ck_assert_int_eq(state_of(done), CL_COMPLETE);
  ck_cl(clReleaseEvent(done));
  ck_ok(clb_bytes_prefetch(empty, &done));
  ck_assert_int_eq(state_of(done), CL_COMPLETE);
  ck_cl(clReleaseEvent(done));
  ck_ok(clb_bytes_prefetch(empty, NULL));
  ck_ok(clb_bytes_wait(empty, 0));
  ck_assert_uint_eq(fixture_stats().reads, 1);
  clb_bytes_release(empty);
  clb_bytes_release(bytes);
}
END_TEST

/* --- Waiting ------------------------------------------------------------- */

START_TEST(wait_has_a_time_limit)
{
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  double begin;
  cl_event gate;

  ck_ok(clb_bytes_wait(bytes, 0));
  ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  gate = close_gate(fx.queue);
  ck_ok(clb_bytes_prefetch(bytes, NULL));
  begin = fixture_seconds();
  ck_status(clb_bytes_wait(bytes, 0), CLB_TIMEOUT);
  ck_assert_double_lt(fixture_seconds() - begin, 0.05);
  begin = fixture_seconds();
  ck_status(clb_bytes_wait(bytes, 100000000), CLB_TIMEOUT);
  ck_assert_double_ge(fixture_seconds() - begin, 0.1);
  ck_assert_double_lt(fixture_seconds() - begin, 1);
  open_gate(gate);
  ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
  ck_assert_uint_eq(fixture_stats().reads, 1);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_HEAP);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

/* --- Failure ------------------------------------------------------------- */

/* A list that fails under way; what may come between does not hide it. */
START_TEST(failure_is_told_until_an_access_succeeds)
{
  cl_event before = user_event(), done;
  clb_bytes *bytes = NULL;
  const void *data = NULL;

  FIXTURE_NEEDS_THREADS();
  ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 1, &before,
                                    &bytes));
  ck_ok(clb_bytes_set_label(bytes, "lost"));
  ck_ok(clb_bytes_prefetch(bytes, &done));
  ck_status(clb_bytes_wait(bytes, 1000), CLB_TIMEOUT);
  ck_cl(clSetUserEventStatus(before, -5));
  ck_assert_int_lt(end_of(done), 0);
  ck_cl(clReleaseEvent(done));
  for (int i = 0; i < 3; i++) {
    ck_status(clb_bytes_wait(bytes, UINT64_MAX), CLB_DEVICE_ERROR);
    ck_message("lost");
    ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
    ck_status(clb_bytes_read(bytes, CLB_COPY, &data), CLB_DEVICE_ERROR);
    ck_status(clb_bytes_prefetch(bytes, NULL), CLB_DEVICE_ERROR);
  }
  ck_assert_ptr_null(data);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  clb_bytes_release(bytes);
  ck_cl(clReleaseEvent(before));
}
END_TEST

/* host_limit fails it, and then has room. */
START_TEST(next_read_tries_again)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *first, *second;
  cl_event done;

  FIXTURE_NEEDS_THREADS();
  options.host_limit = SIZE + SIZE / 2;
  fixture_options(&options);
  first = fixture_handle(buffer, NULL);
  second = fixture_handle(buffer, NULL);
  expect_read(first, contents, SIZE);
  ck_ok(clb_bytes_prefetch(second, &done));
  ck_assert_int_lt(end_of(done), 0);
  ck_cl(clReleaseEvent(done));
  ck_status(clb_bytes_wait(second, UINT64_MAX), CLB_OUT_OF_MEMORY);
  ck_status(clb_bytes_wait(second, 0), CLB_OUT_OF_MEMORY);
  expect_copy_into(second, contents, SIZE); /* brings nothing to stay */
  expect_stream(second, contents, SIZE);
  ck_status(clb_bytes_wait(second, 0), CLB_OUT_OF_MEMORY);
  ck_ok(clb_bytes_evict(first));
  ck_status(clb_bytes_wait(second, 0), CLB_OUT_OF_MEMORY);
  expect_read(second, contents, SIZE);
  ck_ok(clb_bytes_wait(second, 0));
  ck_ok(clb_bytes_evict(second));
  ck_ok(clb_bytes_wait(second, 0));
  ck_ok(clb_bytes_prefetch(first, NULL));
  ck_ok(clb_bytes_wait(first, UINT64_MAX));
  clb_bytes_release(first);
  clb_bytes_release(second);
}
END_TEST

/* --- Other sources, other threads ---------------------------------------- */

static clb_bytes *file_handle(char *path)
{
  int descriptor = mkstemp(path);
  clb_bytes *bytes = NULL;

  ck_assert_int_ge(descriptor, 0);
  ck_assert_int_eq(write(descriptor, contents, SIZE), SIZE);
  ck_assert_int_eq(close(descriptor), 0);
  ck_ok(clb_bytes_from_file(path, 0, SIZE, &bytes));
  return bytes;
}

START_TEST(files_and_host_memory_are_prefetched_without_an_event)
{
  char path[] = "/tmp/clbytes-prefetch-XXXXXX";
  clb_bytes *file = file_handle(path), *host = NULL, *slice = NULL;
  const void *data;
  size_t count = SIZE / 2;
  ptrdiff_t step = 2;
  cl_event done = NULL;

  ck_ok(clb_bytes_from_host(contents, SIZE, NULL, NULL, &host));
  ck_ok(clb_bytes_slice(host, NULL, &count, &step, &slice));
  ck_status(clb_bytes_prefetch(file, &done), CLB_UNSUPPORTED);
  ck_status(clb_bytes_prefetch(host, &done), CLB_UNSUPPORTED);
  ck_assert_ptr_null(done);
  ck_assert_int_eq(clb_bytes_place(file), CLB_PLACE_FILE);
  ck_ok(clb_bytes_prefetch(file, NULL));
  ck_ok(clb_bytes_prefetch(host, NULL));
  ck_ok(clb_bytes_prefetch(slice, NULL));
  ck_ok(clb_bytes_wait(file, UINT64_MAX));
  ck_ok(clb_bytes_wait(host, UINT64_MAX));
  ck_ok(clb_bytes_wait(slice, UINT64_MAX));
  ck_ok(clb_bytes_read(file, CLB_NO_COPY, &data));
  ck_bytes(data, contents, SIZE);
  ck_ok(clb_bytes_read(slice, CLB_NO_COPY, &data));
  ck_assert_int_eq(((const unsigned char *)data)[77], contents[154]);
  clb_bytes_release(slice);
  clb_bytes_release(host);
  clb_bytes_release(file);
  ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* A file that is changed before its turn: the status is told. */
START_TEST(prefetch_of_a_changed_file_fails)
{
  char path[] = "/tmp/clbytes-prefetch-XXXXXX";
  clb_bytes *file = file_handle(path);

  ck_assert_int_eq(truncate(path, SIZE / 2), 0);
  ck_ok(clb_bytes_prefetch(file, NULL));
  ck_status(clb_bytes_wait(file, UINT64_MAX), CLB_IO_ERROR);
  ck_status(clb_bytes_wait(file, 0), CLB_IO_ERROR);
  clb_bytes_release(file);
  ck_assert_int_eq(unlink(path), 0);
}
END_TEST

static void *read_it(void *bytes)
{
  const void *data = NULL;

  return clb_bytes_read(bytes, CLB_COPY, &data) == CLB_OK
             ? (void *)(uintptr_t)data : NULL;
}

START_TEST(prefetch_while_others_read_transfers_once)
{
  pthread_t reader[HANDLES];
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *data = NULL;
  cl_event gate, done;

  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  gate = close_gate(fx.queue);
  for (int i = 0; i < HANDLES; i++)
    ck_assert_int_eq(pthread_create(&reader[i], NULL, read_it, bytes), 0);
  fixture_sleep(0.05);
  ck_ok(clb_bytes_prefetch(bytes, &done));
  ck_assert_int_gt(state_of(done), CL_COMPLETE);
  open_gate(gate);
  ck_assert_int_eq(end_of(done), CL_COMPLETE);
  ck_cl(clReleaseEvent(done));
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &data));
  ck_bytes(data, contents, SIZE);
  for (int i = 0; i < HANDLES; i++) {
    void *got = NULL;

    ck_assert_int_eq(pthread_join(reader[i], &got), 0);
    ck_assert_ptr_eq(got, data);
  }
  ck_assert_uint_eq(fixture_stats().reads, 1);
  clb_bytes_release(bytes);
}
END_TEST

/* --- What is left -------------------------------------------------------- */

static size_t threads_of_the_process(void)
{
  DIR *folder = opendir("/proc/self/task");
  size_t count = 0;

  if (folder == NULL)
    return 0;
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count - 2;
}

/* Handles of a few bytes, since most of them are released before their turn. */
START_TEST(many_that_nobody_waits_for_keep_memory_flat)
{
  uint64_t count = fixture_number("CLBYTES_TEST_PREFETCHES", 100000);
  clb_layout layout = {1, SHAPE(512), NULL, 1, 64};
  struct growth growth = {.times = count / GROWTH_WINDOWS + 1};

  FIXTURE_NEEDS_THREADS();
  while (growing(&growth)) {
    clb_bytes *bytes = fixture_handle(buffer, &layout);
    cl_event done = NULL;

    ck_ok(clb_bytes_prefetch(bytes, growth.round % 2 == 0 ? &done : NULL));
    if (done != NULL)
      ck_cl(clReleaseEvent(done));
    clb_bytes_release(bytes);
  }
  ck_flat(&growth, 2 << 20);
  ck_refs(buffer, 1);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
}
END_TEST

START_TEST(threads_end_with_the_last_context)
{
  char path[] = "/tmp/clbytes-prefetch-XXXXXX";
  size_t before;

  FIXTURE_NEEDS_THREADS();
  fixture_store(buffer, contents, SIZE); /* the driver's are there now */
  before = threads_of_the_process();
  for (int i = 0; i < 10; i++) {
    clb_bytes *bytes = fixture_handle(buffer, NULL);

    ck_ok(clb_bytes_prefetch(bytes, NULL));
    ck_assert_uint_gt(threads_of_the_process(), before);
    if (i % 2 == 0)
      ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
    clb_context_release(fx.context);
    fx.context = NULL;
    clb_bytes_release(bytes);
    WAIT_UNTIL(threads_of_the_process() <= before);
    ck_assert_uint_le(threads_of_the_process(), before);
    ck_ok(clb_context_create(fx.queue, NULL, &fx.context));
  }
  {
    clb_bytes *file = file_handle(path);

    ck_ok(clb_bytes_prefetch(file, NULL));
    clb_bytes_release(file);
    WAIT_UNTIL(threads_of_the_process() <= before);
    ck_assert_uint_le(threads_of_the_process(), before);
    ck_assert_int_eq(unlink(path), 0);
  }
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("prefetch");
  TCase *all = tcase_create("all");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, several_are_in_flight_within_the_staging_limit);
  tcase_add_test(all, those_that_wait_hold_nobody_up);
  tcase_add_test(all, the_last_may_be_the_first_to_end);
  tcase_add_test(all, all_may_be_released_in_flight);
  tcase_add_test(all, what_was_released_is_not_read);
  tcase_add_test(all, a_fill_that_waits_for_the_event_is_not_seen);
  tcase_add_test(all, a_fill_on_another_queue_is_not_seen);
  tcase_add_loop_test(
      all, the_program_may_finish_a_queue_that_waits_for_the_event, 0, 3);
  tcase_add_test(all, event_of_what_is_there_has_ended);
  tcase_add_test(all, wait_has_a_time_limit);
  tcase_add_test(all, failure_is_told_until_an_access_succeeds);
  tcase_add_test(all, next_read_tries_again);
  tcase_add_test(all, files_and_host_memory_are_prefetched_without_an_event);
  tcase_add_test(all, prefetch_of_a_changed_file_fails);
  tcase_add_test(all, prefetch_while_others_read_transfers_once);
  tcase_add_test(all, many_that_nobody_waits_for_keep_memory_flat);
  tcase_add_test(all, threads_end_with_the_last_context);
  return fixture_main(suite, FIXTURE_DEVICE);
}
