/*
 * The fault layer against OpenCL alone: does it do to a program what fault.h
 * says?
 */
#include "config.h"

#include "fault_fixture.h"

#include <pthread.h>

enum { SIZE = 4096, SECONDS = 20 };

static cl_mem buffer;
static unsigned char *data; /* what is in the buffer */
static unsigned char *got;  /* where reads go; zeros */

static void setup(void) {
  fault_setup();
  data = fixture_bytes(SIZE, 1);
  got = calloc(SIZE, 1);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, data, SIZE);
  fault->reset();
}

static void teardown(void) {
  fault->disarm();
  fault->let_go();
  ck_cl(clReleaseMemObject(buffer));
  fault_teardown();
  free(data);
  free(got);
}

static cl_int read_buffer(cl_bool block, cl_event *event) {
  return clEnqueueReadBuffer(fx.queue, buffer, block, 0, SIZE, got, 0, NULL,
                             event);
}

static cl_int event_info(cl_event event, cl_event_info name) {
  cl_int value = 1;

  ck_cl(clGetEventInfo(event, name, sizeof value, &value, NULL));
  return value;
}

static void ck_nothing_read(void) {
  for (size_t i = 0; i < SIZE; i++)
    ck_assert_int_eq(got[i], 0);
}

/* --- Calls that fail ----------------------------------------------------- */

START_TEST(nth_call_fails_once) {
  int rule = fault_arm("clEnqueueReadBuffer", 2, 0, FAULT_CALL_FAILS,
                       CL_OUT_OF_RESOURCES);

  ck_cl(read_buffer(CL_TRUE, NULL));
  ck_bytes(got, data, SIZE);
  memset(got, 0, SIZE);
  ck_assert_int_eq(read_buffer(CL_TRUE, NULL), CL_OUT_OF_RESOURCES);
  ck_nothing_read();
  ck_cl(read_buffer(CL_TRUE, NULL));
  ck_assert_uint_eq(fault->struck(rule), 1);
  ck_assert_str_eq(fault->last_struck(), "clEnqueueReadBuffer");
  ck_assert_uint_eq(fault->calls("clEnqueueReadBuffer"), 3);
}
END_TEST

START_TEST(all_calls_fail_from_then_on) {
  int rule = fault_arm("clFlush", 2, 1, FAULT_CALL_FAILS,
                       CL_OUT_OF_HOST_MEMORY);

  ck_cl(clFlush(fx.queue));
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(clFlush(fx.queue), CL_OUT_OF_HOST_MEMORY);
  ck_assert_uint_eq(fault->struck(rule), 3);
  ck_cl(clFinish(fx.queue));
  fault->disarm();
  ck_cl(clFlush(fx.queue));
}
END_TEST

START_TEST(any_call_can_be_counted_and_fail) {
  fault_arm(NULL, 3, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
  ck_cl(clFlush(fx.queue));
  ck_cl(clFinish(fx.queue));
  ck_assert_int_eq(clRetainMemObject(buffer), CL_OUT_OF_RESOURCES);
  ck_cl(clFlush(fx.queue));
  ck_assert_uint_eq(fault->calls(NULL), 4);
  ck_assert_str_eq(fault->last_struck(), "clRetainMemObject");
  ck_assert_int_eq(fault->references(FAULT_MEM, buffer), 1);
}
END_TEST

START_TEST(unknown_call_cannot_be_armed) {
  fault_rule rule = {"clNoSuchCall", 1, 0, FAULT_CALL_FAILS, -1, 0, 0};

  ck_assert_int_eq(fault->arm(&rule), -1);
  ck_assert_uint_eq(fault->calls("clNoSuchCall"), 0);
}
END_TEST

START_TEST(calls_can_be_named_by_their_beginning) {
  int rule = fault_arm("clRetain*", 2, 0, FAULT_CALL_FAILS,
                       CL_OUT_OF_RESOURCES);
  fault_rule no_command = {"clRetain*", 1, 0, FAULT_HELD, CL_SUCCESS, 0, 0};

  ck_cl(clRetainMemObject(buffer));
  ck_cl(clReleaseMemObject(buffer));
  ck_assert_int_eq(clRetainContext(fx.cl), CL_OUT_OF_RESOURCES);
  ck_assert_uint_eq(fault->struck(rule), 1);
  ck_assert_uint_eq(fault->calls("clRe*"), 3);
  ck_assert_int_eq(fault->arm(&no_command), -1);
}
END_TEST

START_TEST(making_an_object_fails_with_the_code) {
  cl_int code = CL_SUCCESS;

  fault_arm("clCreateUserEvent", 1, 1, FAULT_CALL_FAILS, CL_OUT_OF_HOST_MEMORY);
  ck_assert_ptr_null(clCreateUserEvent(fx.cl, &code));
  ck_assert_int_eq(code, CL_OUT_OF_HOST_MEMORY);
  ck_assert_ptr_null(clCreateUserEvent(fx.cl, NULL));
  ck_assert_int_eq(fault->live(FAULT_EVENT), 0);
}
END_TEST

/* --- References ---------------------------------------------------------- */

START_TEST(references_are_counted_by_kind_and_object) {
  int64_t before = fault->live(FAULT_MEM);
  cl_event event;

  ck_cl(clRetainMemObject(buffer));
  ck_assert_int_eq(fault->references(FAULT_MEM, buffer), 2);
  ck_assert_int_eq(fault->live(FAULT_MEM), before + 1);
  ck_cl(clReleaseMemObject(buffer));
  ck_assert_int_eq(fault->live(FAULT_MEM), before);
  ck_assert_int_eq(fault->live(FAULT_CONTEXT), 1);
  ck_assert_int_eq(fault->live(FAULT_QUEUE), 1);
  ck_cl(read_buffer(CL_FALSE, &event));
  ck_assert_int_eq(fault->references(FAULT_EVENT, event), 1);
  ck_cl(clWaitForEvents(1, &event));
  ck_cl(clReleaseEvent(event));
  ck_assert_int_eq(fault->live(FAULT_EVENT), 0);
}
END_TEST

START_TEST(release_too_many_is_seen_and_stopped) {
  cl_mem once = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);

  ck_cl(clReleaseMemObject(once));
  ck_assert_uint_eq(fault->over_releases(), 0);
  ck_assert_int_eq(clReleaseMemObject(once), CL_INVALID_MEM_OBJECT);
  ck_assert_uint_eq(fault->over_releases(), 1);
  fault->reset();
}
END_TEST

START_TEST(failed_release_gives_the_reference_up) {
  ck_cl(clRetainMemObject(buffer));
  fault_arm("clReleaseMemObject", 1, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
  ck_assert_int_eq(clReleaseMemObject(buffer), CL_OUT_OF_RESOURCES);
  ck_assert_int_eq(fault->references(FAULT_MEM, buffer), 1);
  ck_assert_uint_eq(fixture_buffer_refs(buffer), 1);
}
END_TEST

static void *retain_and_release(void *unused) {
  (void)unused;
  for (int i = 0; i < 1000; i++) {
    clRetainMemObject(buffer);
    clReleaseMemObject(buffer);
    clRetainContext(fx.cl);
  }
  return NULL;
}

START_TEST(threads_are_counted_together) {
  pthread_t threads[4];

  FIXTURE_NEEDS_THREADS();
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, retain_and_release, NULL), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  ck_assert_int_eq(fault->references(FAULT_MEM, buffer), 1);
  ck_assert_int_eq(fault->references(FAULT_CONTEXT, fx.cl), 4001);
  ck_assert_uint_eq(fault->calls("clRetainMemObject"), 4000);
  for (int i = 0; i < 4000; i++)
    ck_cl(clReleaseContext(fx.cl));
}
END_TEST

/* --- Events that end in error -------------------------------------------- */

START_TEST(event_ends_in_error_and_nothing_is_read) {
  cl_event event;

  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_cl(read_buffer(CL_FALSE, &event));
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_TYPE),
                   CL_COMMAND_READ_BUFFER);
  ck_assert_int_eq(clWaitForEvents(1, &event),
                   CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_OUT_OF_RESOURCES);
  ck_cl(clReleaseEvent(event));
  ck_nothing_read();
  ck_assert_uint_eq(fault->moved(buffer, FAULT_READ), 0);
  ck_cl(read_buffer(CL_TRUE, NULL));
  ck_bytes(got, data, SIZE);
}
END_TEST

START_TEST(blocking_command_returns_the_error_unless_hidden) {
  fault_rule hidden = {"clEnqueueReadBuffer", 2, 0, FAULT_EVENT_FAILS,
                       CL_OUT_OF_RESOURCES, 1, 0};
  cl_event event = NULL;

  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  fault->arm(&hidden);
  ck_assert_int_eq(read_buffer(CL_TRUE, &event), CL_OUT_OF_RESOURCES);
  ck_assert_int_eq(fault->live(FAULT_EVENT), 0);
  ck_cl(read_buffer(CL_TRUE, &event));
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_OUT_OF_RESOURCES);
  ck_cl(clReleaseEvent(event));
  ck_nothing_read();
}
END_TEST

START_TEST(what_waits_for_a_failed_event_fails) {
  cl_event event, second;

  fault_arm("clEnqueueMarkerWithWaitList", 1, 0, FAULT_EVENT_FAILS, -9999);
  ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 0, NULL, &event));
  ck_cl(clEnqueueReadBuffer(fx.queue, buffer, CL_FALSE, 0, SIZE, got, 1,
                            &event, &second));
  ck_cl(clFinish(fx.queue));
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   -9999);
  ck_assert_int_eq(event_info(second, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  ck_nothing_read();
  ck_cl(clReleaseEvent(event));
  ck_cl(clReleaseEvent(second));
}
END_TEST

static void CL_CALLBACK keep_status(cl_event event, cl_int status, void *user) {
  (void)event;
  *(cl_int *)user = status;
}

START_TEST(callback_is_told_the_error) {
  cl_int status = 1;
  cl_event event;

  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_cl(read_buffer(CL_FALSE, &event));
  ck_cl(clSetEventCallback(event, CL_COMPLETE, keep_status, &status));
  clWaitForEvents(1, &event);
  ck_cl(clFinish(fx.queue));
  for (int i = 0; i < 200 && status == 1; i++)
    fixture_sleep(0.01);
  ck_assert_int_eq(status, CL_OUT_OF_RESOURCES);
  ck_cl(clReleaseEvent(event));
}
END_TEST

START_TEST(event_fails_only_when_its_turn_has_come) {
  cl_event event;
  int held = fault_arm("clEnqueueFillBuffer", 1, 0, FAULT_HELD, CL_SUCCESS);

  FIXTURE_NEEDS_UNSET_EVENTS();
  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_cl(clEnqueueFillBuffer(fx.queue, buffer, "\1", 1, 0, SIZE, 0, NULL,
                            NULL));
  ck_assert_uint_eq(fault->struck(held), 1);
  ck_cl(read_buffer(CL_FALSE, &event));
  ck_cl(clFlush(fx.queue));
  ck_assert_int_gt(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_COMPLETE);
  fault->let_go();
  clWaitForEvents(1, &event);
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_OUT_OF_RESOURCES);
  ck_cl(clReleaseEvent(event));
}
END_TEST

START_TEST(failed_command_of_an_unordered_queue_waits_for_nothing_else) {
  cl_command_queue queue;
  cl_event unset, other, event;
  cl_int code;

  FIXTURE_NEEDS_UNSET_EVENTS();
  if (fixture_is("NVIDIA"))
    FIXTURE_SKIP("this driver holds an unordered queue up behind a command "
                 "that waits for an unset event");
  queue = fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  if (queue == NULL)
    FIXTURE_SKIP("no queue that is out of order");
  unset = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  ck_cl(clEnqueueMarkerWithWaitList(queue, 1, &unset, &other));
  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_cl(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, SIZE, got, 0, NULL,
                            &event));
  ck_cl(clFlush(queue));
  clWaitForEvents(1, &event);
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_OUT_OF_RESOURCES);
  ck_assert_int_gt(event_info(other, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_COMPLETE);
  ck_cl(clSetUserEventStatus(unset, CL_COMPLETE));
  ck_cl(clFinish(queue));
  ck_cl(clReleaseEvent(unset));
  ck_cl(clReleaseEvent(other));
  ck_cl(clReleaseEvent(event));
  ck_cl(clReleaseCommandQueue(queue));
}
END_TEST

START_TEST(map_that_fails_maps_nothing) {
  cl_event event;
  cl_int code;
  void *pointer;

  fault_arm("clEnqueueMapBuffer", 1, 1, FAULT_EVENT_FAILS, CL_MAP_FAILURE);
  pointer = clEnqueueMapBuffer(fx.queue, buffer, CL_TRUE, CL_MAP_READ, 0, SIZE,
                               0, NULL, NULL, &code);
  ck_assert_ptr_null(pointer);
  ck_assert_int_eq(code, CL_MAP_FAILURE);
  pointer = clEnqueueMapBuffer(fx.queue, buffer, CL_FALSE, CL_MAP_READ, 0, SIZE,
                               0, NULL, &event, &code);
  ck_cl(code);
  ck_assert_ptr_nonnull(pointer);
  clWaitForEvents(1, &event);
  ck_assert_int_eq(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_MAP_FAILURE);
  ck_cl(clReleaseEvent(event));
  ck_assert_uint_eq(fault->moved(buffer, FAULT_MAP), 0);
}
END_TEST

START_TEST(mappings_are_counted) {
  cl_int code;
  void *pointer = clEnqueueMapBuffer(fx.queue, buffer, CL_TRUE, CL_MAP_READ, 0,
                                     SIZE, 0, NULL, NULL, &code);

  ck_cl(code);
  ck_assert_int_eq(fault->live(FAULT_MAPPING), 1);
  ck_assert_int_eq(fault->references(FAULT_MAPPING, pointer), 1);
  fault_arm("clEnqueueUnmapMemObject", 1, 0, FAULT_CALL_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_assert_int_eq(
      clEnqueueUnmapMemObject(fx.queue, buffer, pointer, 0, NULL, NULL),
      CL_OUT_OF_RESOURCES);
  ck_assert_int_eq(fault->live(FAULT_MAPPING), 0);
  ck_assert_int_eq(
      clEnqueueUnmapMemObject(fx.queue, buffer, pointer, 0, NULL, NULL),
      CL_INVALID_VALUE);
  ck_assert_uint_eq(fault->over_releases(), 1);
  ck_cl(clFinish(fx.queue));
  fault->reset();
}
END_TEST

/* --- Commands that are held ---------------------------------------------- */

START_TEST(held_command_waits_to_be_let_go) {
  cl_event event;

  FIXTURE_NEEDS_UNSET_EVENTS();
  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_HELD, CL_SUCCESS);
  ck_cl(read_buffer(CL_FALSE, &event));
  ck_cl(clFlush(fx.queue));
  fixture_sleep(0.05);
  ck_assert_int_gt(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_COMPLETE);
  ck_nothing_read();
  ck_assert_uint_eq(fault->held(), 1);
  fault->let_go();
  ck_assert_uint_eq(fault->held(), 0);
  ck_cl(clWaitForEvents(1, &event));
  ck_bytes(got, data, SIZE);
  ck_cl(clReleaseEvent(event));
}
END_TEST

START_TEST(held_command_starts_after_its_time) {
  fault_rule rule = {"clEnqueueReadBuffer", 1, 1, FAULT_HELD, 0, 0, 50000000};
  double start = fixture_seconds();

  FIXTURE_NEEDS_UNSET_EVENTS();
  fault->arm(&rule);
  ck_cl(read_buffer(CL_TRUE, NULL));
  ck_assert_double_ge(fixture_seconds() - start, 0.045);
  ck_cl(read_buffer(CL_TRUE, NULL));
  ck_assert_double_ge(fixture_seconds() - start, 0.09);
  ck_bytes(got, data, SIZE);
}
END_TEST

START_TEST(held_marker_still_waits_for_what_is_before_it) {
  cl_command_queue queue;
  cl_event unset, first, event;
  cl_int code;

  FIXTURE_NEEDS_UNSET_EVENTS();
  queue = fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  if (queue == NULL)
    FIXTURE_SKIP("no queue that is out of order");
  unset = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  fault_arm("clEnqueueMarkerWithWaitList", 2, 0, FAULT_HELD, CL_SUCCESS);
  ck_cl(clEnqueueMarkerWithWaitList(queue, 1, &unset, &first));
  ck_cl(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
  ck_cl(clFlush(queue));
  fault->let_go();
  fixture_sleep(0.02);
  ck_assert_int_gt(event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                   CL_COMPLETE);
  ck_cl(clSetUserEventStatus(unset, CL_COMPLETE));
  ck_cl(clWaitForEvents(1, &event));
  ck_cl(clReleaseEvent(unset));
  ck_cl(clReleaseEvent(first));
  ck_cl(clReleaseEvent(event));
  ck_cl(clReleaseCommandQueue(queue));
}
END_TEST

/* --- Memory and facts ---------------------------------------------------- */

static cl_int make_buffer(cl_mem_flags flags, size_t size) {
  cl_int code;
  cl_mem mem = clCreateBuffer(fx.cl, flags, size, NULL, &code);

  if (mem != NULL)
    clReleaseMemObject(mem);
  return code;
}

START_TEST(pinned_memory_is_refused) {
  fault->refuse_pinned(CL_MEM_OBJECT_ALLOCATION_FAILURE);
  ck_assert_int_eq(make_buffer(CL_MEM_ALLOC_HOST_PTR, SIZE),
                   CL_MEM_OBJECT_ALLOCATION_FAILURE);
  ck_cl(make_buffer(CL_MEM_READ_WRITE, SIZE));
  fault->refuse_pinned(CL_SUCCESS);
  ck_cl(make_buffer(CL_MEM_ALLOC_HOST_PTR, SIZE));
}
END_TEST

START_TEST(large_allocations_are_refused) {
  fault->limit_allocation(SIZE, CL_INVALID_BUFFER_SIZE);
  ck_assert_int_eq(make_buffer(0, SIZE + 1), CL_INVALID_BUFFER_SIZE);
  ck_cl(make_buffer(0, SIZE));
  fault->reset();
  ck_cl(make_buffer(0, SIZE + 1));
}
END_TEST

START_TEST(device_says_what_it_is_told_to) {
  cl_uint truth = 0, told, answer = 0;
  size_t size = 0;
  char small;

  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof truth,
                        &truth, NULL));
  told = 2 * truth;
  ck_assert_int_eq(
      fault->device_info(CL_DEVICE_MEM_BASE_ADDR_ALIGN, &told, sizeof told), 0);
  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof answer,
                        &answer, &size));
  ck_assert_uint_eq(answer, told);
  ck_assert_uint_eq(size, sizeof told);
  ck_assert_int_eq(clGetDeviceInfo(fx.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1,
                                   &small, NULL),
                   CL_INVALID_VALUE);
  fault->device_info(CL_DEVICE_MEM_BASE_ADDR_ALIGN, NULL, 0);
  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof answer,
                        &answer, NULL));
  ck_assert_uint_eq(answer, truth);
}
END_TEST

START_TEST(moved_bytes_are_counted_by_buffer_and_kind) {
  cl_mem other = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  size_t zero[3] = {0, 0, 0}, region[3] = {8, 4, 2};
  cl_int code;
  void *pointer;

  ck_cl(clEnqueueReadBuffer(fx.queue, buffer, CL_TRUE, 1, 100, got, 0, NULL,
                            NULL));
  ck_cl(clEnqueueWriteBuffer(fx.queue, other, CL_TRUE, 0, 30, data, 0, NULL,
                             NULL));
  ck_cl(clEnqueueReadBufferRect(fx.queue, buffer, CL_TRUE, zero, zero, region,
                                16, 64, 8, 32, got, 0, NULL, NULL));
  ck_cl(clEnqueueCopyBuffer(fx.queue, buffer, other, 0, 0, 50, 0, NULL, NULL));
  pointer = clEnqueueMapBuffer(fx.queue, other, CL_TRUE, CL_MAP_READ, 0, 70, 0,
                               NULL, NULL, &code);
  ck_cl(code);
  ck_cl(clEnqueueUnmapMemObject(fx.queue, other, pointer, 0, NULL, NULL));
  ck_cl(clFinish(fx.queue));
  ck_assert_uint_eq(fault->moved(buffer, FAULT_READ), 100);
  ck_assert_uint_eq(fault->moved(buffer, FAULT_READ_RECT), 64);
  ck_assert_uint_eq(fault->moved(buffer, FAULT_COPY), 50);
  ck_assert_uint_eq(fault->moved(other, FAULT_COPY), 50);
  ck_assert_uint_eq(fault->moved(NULL, FAULT_COPY), 50);
  ck_assert_uint_eq(fault->moved(other, FAULT_WRITE), 30);
  ck_assert_uint_eq(fault->moved(other, FAULT_MAP), 70);
  ck_assert_uint_eq(fault->moved(buffer, FAULT_MAP), 0);
  fault->reset();
  ck_assert_uint_eq(fault->moved(buffer, FAULT_READ), 0);
  ck_cl(clReleaseMemObject(other));
}
END_TEST

static TCase *add_case(Suite *suite, const char *name) {
  TCase *tcase = tcase_create(name);

  tcase_set_timeout(tcase, SECONDS);
  tcase_add_checked_fixture(tcase, setup, teardown);
  suite_add_tcase(suite, tcase);
  return tcase;
}

static void add_tests(Suite *suite) {
  TCase *tcase = add_case(suite, "calls");

  tcase_add_test(tcase, nth_call_fails_once);
  tcase_add_test(tcase, all_calls_fail_from_then_on);
  tcase_add_test(tcase, any_call_can_be_counted_and_fail);
  tcase_add_test(tcase, unknown_call_cannot_be_armed);
  tcase_add_test(tcase, calls_can_be_named_by_their_beginning);
  tcase_add_test(tcase, making_an_object_fails_with_the_code);

  tcase = add_case(suite, "references");
  tcase_add_test(tcase, references_are_counted_by_kind_and_object);
  tcase_add_test(tcase, release_too_many_is_seen_and_stopped);
  tcase_add_test(tcase, failed_release_gives_the_reference_up);
  tcase_add_test(tcase, threads_are_counted_together);

  tcase = add_case(suite, "events");
  tcase_add_test(tcase, event_ends_in_error_and_nothing_is_read);
  tcase_add_test(tcase, blocking_command_returns_the_error_unless_hidden);
  tcase_add_test(tcase, what_waits_for_a_failed_event_fails);
  tcase_add_test(tcase, callback_is_told_the_error);
  tcase_add_test(tcase, event_fails_only_when_its_turn_has_come);
  tcase_add_test(tcase,
                 failed_command_of_an_unordered_queue_waits_for_nothing_else);
  tcase_add_test(tcase, map_that_fails_maps_nothing);
  tcase_add_test(tcase, mappings_are_counted);

  tcase = add_case(suite, "held");
  tcase_add_test(tcase, held_command_waits_to_be_let_go);
  tcase_add_test(tcase, held_command_starts_after_its_time);
  tcase_add_test(tcase, held_marker_still_waits_for_what_is_before_it);

  tcase = add_case(suite, "memory and facts");
  tcase_add_test(tcase, pinned_memory_is_refused);
  tcase_add_test(tcase, large_allocations_are_refused);
  tcase_add_test(tcase, device_says_what_it_is_told_to);
  tcase_add_test(tcase, moved_bytes_are_counted_by_buffer_and_kind);
}

int main(void) {
  Suite *suite = suite_create("fault layer");

  add_tests(suite);
  return fault_main(suite);
}
