/*
 * test_prefetch_twice.c - a prefetch of a handle that is being accessed: it
 * ends with that access, or brings the bytes where the other did not.
 */
#include "fixture.h"

#include <pthread.h>

enum { LENGTH = 4096, MOST_THREADS = 4 };

static cl_event user_event(void) {
  cl_int err;
  cl_event event = clCreateUserEvent(fx.cl, &err);

  ck_cl(err);
  return event;
}

static clb_bytes *handle_after(cl_mem buffer, cl_event event) {
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 1, &event,
                                    &bytes));
  return bytes;
}

static cl_int end_of(cl_event event) {
  cl_int status;

  (void)clWaitForEvents(1, &event);
  ck_cl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                       &status, NULL));
  return status;
}

/* All threads of the library wait for gates, so that a job that the second
 * prefetch made would run long after the evict. */
START_TEST(an_evict_after_two_prefetches_leaves_the_handle_lazy) {
  unsigned char *data = fixture_bytes(LENGTH, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, LENGTH);
  cl_event first = user_event(), gate = user_event(), done = NULL;
  clb_bytes *bytes, *gated[MOST_THREADS], *last;
  const void *read;
  size_t i;

  FIXTURE_NEEDS_THREADS();
  bytes = handle_after(buffer, first);
  last = fixture_handle(buffer, NULL);
  ck_ok(clb_bytes_prefetch(bytes, NULL));
  for (i = 0; i < MOST_THREADS; i++) {
    gated[i] = handle_after(buffer, gate);
    ck_ok(clb_bytes_prefetch(gated[i], NULL));
  }
  ck_ok(clb_bytes_prefetch(bytes, &done));
  ck_cl(clSetUserEventStatus(first, CL_COMPLETE));
  ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
  ck_assert_int_eq(end_of(done), CL_COMPLETE);
  ck_ok(clb_bytes_evict(bytes));
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  for (i = 0; i < MOST_THREADS; i++)
    ck_ok(clb_bytes_wait(gated[i], UINT64_MAX));
  ck_ok(clb_bytes_prefetch(last, NULL));
  ck_ok(clb_bytes_wait(last, UINT64_MAX));
  ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &read), CLB_WOULD_COPY);
  ck_assert_uint_eq(fixture_stats().reads, 1 + MOST_THREADS + 1);
  for (i = 0; i < MOST_THREADS; i++)
    clb_bytes_release(gated[i]);
  clb_bytes_release(last);
  clb_bytes_release(bytes);
  clReleaseEvent(done);
  clReleaseEvent(gate);
  clReleaseEvent(first);
  clReleaseMemObject(buffer);
  free(data);
}
END_TEST

static void *map_it(void *user) {
  const void *data;

  (void)clb_bytes_read(user, CLB_MAP, &data);
  return NULL;
}

/* Does the context map in place? */
static int maps(cl_mem buffer) {
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *data;
  clb_status status = clb_bytes_read(bytes, CLB_MAP, &data);

  clb_bytes_release(bytes);
  return status == CLB_OK;
}

/* The mapping is no host copy, so the prefetch has to go on by itself; a
 * command that waits for it is before a marker that is put too late. */
START_TEST(a_prefetch_behind_a_mapping_brings_the_bytes) {
  unsigned char *data = fixture_bytes(LENGTH, 2);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, LENGTH);
  cl_mem other = fixture_buffer(CL_MEM_READ_WRITE, data, LENGTH);
  const cl_uchar zero = 0;
  cl_event gate = user_event(), done = NULL, filled = NULL;
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  const void *read;
  pthread_t thread;

  FIXTURE_NEEDS_THREADS();
  if (!maps(buffer))
    FIXTURE_SKIP("this device does not map in place");
  ck_cl(clEnqueueFillBuffer(fx.queue, other, &zero, 1, 0, LENGTH, 1, &gate,
                            NULL));
  ck_assert_int_eq(pthread_create(&thread, NULL, map_it, bytes), 0);
  WAIT_UNTIL(clb_bytes_wait(bytes, 0) == CLB_TIMEOUT);
  ck_ok(clb_bytes_prefetch(bytes, &done));
  ck_cl(clEnqueueFillBuffer(fx.queue, other, &zero, 1, 0, LENGTH, 1, &done,
                            &filled));
  ck_cl(clFlush(fx.queue));
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  ck_assert_int_eq(end_of(filled), CL_COMPLETE);
  ck_assert_int_eq(end_of(done), CL_COMPLETE);
  ck_ok(clb_bytes_wait(bytes, UINT64_MAX));
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &read));
  ck_bytes(read, data, LENGTH);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  clb_bytes_release(bytes);
  clReleaseEvent(filled);
  clReleaseEvent(done);
  clReleaseEvent(gate);
  clReleaseMemObject(other);
  clReleaseMemObject(buffer);
  free(data);
}
END_TEST

static void *read_it(void *user) {
  const void *data;

  return clb_bytes_read(user, CLB_COPY, &data) == CLB_DEVICE_ERROR ? user
                                                                   : NULL;
}

START_TEST(a_prefetch_behind_a_read_that_fails_fails_by_itself) {
  unsigned char *data = fixture_bytes(LENGTH, 3);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, LENGTH);
  cl_event gate = user_event(), done[2] = {NULL, NULL};
  clb_bytes *bytes;
  pthread_t thread;
  void *failed;
  size_t i;

  FIXTURE_NEEDS_THREADS();
  bytes = handle_after(buffer, gate);
  ck_assert_int_eq(pthread_create(&thread, NULL, read_it, bytes), 0);
  WAIT_UNTIL(clb_bytes_wait(bytes, 0) == CLB_TIMEOUT);
  for (i = 0; i < 2; i++)
    ck_ok(clb_bytes_prefetch(bytes, &done[i]));
  ck_cl(clSetUserEventStatus(gate, -5));
  for (i = 0; i < 2; i++)
    ck_assert_int_lt(end_of(done[i]), CL_COMPLETE);
  ck_status(clb_bytes_wait(bytes, UINT64_MAX), CLB_DEVICE_ERROR);
  ck_assert_int_eq(pthread_join(thread, &failed), 0);
  ck_assert_ptr_eq(failed, bytes);
  clb_bytes_release(bytes);
  for (i = 0; i < 2; i++)
    clReleaseEvent(done[i]);
  clReleaseEvent(gate);
  clReleaseMemObject(buffer);
  free(data);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("prefetch twice");
  TCase *all = fixture_case(suite, "all", 30);

  tcase_add_test(all, an_evict_after_two_prefetches_leaves_the_handle_lazy);
  tcase_add_test(all, a_prefetch_behind_a_mapping_brings_the_bytes);
  tcase_add_test(all, a_prefetch_behind_a_read_that_fails_fails_by_itself);
  return fixture_main(suite, FIXTURE_DEVICE);
}
