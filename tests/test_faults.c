/*
 * Every OpenCL call of every kind of access fails in turn: the call that the
 * program made fails with a typed error or gets on without, gives nothing
 * wrong out, leaks nothing, and works when it is tried again.
 */
#include "config.h"

#include "fault_jobs.h"

enum { MOST_CALLS = 5000 };

static void ck_failed(clb_status status, const fault_rule *rule,
                      const char *what) {
  ck_assert_msg(status == CLB_DEVICE_ERROR || status == CLB_OUT_OF_MEMORY,
                "%s: %s", what, clb_status_name(status));
  ck_assert_msg(clb_error_cl() == rule->error, "%s: code %d of %s", what,
                (int)clb_error_cl(), clb_error_message());
}

enum {
  NAMED = 1, /* the message has to name the call that failed */
  ONCE = 2   /* what failed is not tried again */
};

/* A try with a rule, and one without.  Returns how often the rule struck. */
static uint64_t try_rule(const struct scenario *scenario,
                         const fault_rule *rule, unsigned how) {
  struct fault_held before = fault_count();
  struct job job;
  char what[160], call[64];
  clb_status status;
  uint64_t struck;

  job_begin(&job, scenario);
  ck_assert_int_ge(fault->arm(rule), 0);
  status = job_run(&job);
  /* An upload that ends well disarms: the count is gone, the name is not. */
  snprintf(call, sizeof call, "%s", fault->last_struck());
  struck = call[0] != '\0';
  fault->disarm();
  snprintf(what, sizeof what, "%s, call %llu, %s", scenario->name,
           (unsigned long long)rule->nth, call);
  if (status != CLB_OK) {
    ck_assert_msg(struck, "%s: %s with no fault", what, clb_error_message());
    ck_failed(status, rule, what);
    if (how & NAMED)
      ck_assert_msg(strstr(clb_error_message(), call) != NULL,
                    "%s: the message is %s", what, clb_error_message());
    /* A snapshot whose copy failed stays one. */
    if (rule->what == FAULT_EVENT_FAILS && job.snapshot_taken)
      job_release_handle(&job);
    if (!(how & ONCE))
      status = job_run(&job);
    ck_assert_msg(how & ONCE || status == CLB_OK, "%s: tried again: %s", what,
                  clb_error_message());
  }
  if (!(how & ONCE)) /* else something may still be in flight */
    job_settle(&job);
  job_release(&job);
  ck_fault_held(&before, what);
  fault->reset();
  return struck;
}

static void sweep(const struct scenario *scenario, fault_rule rule,
                  unsigned how) {
  rule.nth = 1;
  while (try_rule(scenario, &rule, how) > 0) {
    rule.nth++;
    ck_assert_uint_lt(rule.nth, MOST_CALLS);
  }
  if (!rule.lasting && scenario->plans == NO_MAP)
    ck_assert_msg(rule.nth > (scenario->traits & QUICK ? 1u : 2u),
                  "%s makes no calls", scenario->name);
}

static void sweep_all(fault_rule rule, unsigned how) {
  for (int i = 0; i < scenario_count; i++)
    sweep(&scenarios[i], rule, how);
}

START_TEST(each_call_fails_once) {
  fault_rule rule = {NULL, 1, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES, 0, 0};

  sweep_all(rule, NAMED);
}
END_TEST

START_TEST(all_calls_fail_from_one_on) {
  fault_rule rule = {NULL, 1, 1, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES, 0, 0};

  sweep_all(rule, 0);
  sweep_all(rule, ONCE);
}
END_TEST

START_TEST(each_commands_event_ends_in_error) {
  fault_rule rule = {NULL, 1, 0, FAULT_EVENT_FAILS, CL_OUT_OF_RESOURCES, 1, 0};

  sweep_all(rule, 0);
}
END_TEST

START_TEST(all_events_end_in_error_from_one_on) {
  fault_rule rule = {NULL, 1, 1, FAULT_EVENT_FAILS, CL_OUT_OF_RESOURCES, 1, 0};

  sweep_all(rule, 0);
}
END_TEST

/* An earlier command that failed counts as ended. */
START_TEST(marker_that_fails_says_nothing) {
  for (int i = 0; i < scenario_count; i++) {
    struct job job;

    job_begin(&job, &scenarios[i]);
    fault_arm("clEnqueueMarker*", 1, 1, FAULT_EVENT_FAILS, CL_OUT_OF_RESOURCES);
    ck_assert_msg(job_run(&job) == CLB_OK, "%s: %s", scenarios[i].name,
                  clb_error_message());
    fault->disarm();
    job_release(&job);
  }
}
END_TEST

/* Of two commands whose events are waited for, the first fails; the other has
 * ended, or has not begun. */
static void fail_list(const struct scenario *scenario, int held) {
  struct job job;
  double start;

  fault_arm("clEnqueueMarker*", 1, 0, FAULT_EVENT_FAILS, CL_OUT_OF_RESOURCES);
  if (held)
    fault_arm("clEnqueueMarker*", 2, 0, FAULT_HELD, CL_SUCCESS);
  job_begin(&job, scenario);
  fault->disarm();
  start = fixture_seconds();
  for (int i = 0; i < 3; i++) {
    ck_status(job_run(&job), CLB_DEVICE_ERROR);
    ck_message("wait list");
  }
  ck_assert_double_lt(fixture_seconds() - start, 1.0);
  fault->let_go();
  job_release(&job);
}

START_TEST(failed_event_of_the_list_fails_each_access) {
  for (int i = 0; i < scenario_count; i++)
    if (scenarios[i].traits & LISTED)
      fail_list(&scenarios[i], 0);
}
END_TEST

START_TEST(failed_event_is_seen_while_another_is_pending) {
  FIXTURE_NEEDS_UNSET_EVENTS();
  for (int i = 0; i < scenario_count; i++)
    if (scenarios[i].traits & LISTED)
      fail_list(&scenarios[i], 1);
}
END_TEST

static int stop_and_break(const void *bytes, size_t size, void *user) {
  (void)bytes;
  (void)size;
  (void)user;
  fault_arm(NULL, 1, 1, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
  return 1;
}

/* What goes wrong while cleaning up does not hide why. */
START_TEST(first_cause_is_told) {
  for (int i = 0; i < scenario_count; i++) {
    struct job job;

    job_begin(&job, &scenarios[i]);
    ck_ok(job_run(&job));
    ck_status(clb_bytes_stream(job.bytes, 0, clb_bytes_length(job.bytes),
                               stop_and_break, NULL),
              CLB_CANCELLED);
    ck_message("stopped by the sink");
    ck_assert_int_eq(clb_error_cl(), CL_SUCCESS);
    fault->disarm();
    job_release(&job);
  }
}
END_TEST

START_TEST(each_command_is_late) {
  fault_rule rule = {NULL, 1, 0, FAULT_HELD, CL_SUCCESS, 0, 10000000};

  FIXTURE_NEEDS_UNSET_EVENTS();
  sweep_all(rule, 0);
}
END_TEST

/* --- The short way of small reads ---------------------------------------- */

/* Commands of the last copy of a few bytes. */
static void ck_commands(uint64_t reads, uint64_t markers) {
  ck_assert_uint_eq(fault->calls("clEnqueueReadBuffer"), reads);
  ck_assert_uint_eq(fault->calls("clEnqueueMarkerWithWaitList"), markers);
}

/* One command on the program's own queue; one that ends in error may have
 * failed for another's sake, and is repeated once, behind a marker. */
START_TEST(small_read_that_fails_is_repeated_the_long_way) {
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  unsigned char *contents = fixture_bytes(4096, 3), got[256];
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, 4096);
  clb_context *context;
  clb_bytes *bytes;

  options.plans = NO_MAP;
  ck_ok(clb_context_create(fx.queue, &options, &context));
  ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
  ck_ok(clb_bytes_copy_into(bytes, 0, got, sizeof got));
  fault->reset();
  ck_ok(clb_bytes_copy_into(bytes, 5, got, sizeof got));
  ck_bytes(got, contents + 5, sizeof got);
  ck_commands(1, 0);

  fault->reset();
  fault_arm("clEnqueueReadBuffer", 1, 0, FAULT_EVENT_FAILS,
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  ck_ok(clb_bytes_copy_into(bytes, 7, got, sizeof got));
  ck_bytes(got, contents + 7, sizeof got);
  ck_commands(2, 1);
  ck_assert_str_eq(clb_error_message(), "");

  fault->reset();
  fault_arm("clEnqueueReadBuffer", 1, 1, FAULT_EVENT_FAILS,
            CL_OUT_OF_RESOURCES);
  ck_status(clb_bytes_copy_into(bytes, 9, got, sizeof got), CLB_DEVICE_ERROR);
  ck_commands(2, 1);
  fault->disarm();
  ck_ok(clb_bytes_copy_into(bytes, 9, got, sizeof got));
  ck_bytes(got, contents + 9, sizeof got);
  clb_bytes_release(bytes);
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* --- Giving things back -------------------------------------------------- */

/* Of LeakSanitizer, where the program has it. */
__attribute__((weak)) void __lsan_disable(void);

/* What a device that is lost does: no call works any more.  Memory that a
 * transfer may still write is left alone then, and all that can be asked for is
 * an end. */
static void lose_device(const struct scenario *scenario) {
  fault_rule rule = {NULL, 1, 1, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES, 0, 0};
  clb_status status = CLB_DEVICE_ERROR;

  for (; status != CLB_OK; rule.nth += 7) {
    struct job job;

    job_begin(&job, scenario);
    ck_assert_int_ge(fault->arm(&rule), 0);
    status = job_run(&job);
    job_release(&job);
    fault->reset();
  }
}

START_TEST(context_of_a_lost_device_can_be_released) {
  struct fault_held before = fault_count();

  if (__lsan_disable != NULL)
    __lsan_disable();
  else if (!fixture_measures_memory())
    FIXTURE_SKIP("memory that is left alone looks lost");
  for (int i = 0; i < scenario_count; i++)
    lose_device(&scenarios[i]);
  fault_lost(&before);
}
END_TEST

static void trim(struct job *job) {
  clb_context_trim(job->context);
}

/* Each call of something that gives no status fails; what there was before it
 * works after it, or is gone. */
static void sweep_return(const struct scenario *scenario,
                         void (*give_back)(struct job *job)) {
  uint64_t struck = 1;

  for (uint64_t nth = 1; struck > 0; nth++) {
    struct fault_held before = fault_count();
    struct job job;
    int rule;

    job_begin(&job, scenario);
    ck_ok(job_run(&job));
    rule = fault_arm(NULL, nth, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
    give_back(&job);
    struck = fault->struck(rule);
    fault->disarm();
    if (job.context != NULL) {
      job_release_handle(&job);
      ck_ok(job_run(&job));
      job_settle(&job);
      job_release(&job);
    }
    ck_fault_held(&before, scenario->name);
    fault->reset();
    ck_assert_uint_lt(nth, MOST_CALLS);
  }
}

START_TEST(each_call_of_a_trim_fails) {
  for (int i = 0; i < scenario_count; i++)
    sweep_return(&scenarios[i], trim);
}
END_TEST

START_TEST(each_call_of_a_release_fails) {
  for (int i = 0; i < scenario_count; i++)
    sweep_return(&scenarios[i], job_release);
}
END_TEST

static void add_tests(Suite *suite) {
  TCase *tcase = jobs_case(suite, "every call", 300);

  tcase_add_test(tcase, each_call_fails_once);
  tcase_add_test(tcase, all_calls_fail_from_one_on);
  tcase_add_test(tcase, each_commands_event_ends_in_error);
  tcase_add_test(tcase, all_events_end_in_error_from_one_on);
  tcase_add_test(tcase, marker_that_fails_says_nothing);
  tcase_add_test(tcase, failed_event_of_the_list_fails_each_access);
  tcase_add_test(tcase, failed_event_is_seen_while_another_is_pending);
  tcase_add_test(tcase, first_cause_is_told);
  tcase_add_test(tcase, each_command_is_late);
  tcase_add_test(tcase, small_read_that_fails_is_repeated_the_long_way);
  tcase_add_test(tcase, context_of_a_lost_device_can_be_released);
  tcase_add_test(tcase, each_call_of_a_trim_fails);
  tcase_add_test(tcase, each_call_of_a_release_fails);
}

int main(void) {
  Suite *suite = suite_create("faults");

  add_tests(suite);
  return jobs_main(suite);
}
