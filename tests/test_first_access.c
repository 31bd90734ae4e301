/*
 * The first access of many threads at once, with a failure of the driver's
 * among them; and what materialised handles may hold.
 */
#include "config.h"

#include "fault_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* More than goes by one command on the program's own queue. */
enum { THREADS = 64, SIZE = 4 << 20 };

static unsigned char *contents;
static cl_mem buffer;

/* Plain reads, which the layer's rules are for. */
static void setup(void) {
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  fault_setup();
  options.plans = CLB_PLAN_READ;
  ck_ok(clb_context_create(fx.queue, &options, &fx.context));
  contents = fixture_bytes(SIZE, 64);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void) {
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  clb_context_release(fx.context);
  fx.context = NULL;
  free(contents);
  fault_teardown();
}

static cl_event close_gate(void) {
  cl_int code;
  cl_event gate = clCreateUserEvent(fx.cl, &code);

  ck_cl(code);
  ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 1, &gate, NULL));
  return gate;
}

static void open_gate(cl_event gate) {
  ck_cl(clSetUserEventStatus(gate, CL_COMPLETE));
  ck_cl(clReleaseEvent(gate));
}

/* --- Readers ------------------------------------------------------------- */

/* Each reads until it succeeds, so that who fails is known. */
struct reader {
  pthread_t thread;
  clb_bytes *bytes;
  const void *data;
  int failures;
  clb_status failure;
};

static atomic_int arrived;

static void *read_it(void *user) {
  struct reader *reader = user;
  clb_status status;

  atomic_fetch_add(&arrived, 1);
  while ((status = clb_bytes_read(reader->bytes, CLB_COPY, &reader->data)) !=
             CLB_OK &&
         reader->failures < THREADS) {
    reader->failures++;
    reader->failure = status;
  }
  return NULL;
}

static void start_readers(struct reader *readers, clb_bytes *bytes) {
  atomic_store(&arrived, 0);
  for (int i = 0; i < THREADS; i++) {
    readers[i] = (struct reader){.bytes = bytes};
    ck_assert_int_eq(
        pthread_create(&readers[i].thread, NULL, read_it, &readers[i]), 0);
  }
  WAIT_UNTIL(atomic_load(&arrived) == THREADS);
  fixture_sleep(0.1); /* in the call, one in the driver and the others asleep */
}

/* One pointer for all; how often they failed in all. */
static int join_readers(struct reader *readers) {
  int failures = 0;

  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);
    ck_assert_ptr_eq(readers[i].data, readers[0].data);
    failures += readers[i].failures;
    if (readers[i].failures > 0)
      ck_assert_int_eq(readers[i].failure, CLB_DEVICE_ERROR);
  }
  ck_bytes(readers[0].data, contents, SIZE);
  return failures;
}

/* The first attempts fail, one or some: whoever made one is told, each other
 * makes its own, and one succeeds. */
static void fail_attempts(const char *call, fault_what what, int failing) {
  struct reader readers[THREADS];
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  uint64_t before = fixture_stats().reads;
  cl_event gate = close_gate();

  for (int i = 1; i <= failing; i++) /* a rule is for one call */
    fault_arm(call, (uint64_t)i, 0, what, CL_OUT_OF_RESOURCES);
  start_readers(readers, bytes);
  ck_assert_uint_eq(fault->calls("clEnqueueReadBuffer"), 0);
  ck_assert_uint_eq(fault->calls("clEnqueueMarkerWithWaitList"), 2);
  open_gate(gate);
  ck_assert_int_eq(join_readers(readers), failing);
  ck_assert_uint_eq(fault->calls("clEnqueueReadBuffer"),
                    (uint64_t)failing + 1);
  ck_assert_uint_eq(fixture_stats().reads, before + 1);
  ck_assert_uint_eq(fixture_stats().host_bytes, SIZE);
  clb_bytes_release(bytes);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  fault->reset();
}

START_TEST(after_one_failed_attempt_one_succeeds) {
  FIXTURE_NEEDS_THREADS();
  for (int round = 0; round < 3; round++) {
    fail_attempts("clEnqueueReadBuffer", FAULT_CALL_FAILS, 0);
    fail_attempts("clEnqueueReadBuffer", FAULT_CALL_FAILS, 1);
    fail_attempts("clEnqueueReadBuffer", FAULT_EVENT_FAILS, 1);
    fail_attempts("clEnqueueReadBuffer", FAULT_CALL_FAILS, 5);
  }
}
END_TEST

/* All who are there when the device is lost are told, each once. */
START_TEST(each_waiter_makes_its_own_try) {
  FIXTURE_NEEDS_THREADS();
  fail_attempts("clEnqueueReadBuffer", FAULT_CALL_FAILS, 20);
}
END_TEST

/* --- Sleeping ------------------------------------------------------------ */

/* Seconds of a processor that a clock of one counts. */
static double seconds_of(clockid_t clock) {
  struct timespec used;

  ck_assert_int_eq(clock_gettime(clock, &used), 0);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static double seconds_of_thread(pthread_t thread) {
#ifdef __APPLE__ /* has no clock of a thread */
  (void)thread;
  return 0;
#else
  clockid_t clock;

  ck_assert_int_eq(pthread_getcpuclockid(thread, &clock), 0);
  return seconds_of(clock);
#endif
}

/* The shares of a core that are taken in a while: by the readers that wait, and
 * by all of the process.  Without the reader that takes most: it is the one who
 * transfers, and a driver may spin in it. */
struct load {
  double waiters, all;
};

static struct load load_over(double seconds, const struct reader *readers) {
  double before[THREADS], busiest = 0, used = 0, begin = fixture_seconds();
  double all = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

  for (int i = 0; i < THREADS; i++)
    before[i] = seconds_of_thread(readers[i].thread);
  fixture_sleep(seconds);
  for (int i = 0; i < THREADS; i++) {
    double own = seconds_of_thread(readers[i].thread) - before[i];

    used += own;
    busiest = own > busiest ? own : busiest;
  }
  all = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - all;
  seconds = fixture_seconds() - begin;
  return (struct load){(used - busiest) / seconds, (all - busiest) / seconds};
}

/* The least of some whiles: who does not sleep takes its share in each of them,
 * and what a machine charges now and then to whoever runs does not. */
static struct load least_load(const struct reader *readers) {
  struct load least = load_over(2, readers);

  for (int i = 0; i < 2; i++) {
    struct load load = load_over(2, readers);

    least.waiters = load.waiters < least.waiters ? load.waiters : least.waiters;
    least.all = load.all < least.all ? load.all : least.all;
  }
  return least;
}

START_TEST(waiters_sleep) {
  struct reader readers[THREADS];
  clb_bytes *bytes = fixture_handle(buffer, NULL), *more[8];
  cl_event gate = NULL;
  struct load load;
  double idle;

  if (fixture_is("Oclgrind")) {
    clb_bytes_release(bytes);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  gate = close_gate();
  start_readers(readers, bytes);
  load = least_load(readers);
  ck_assert_msg(load.waiters < 0.05, "%.3f of a core while waiting",
                load.waiters);
  idle = load.all; /* the driver's own; the pool then looks now and then */
  for (int i = 0; i < 8; i++) { /* more than the library has threads */
    more[i] = fixture_handle(buffer, NULL);
    ck_ok(clb_bytes_prefetch(more[i], NULL));
  }
  load = least_load(readers);
  ck_assert_msg(load.waiters < 0.05 && load.all - idle < 0.05,
                "%.3f of a core while waiting, %.3f in all with prefetches",
                load.waiters, load.all - idle);
  open_gate(gate);
  ck_assert_int_eq(join_readers(readers), 0);
  clb_bytes_release(bytes);
  for (int i = 0; i < 8; i++) {
    expect_read(more[i], contents, SIZE);
    clb_bytes_release(more[i]);
  }
}
END_TEST

/* --- Limits -------------------------------------------------------------- */

/* The message has the three numbers. */
static void ck_over_limit(size_t limit, size_t held, size_t asked) {
  size_t numbers[3] = {limit, held, asked};
  char text[32];

  for (int i = 0; i < 3; i++) {
    snprintf(text, sizeof text, "%zu", numbers[i]);
    ck_message(text);
  }
}

START_TEST(read_past_the_limit_fails_and_streams_go_on) {
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *first, *second, *both, *left = NULL, *right = NULL;
  const void *data = NULL;
  void *detached = NULL;
  size_t length = 0;

  options.host_limit = SIZE + SIZE / 2;
  options.plans = CLB_PLAN_READ;
  fixture_options(&options);
  first = fixture_handle(buffer, NULL);
  second = fixture_handle(buffer, NULL);
  expect_read(first, contents, SIZE);
  ck_status(clb_bytes_read(second, CLB_COPY, &data), CLB_OUT_OF_MEMORY);
  ck_over_limit(SIZE + SIZE / 2, SIZE, SIZE);
  ck_assert_ptr_null(data);
  ck_status(clb_bytes_detach(second, &detached, &length), CLB_OUT_OF_MEMORY);
  ck_status(clb_bytes_split(second, SIZE / 2 - 1, CLB_SPLIT_OWNED, &left,
                            &right),
            CLB_OUT_OF_MEMORY);
  ck_over_limit(SIZE + SIZE / 2, SIZE + SIZE / 2 - 1, SIZE / 2 + 1);
  ck_assert_ptr_null(left);
  ck_assert_ptr_null(right);
  ck_assert_uint_eq(fixture_stats().host_bytes, SIZE);
  expect_stream(second, contents, SIZE);
  expect_copy_into(second, contents, SIZE);
  /* A write to what is shared would need more, too, and one alone does not. */
  ck_ok(clb_bytes_clone(first, &both));
  ck_status(clb_bytes_write(both, CLB_COPY, &detached), CLB_OUT_OF_MEMORY);
  ck_assert_ptr_null(detached);
  clb_bytes_release(first);
  ck_ok(clb_bytes_write(both, CLB_COPY, &detached));
  clb_bytes_release(both);
  expect_read(second, contents, SIZE);
  ck_assert_uint_le(fixture_stats().host_peak, SIZE + SIZE / 2);
  clb_bytes_release(second);
}
END_TEST

START_TEST(storage_counts_once) {
  size_t shape[2] = {64, SIZE / 64};
  clb_layout layout = {2, shape, NULL, 1, 0};
  clb_bytes *parent = fixture_handle(buffer, &layout);
  clb_bytes *view = NULL, *clone = NULL, *slice = NULL;
  ptrdiff_t step[2] = {2, 3};
  const void *data, *again;
  void *own;

  expect_read(parent, contents, SIZE);
  ck_ok(clb_bytes_view(parent, 100, 300, &view));
  ck_ok(clb_bytes_clone(parent, &clone));
  ck_ok(clb_bytes_slice(clone, NULL, NULL, step, &slice));
  ck_ok(clb_bytes_read(view, CLB_NO_COPY, &data));
  ck_assert_uint_eq(fixture_stats().host_bytes, SIZE);
  ck_ok(clb_bytes_evict(parent)); /* lets go of its own hold alone */
  ck_ok(clb_bytes_read(view, CLB_NO_COPY, &again));
  ck_assert_ptr_eq(again, data);
  ck_bytes(data, contents + 100, 200);
  ck_assert_uint_eq(fixture_stats().host_bytes, SIZE);
  ck_ok(clb_bytes_write(clone, CLB_COPY, &own));
  ck_assert_uint_eq(fixture_stats().host_bytes, 2 * SIZE);
  clb_bytes_release(clone);
  ck_assert_uint_eq(fixture_stats().host_bytes, SIZE);
  /* A slice of a copy is packed in storage of its own, from the copy. */
  ck_ok(clb_bytes_read(slice, CLB_COPY, &data));
  ck_assert_uint_eq(fixture_stats().reads, 1);
  ck_assert_uint_eq(fixture_stats().host_bytes,
                    SIZE + clb_bytes_length(slice));
  clb_bytes_release(view);
  ck_ok(clb_bytes_evict(slice)); /* the last that held it */
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  expect_read(parent, contents, SIZE);
  ck_assert_uint_eq(fixture_stats().reads, 2);
  clb_bytes_release(slice);
  clb_bytes_release(parent);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("first access");
  TCase *all = tcase_create("all");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, after_one_failed_attempt_one_succeeds);
  tcase_add_test(all, each_waiter_makes_its_own_try);
  tcase_add_test(all, waiters_sleep);
  tcase_add_test(all, read_past_the_limit_fails_and_streams_go_on);
  tcase_add_test(all, storage_counts_once);
  return fault_main(suite);
}
