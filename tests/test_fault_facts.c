/*
 * Drivers and devices that are not what they are here: no pinned memory,
 * another alignment, no compiler; and what the library moves and holds, as
 * OpenCL sees it.
 */
#include "config.h"

#include "fault_jobs.h"

#include <pthread.h>

static void ck_job(struct job *job) {
  clb_status status = job_run(job);

  ck_assert_msg(status == CLB_OK, "%s: %s", job->scenario->name,
                clb_error_message());
}

static clb_stats job_stats(const struct job *job) {
  clb_stats stats;

  clb_context_stats(job->context, &stats, sizeof stats);
  return stats;
}

static int is_snapshot(const struct scenario *scenario) {
  return strstr(scenario->name, "snapshot") != NULL;
}

/* What needs a buffer of the device's, and not to stage in. */
static int needs_memory(const struct scenario *scenario) {
  return is_snapshot(scenario) || scenario->traits & (HIDDEN | DIRECT);
}

/* Runs a scenario that has to succeed and give all back. */
static void run(const struct scenario *scenario) {
  struct fault_held before = fault_count();
  struct job job;

  job_begin(&job, scenario);
  ck_job(&job);
  job_release(&job);
  ck_fault_held(&before, scenario->name);
}

static void run_all(void) {
  for (int i = 0; i < scenario_count; i++)
    run(&scenarios[i]);
}

static void tell_uint(cl_device_info name, cl_uint value) {
  ck_assert_int_eq(fault->device_info(name, &value, sizeof value), 0);
}

/* --- Refusals ------------------------------------------------------------ */

static void refuse_pinned(const struct scenario *scenario) {
  struct job job;
  clb_stats stats;

  job_begin(&job, scenario);
  ck_job(&job);
  stats = job_stats(&job);
  ck_assert_uint_eq(stats.staging_peak, 0);
  if (scenario->plans == NO_MAP)
    ck_assert_msg(stats.pageable_blocks > 0, "%s: not counted", scenario->name);
  job_release(&job);
}

START_TEST(pinned_memory_that_is_refused_is_done_without) {
  fault->refuse_pinned(CL_MEM_OBJECT_ALLOCATION_FAILURE);
  for (int i = 0; i < scenario_count; i++)
    if (!(scenarios[i].traits & DIRECT)) /* the program asks for it itself */
      refuse_pinned(&scenarios[i]);
}
END_TEST

static void refuse_once(const struct scenario *scenario, uint64_t nth) {
  struct job job;

  job_begin(&job, scenario);
  fault_arm("clCreateBuffer", nth, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
  if (job_run(&job) != CLB_OK) {
    /* Only what has to be a buffer may say so. */
    ck_assert_msg(needs_memory(scenario), "%s: %s", scenario->name,
                  clb_error_message());
    ck_job(&job);
  }
  job_release(&job);
  fault->reset();
}

START_TEST(memory_refused_once_is_no_failure) {
  for (int i = 0; i < scenario_count; i++)
    for (uint64_t nth = 1; nth < 4; nth++)
      refuse_once(&scenarios[i], nth);
}
END_TEST

static void run_limited(const struct scenario *scenario) {
  struct job job;

  job_begin(&job, scenario);
  fault->limit_allocation(CHUNK, CL_INVALID_BUFFER_SIZE);
  ck_job(&job);
  fault->limit_allocation(0, CL_SUCCESS);
  job_release(&job);
}

START_TEST(small_largest_allocation_is_enough) {
  cl_ulong most = CHUNK;

  ck_assert_int_eq(
      fault->device_info(CL_DEVICE_MAX_MEM_ALLOC_SIZE, &most, sizeof most), 0);
  for (int i = 0; i < scenario_count; i++)
    /* Those need the tensor's size. */
    if (!is_snapshot(&scenarios[i]) && !(scenarios[i].traits & DIRECT))
      run_limited(&scenarios[i]);
}
END_TEST

/* --- Facts --------------------------------------------------------------- */

START_TEST(any_alignment_gives_the_same_bytes) {
  tell_uint(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8);
  run_all();
  tell_uint(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 8 * 65536);
  run_all();
}
END_TEST

START_TEST(device_with_memory_of_its_own_gives_the_same_bytes) {
  tell_uint(CL_DEVICE_HOST_UNIFIED_MEMORY, CL_FALSE);
  run_all();
  tell_uint(CL_DEVICE_HOST_UNIFIED_MEMORY, CL_TRUE);
  run_all();
}
END_TEST

/* Its link is measured then, and so large accesses are made.  A pack kernel may
 * be built, aside or at once. */
START_TEST(device_that_is_no_processor_gives_the_same_bytes) {
  enum { SIDE = 2048 };
  const size_t shape[2] = {SIDE, SIDE};
  const ptrdiff_t strides[2] = {4, 4 * SIDE};
  const clb_layout turned = {2, shape, strides, 4, 0};
  cl_device_type type = CL_DEVICE_TYPE_GPU;
  unsigned char *memory, *expect, *got;
  cl_mem large;

  FIXTURE_NEEDS_THREADS(); /* and would take minutes for a kernel */
  memory = fixture_bytes(4 * SIDE * SIDE, 3);
  expect = walk(&turned, memory);
  got = fixture_malloc(4 * SIDE * SIDE);
  large = fixture_buffer(CL_MEM_READ_WRITE, memory, 4 * SIDE * SIDE);

  tell_uint(CL_DEVICE_HOST_UNIFIED_MEMORY, CL_FALSE);
  ck_assert_int_eq(fault->device_info(CL_DEVICE_TYPE, &type, sizeof type), 0);
  run_all();
  fixture_options(NULL);
  for (int i = 0; i < 20; i++) {
    clb_bytes *bytes = fixture_handle(large, &turned);

    ck_ok(clb_bytes_copy_into(bytes, 0, got, 4 * SIDE * SIDE));
    ck_bytes(got, expect, 4 * SIDE * SIDE);
    clb_bytes_release(bytes);
  }
  clb_context_release(fx.context);
  fx.context = NULL;
  ck_cl(clReleaseMemObject(large));
  free(memory);
  free(expect);
  free(got);
}
END_TEST

START_TEST(compiler_is_not_needed) {
  tell_uint(CL_DEVICE_COMPILER_AVAILABLE, CL_FALSE);
  fault_arm("clCreateProgram*", 1, 1, FAULT_CALL_FAILS,
            CL_COMPILER_NOT_AVAILABLE);
  for (int i = 0; i < scenario_count; i++)
    if (scenarios[i].plans != CLB_PLAN_PACK)
      run(&scenarios[i]);
}
END_TEST

/* --- What is moved ------------------------------------------------------- */

static void compare_link_bytes(const struct scenario *scenario) {
  struct job job;

  job_begin(&job, scenario);
  fault->reset();
  ck_job(&job);
  ck_assert_msg(job_stats(&job).link_bytes ==
                    fault->moved(NULL, FAULT_READ) +
                        fault->moved(NULL, FAULT_READ_RECT),
                "%s: counted otherwise", scenario->name);
  job_release(&job);
}

START_TEST(link_bytes_are_what_crossed_the_link) {
  /* What is read of a mapping, OpenCL does not see; uploads are not counted. */
  for (int i = 0; i < scenario_count; i++)
    if (scenarios[i].plans == NO_MAP && !(scenarios[i].traits & UPLOADS))
      compare_link_bytes(&scenarios[i]);
}
END_TEST

static clb_bytes *handle(const struct job *job, const clb_layout *layout) {
  clb_bytes *bytes;

  ck_ok(clb_bytes_from_buffer(job->context, job->buffer, layout, &bytes));
  return bytes;
}

/* A context of no mapping, and handles to come. */
static void begin(struct job *job, unsigned plans) {
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  job_begin(job, &scenarios[0]);
  options.plans = plans;
  ck_ok(clb_context_create(fx.queue, &options, &job->context));
}

START_TEST(read_moves_the_bytes_once_and_no_more) {
  static const size_t shape[1] = {LENGTH};
  static const clb_layout layout = {1, shape, NULL, 1, OFFSET};
  struct job job;
  const void *data;
  clb_bytes *bytes;

  begin(&job, NO_MAP);
  fault->reset();
  bytes = handle(&job, &layout);
  ck_assert_uint_eq(fault->calls("clEnqueue*"), 0);
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  ck_assert_uint_eq(fault->calls("clEnqueue*"), 0);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_assert_uint_eq(fault->moved(job.buffer, FAULT_READ), LENGTH);
  fault->reset();
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &data));
  ck_assert_uint_eq(fault->calls(NULL), 0);
  clb_bytes_release(bytes);
  job_release(&job);
}
END_TEST

START_TEST(rect_moves_no_padding) {
  static const size_t shape[2] = {ROWS, ROW};
  static const ptrdiff_t strides[2] = {PITCH, 1};
  static const clb_layout layout = {2, shape, strides, 1, OFFSET};
  struct job job;
  const void *data;
  clb_bytes *bytes;

  begin(&job, CLB_PLAN_RECT);
  bytes = handle(&job, &layout);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_assert_uint_eq(fault->moved(job.buffer, FAULT_READ) +
                        fault->moved(job.buffer, FAULT_READ_RECT),
                    LENGTH);
  clb_bytes_release(bytes);
  job_release(&job);
}
END_TEST

START_TEST(empty_tensor_needs_no_transfer) {
  static const size_t shapes[2][3] = {{0, 5, 1}, {3, 0, 2}};
  static const ptrdiff_t strides[2][3] = {{7, -9, 0}, {0, 0, 4}};
  struct job job;

  begin(&job, 0);
  fault->reset();
  for (int i = 0; i < 2; i++) {
    clb_layout layout = {3, shapes[i], strides[i], 4, 0};
    clb_bytes *bytes = handle(&job, &layout);
    const void *data = NULL;

    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    ck_assert_ptr_nonnull(data);
    for (int move = 0; move < FAULT_MOVES; move++)
      ck_assert_uint_eq(fault->moved(NULL, (fault_move)move), 0);
    clb_bytes_release(bytes);
  }
  job_release(&job);
}
END_TEST

static void *read_it(void *bytes) {
  const void *data;

  return clb_bytes_read(bytes, CLB_COPY, &data) == CLB_OK ? bytes : NULL;
}

START_TEST(of_many_threads_one_transfers) {
  static const size_t shape[1] = {LENGTH};
  static const clb_layout layout = {1, shape, NULL, 1, OFFSET};
  pthread_t threads[8];
  struct job job;
  clb_bytes *bytes;
  void *result;

  FIXTURE_NEEDS_THREADS();
  begin(&job, NO_MAP);
  bytes = handle(&job, &layout);
  for (int i = 0; i < 8; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, read_it, bytes), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], &result);
    ck_assert_ptr_eq(result, bytes);
  }
  ck_assert_uint_eq(fault->moved(NULL, FAULT_READ), LENGTH);
  clb_bytes_release(bytes);
  job_release(&job);
}
END_TEST

/* --- What is held -------------------------------------------------------- */

START_TEST(handles_hold_their_buffer_and_nothing_else) {
  enum { HANDLES = 3000 };
  struct fault_held before;
  struct job job;
  const void *data;
  clb_bytes *bytes;

  begin(&job, 0);
  bytes = handle(&job, NULL);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  clb_bytes_release(bytes);
  before = fault_count();
  for (int i = 0; i < HANDLES; i++) {
    bytes = handle(&job, NULL);
    ck_assert_int_eq(fault->references(FAULT_MEM, job.buffer), 2);
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    clb_bytes_release(bytes);
  }
  ck_fault_held(&before, "after many handles");
  job_release(&job);
}
END_TEST

/* A wait that fails says nothing about the transfer: it may still be running
 * when the call returns, and must not write the caller's memory then. */
START_TEST(failed_copy_into_writes_nothing_later) {
  fault_rule late = {NULL, 1, 1, FAULT_HELD, CL_SUCCESS, 0, 20000000};
  uint64_t nth = 1, struck = 1;

  FIXTURE_NEEDS_UNSET_EVENTS();
  for (; struck > 0; nth++) {
    unsigned char *got = fixture_malloc(LENGTH);
    struct job job;
    clb_bytes *bytes;
    int rule;

    begin(&job, NO_MAP);
    bytes = handle(&job, NULL);
    fault->arm(&late);
    rule = fault_arm("clWaitForEvents", nth, 0, FAULT_CALL_FAILS,
                     CL_OUT_OF_RESOURCES);
    if (clb_bytes_copy_into(bytes, 0, got, LENGTH) != CLB_OK) {
      memset(got, 0xa5, LENGTH);
      for (int i = 0; i < 500 && fault->held() > 0; i++)
        fixture_sleep(0.01);
      fixture_sleep(0.05);
      for (size_t i = 0; i < LENGTH; i++)
        ck_assert_msg(got[i] == 0xa5, "written at %zu after wait %llu", i,
                      (unsigned long long)nth);
    }
    struck = fault->struck(rule);
    fault->reset();
    clb_bytes_release(bytes);
    job_release(&job);
    free(got);
  }
}
END_TEST

/* Some drivers free a buffer that is released while a command on it runs; so
 * one whose end nobody has seen keeps the buffer, whoever lets go. */
static const struct running {
  const char *command;
  unsigned plans;
  uint64_t wait; /* which wait is the command's */
} running[] = {{"clEnqueueReadBuffer", NO_MAP, 2},
               {"clEnqueueMapBuffer", 0, 2},
               {"clEnqueueUnmapMemObject", 0, 3}};

static int ignore(const void *bytes, size_t size, void *user) {
  (void)bytes;
  (void)size;
  (void)user;
  return 0;
}

START_TEST(buffer_is_kept_while_a_command_may_run) {
  const struct running *it = &running[_i];
  struct job job;
  clb_bytes *bytes;

  FIXTURE_NEEDS_UNSET_EVENTS();
  begin(&job, it->plans);
  bytes = handle(&job, NULL);
  ck_ok(clb_bytes_stream(bytes, 0, LENGTH, ignore, NULL));
  if (it->plans == 0 && job_stats(&job).maps == 0) {
    clb_bytes_release(bytes);
    job_release(&job);
    FIXTURE_SKIP("the device does not map in place");
  }
  fault_arm(it->command, 1, 0, FAULT_HELD, CL_SUCCESS);
  fault_arm("clWaitForEvents", it->wait, 1, FAULT_CALL_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_status(clb_bytes_stream(bytes, 0, LENGTH, ignore, NULL),
            CLB_DEVICE_ERROR);
  fault->disarm();
  ck_assert_uint_eq(fault->held(), 1);
  clb_bytes_release(bytes);
  ck_assert_int_ge(fault->references(FAULT_MEM, job.buffer), 2);
  fault->let_go();
  WAIT_UNTIL((clb_context_trim(job.context),
              fault->references(FAULT_MEM, job.buffer) == 1));
  ck_assert_int_eq(fault->references(FAULT_MEM, job.buffer), 1);
  job_release(&job);
}
END_TEST

/* --- Maps ---------------------------------------------------------------- */

static void *map_it(void *bytes) {
  const void *data = NULL;

  return clb_bytes_read(bytes, CLB_MAP, &data) == CLB_OK ? bytes : NULL;
}

/* While a map is on its way in another context.  [_i]: 0: the mapping is ended
 * by a trim, 1: by an access, 2: by the context's last release */
START_TEST(a_release_does_not_wait_for_anothers_map) {
  fault_rule slow = {"clEnqueueMapBuffer", 1, 0, FAULT_HELD, CL_SUCCESS, 0,
                     1000000000};
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, "bytes", 5);
  clb_context *mine = NULL, *other = NULL;
  clb_bytes *mapped = NULL, *again = NULL, *theirs = NULL;
  pthread_t thread;
  const void *data;
  void *done = NULL;
  int64_t maps;
  double start;
  int maps_in_place;

  ck_ok(clb_context_create(fx.queue, NULL, &mine));
  ck_ok(clb_context_create(fx.queue, NULL, &other));
  maps_in_place = fixture_context_maps(mine) && fixture_context_maps(other);
  if (maps_in_place) {
    ck_ok(clb_bytes_from_buffer(mine, buffer, NULL, &mapped));
    ck_ok(clb_bytes_from_buffer(mine, buffer, NULL, &again));
    ck_ok(clb_bytes_from_buffer(other, buffer, NULL, &theirs));
    ck_ok(clb_bytes_read(mapped, CLB_MAP, &data));
    maps = fault->live(FAULT_MAPPING);
    ck_assert_int_ge(fault->arm(&slow), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, map_it, theirs), 0);
    WAIT_UNTIL(fault->held() == 1);
    start = fixture_seconds();
    clb_bytes_release(mapped);
    clb_context_trim(mine);
    ck_assert_double_lt(fixture_seconds() - start, 0.5);
    fault->let_go();
    ck_assert_int_eq(pthread_join(thread, &done), 0);
    ck_assert_ptr_nonnull(done);
    ck_assert_int_eq(fault->live(FAULT_MAPPING), maps + 1);
    if (_i == 0)
      clb_context_trim(mine);
    else if (_i == 1)
      ck_ok(clb_bytes_read(again, CLB_MAP, &data));
    clb_bytes_release(again);
    clb_bytes_release(theirs);
    if (_i < 2)
      ck_assert_int_eq(fault->live(FAULT_MAPPING), maps - 1);
  }
  clb_context_release(mine);
  clb_context_release(other);
  ck_cl(clReleaseMemObject(buffer));
  if (!maps_in_place)
    FIXTURE_SKIP("this device does not map in place");
}
END_TEST

static void add_tests(Suite *suite) {
  TCase *tcase = jobs_case(suite, "refusals", 120);

  tcase_add_test(tcase, pinned_memory_that_is_refused_is_done_without);
  tcase_add_test(tcase, memory_refused_once_is_no_failure);
  tcase_add_test(tcase, small_largest_allocation_is_enough);

  tcase = jobs_case(suite, "facts", 120);
  tcase_add_test(tcase, any_alignment_gives_the_same_bytes);
  tcase_add_test(tcase, device_with_memory_of_its_own_gives_the_same_bytes);
  tcase_add_test(tcase, device_that_is_no_processor_gives_the_same_bytes);
  tcase_add_test(tcase, compiler_is_not_needed);

  tcase = jobs_case(suite, "moved", 120);
  tcase_add_test(tcase, link_bytes_are_what_crossed_the_link);
  tcase_add_test(tcase, read_moves_the_bytes_once_and_no_more);
  tcase_add_test(tcase, rect_moves_no_padding);
  tcase_add_test(tcase, empty_tensor_needs_no_transfer);
  tcase_add_test(tcase, of_many_threads_one_transfers);

  tcase = jobs_case(suite, "held", 120);
  tcase_add_test(tcase, handles_hold_their_buffer_and_nothing_else);
  tcase_add_test(tcase, failed_copy_into_writes_nothing_later);
  tcase_add_loop_test(tcase, buffer_is_kept_while_a_command_may_run, 0,
                      sizeof running / sizeof *running);
  tcase_add_loop_test(tcase, a_release_does_not_wait_for_anothers_map, 0, 3);
}

int main(void) {
  Suite *suite = suite_create("fault facts");

  add_tests(suite);
  return jobs_main(suite);
}
