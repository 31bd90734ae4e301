/* Contexts: options, references, trim, counters, the log. */
#include "config.h"

#include "fixture.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

static const unsigned char SAMPLE[16] = "0123456789abcdef";

/* A context of these options serves a read. */
static void expect_works(const clb_context_options *options)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  clb_bytes *bytes;

  fixture_options(options);
  bytes = fixture_handle(buffer, NULL);
  expect_read(bytes, SAMPLE, sizeof SAMPLE);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
}

static void expect_refused(const clb_context_options *options,
                           clb_status status)
{
  clb_context *out = (clb_context *)&fx;

  ck_status(clb_context_create(fx.queue, options, &out), status);
  ck_assert_ptr_eq(out, (clb_context *)&fx);
}

START_TEST(null_options_and_initialised_ones_are_the_defaults)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  expect_works(NULL);
  expect_works(&options);
}
END_TEST

START_TEST(no_queue_or_no_out_pointer_is_refused)
{
  clb_context *out = NULL;

  ck_status(clb_context_create(NULL, NULL, &out), CLB_INVALID_ARGUMENT);
  ck_assert_ptr_null(out);
  ck_status(clb_context_create(fx.queue, NULL, NULL), CLB_INVALID_ARGUMENT);
}
END_TEST

static void never_called(const char *line, void *user)
{
  (void)line;
  (void)user;
  ck_abort_msg("a member beyond struct_size was read");
}

/* The plan of padded rows where a row of a rect or a run that is picked apart
 * costs so much. */
static void expect_plan(double row_ns, double pick_ns, const char *word)
{
  const size_t shape[] = {64, 64};
  const ptrdiff_t strides[] = {512, 4};
  const clb_layout rows = {2, shape, strides, 4, 0};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, 64 * 512);
  clb_costs costs = CLB_COSTS_INIT;
  clb_bytes *bytes;
  char words[64];

  costs.row_ns = row_ns;
  costs.pick_ns = pick_ns;
  options.plans = CLB_PLAN_RECT | CLB_PLAN_GATHER;
  options.costs = &costs;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &rows);
  ck_ok(clb_bytes_plan(bytes, words, sizeof words));
  ck_assert_msg(strncmp(words, word, strlen(word)) == 0, "%s, not %s", words,
                word);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
}

START_TEST(given_costs_choose_the_plan)
{
  expect_plan(1e6, 1e-3, "gather");
  expect_plan(1e-3, 1e6, "rect");
}
END_TEST

START_TEST(costs_that_are_none_are_refused)
{
  const double wrong[] = {-1, -1e-300, INFINITY, NAN};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_costs costs = CLB_COSTS_INIT;
  clb_context *out;

  options.costs = &costs;
  for (int i = 0; i < 4; i++) {
    costs.link_gbs = wrong[i];
    ck_status(clb_context_create(fx.queue, &options, &out),
              CLB_INVALID_ARGUMENT);
    ck_message("no cost");
  }
  costs.link_gbs = 0;
  costs.struct_size = 1;
  ck_status(clb_context_create(fx.queue, &options, &out),
            CLB_INVALID_ARGUMENT);
  ck_message("CLB_COSTS_INIT");
}
END_TEST

START_TEST(members_beyond_a_smaller_struct_size_read_as_zero)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.struct_size = offsetof(clb_context_options, host_limit);
  options.host_limit = 1;
  options.plans = 0xffffffff;
  options.log = never_called;
  expect_works(&options);
}
END_TEST

START_TEST(bytes_beyond_a_larger_struct_size_must_be_zero)
{
  struct {
    clb_context_options known;
    unsigned char unknown[64];
  } later = {CLB_CONTEXT_OPTIONS_INIT, {0}};

  later.known.struct_size = sizeof later;
  expect_works(&later.known);
  later.unknown[0] = 1;
  expect_refused(&later.known, CLB_UNSUPPORTED);
  later.unknown[0] = 0;
  later.unknown[63] = 0x80;
  expect_refused(&later.known, CLB_UNSUPPORTED);
}
END_TEST

START_TEST(unknown_plans_are_refused)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  for (unsigned bit = 32; bit != 0; bit <<= 1) {
    options.plans = bit | CLB_PLAN_READ;
    expect_refused(&options, CLB_UNSUPPORTED);
  }
}
END_TEST

START_TEST(the_pack_bit_is_accepted)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.plans = CLB_PLAN_PACK | CLB_PLAN_READ;
  expect_works(&options);
}
END_TEST

START_TEST(sizes_that_contradict_are_refused)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.chunk_size = 4095;
  expect_refused(&options, CLB_INVALID_ARGUMENT);
  options.chunk_size = 1;
  expect_refused(&options, CLB_INVALID_ARGUMENT);
  options.chunk_size = 8192;
  options.staging_limit = 8191;
  expect_refused(&options, CLB_INVALID_ARGUMENT);
  ck_message("8191");
  ck_message("8192");
  options.chunk_size = 0;
  options.staging_limit = 100;
  expect_refused(&options, CLB_INVALID_ARGUMENT);
}
END_TEST

START_TEST(sizes_at_their_limits_work)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.chunk_size = 4096;
  options.staging_limit = 4096;
  expect_works(&options);
  options.chunk_size = 4097; /* no multiple of anything */
  options.staging_limit = 9001;
  expect_works(&options);
  options.chunk_size = 0;
  options.staging_limit = 65536;
  expect_works(&options);
}
END_TEST

/* Eight chunks overflow: refused, or a read works or has no memory for a
 * block; never a limit that wrapped. */
START_TEST(a_chunk_of_most_of_the_address_space_does_not_wrap)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_context *context = NULL;
  clb_status status;

  options.chunk_size = SIZE_MAX / 4;
  status = clb_context_create(fx.queue, &options, &context);
  if (status == CLB_OK) {
    cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
    clb_bytes *bytes = NULL;
    const void *data;

    ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
    status = clb_bytes_read(bytes, CLB_COPY, &data);
    if (status == CLB_OK)
      ck_bytes(data, SAMPLE, sizeof SAMPLE);
    else
      ck_assert_int_eq(status, CLB_OUT_OF_MEMORY);
    clb_bytes_release(bytes);
    clb_context_release(context);
    ck_cl(clReleaseMemObject(buffer));
  } else {
    ck_assert_int_eq(status, CLB_INVALID_ARGUMENT);
  }
}
END_TEST

START_TEST(the_queue_is_retained_and_given_back)
{
  cl_uint before;
  clb_context *context;

  clb_context_release(fx.context);
  fx.context = NULL;
  WAIT_UNTIL(fixture_queue_refs(fx.queue) == 1);
  before = fixture_queue_refs(fx.queue);
  ck_ok(clb_context_create(fx.queue, NULL, &context));
  ck_assert_uint_gt(fixture_queue_refs(fx.queue), before);
  clb_context_release(context);
  WAIT_UNTIL(fixture_queue_refs(fx.queue) == before);
  ck_assert_uint_eq(fixture_queue_refs(fx.queue), before);
}
END_TEST

START_TEST(retain_returns_its_argument_and_counts)
{
  clb_context *context;
  cl_uint before;

  ck_ok(clb_context_create(fx.queue, NULL, &context));
  before = fixture_queue_refs(fx.queue);
  ck_assert_ptr_eq(clb_context_retain(context), context);
  clb_context_release(context);
  ck_assert_uint_eq(fixture_queue_refs(fx.queue), before);
  clb_context_trim(context);
  clb_context_release(context);
}
END_TEST

START_TEST(a_handle_keeps_the_context)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  clb_bytes *bytes = fixture_handle(buffer, NULL);

  clb_context_release(fx.context);
  fx.context = NULL;
  expect_read(bytes, SAMPLE, sizeof SAMPLE);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(an_out_of_order_queue_works)
{
  cl_command_queue queue =
      fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

  if (queue == NULL)
    FIXTURE_SKIP("no out-of-order queues");
  clb_context_release(fx.context);
  fx.context = NULL;
  ck_cl(clReleaseCommandQueue(fx.queue));
  fx.queue = queue;
  expect_works(NULL);
}
END_TEST

START_TEST(two_contexts_on_one_queue_both_work)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  clb_context *other;
  clb_bytes *one, *two;
  clb_stats stats;

  ck_ok(clb_context_create(fx.queue, NULL, &other));
  one = fixture_handle(buffer, NULL);
  ck_ok(clb_bytes_from_buffer(other, buffer, NULL, &two));
  expect_read(two, SAMPLE, sizeof SAMPLE);
  ck_assert_uint_eq(fixture_stats().reads, 0);
  expect_read(one, SAMPLE, sizeof SAMPLE);
  clb_context_stats(other, &stats, sizeof stats);
  ck_assert_uint_eq(stats.reads, 1);
  ck_assert_uint_eq(fixture_stats().reads, 1);
  clb_bytes_release(one);
  clb_bytes_release(two);
  clb_context_release(other);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(contexts_come_and_go_without_a_trace)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  struct growth growth = {.times = 60};
  size_t descriptors = 0;

  while (growing(&growth)) {
    clb_context *context;
    clb_bytes *bytes;
    const void *data;

    if (growth.round == growth.times)
      descriptors = fixture_descriptors();
    ck_ok(clb_context_create(fx.queue, NULL, &context));
    ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    clb_context_release(context);
    clb_bytes_release(bytes);
  }
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  ck_flat(&growth, 1 << 20);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* --- trim and the counters ----------------------------------------------- */

START_TEST(a_new_contexts_counters_are_zero)
{
  clb_stats zero, stats = fixture_stats();

  memset(&zero, 0, sizeof zero);
  ck_bytes(&stats, &zero, sizeof zero);
}
END_TEST

START_TEST(counters_of_no_context_are_zero)
{
  unsigned char got[sizeof(clb_stats) + 8], zero[sizeof got] = {0};

  memset(got, 0xee, sizeof got);
  clb_context_stats(NULL, (clb_stats *)(void *)got, sizeof(clb_stats));
  ck_bytes(got, zero, sizeof(clb_stats));
  ck_assert_uint_eq(got[sizeof(clb_stats)], 0xee);
}
END_TEST

START_TEST(counters_fit_the_callers_size)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  union {
    clb_stats stats;
    unsigned char bytes[sizeof(clb_stats) + 32];
  } got;

  expect_read(bytes, SAMPLE, sizeof SAMPLE);

  /* An older caller knows the first two members. */
  memset(&got, 0xee, sizeof got);
  clb_context_stats(fx.context, &got.stats, 2 * sizeof(uint64_t));
  ck_assert_uint_eq(got.stats.reads, 1);
  ck_assert_uint_eq(got.stats.bytes_read, sizeof SAMPLE);
  for (size_t i = 2 * sizeof(uint64_t); i < sizeof got; i++)
    ck_assert_uint_eq(got.bytes[i], 0xee);

  /* A newer one knows 24 bytes more. */
  memset(&got, 0xee, sizeof got);
  clb_context_stats(fx.context, &got.stats, sizeof(clb_stats) + 24);
  ck_assert_uint_eq(got.stats.reads, 1);
  for (size_t i = sizeof(clb_stats); i < sizeof(clb_stats) + 24; i++)
    ck_assert_uint_eq(got.bytes[i], 0);
  ck_assert_uint_eq(got.bytes[sizeof(clb_stats) + 24], 0xee);

  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(trim_gives_idle_staging_back_and_reads_go_on)
{
  const size_t size = 100000;
  unsigned char *data = fixture_bytes(size, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, size);
  clb_bytes *bytes = fixture_handle(buffer, NULL);
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  /* Plain reads through staging, whatever the device can map. */
  clb_bytes_release(bytes);
  options.plans = CLB_PLAN_READ;
  options.chunk_size = 16384;
  fixture_options(&options);
  bytes = fixture_handle(buffer, NULL);

  expect_stream(bytes, data, size);
  ck_assert_uint_gt(fixture_stats().staging_peak, 0);
  clb_context_trim(fx.context);
  ck_assert_uint_eq(fixture_stats().staging_bytes, 0);
  clb_context_trim(fx.context);
  expect_stream(bytes, data, size);
  ck_assert_uint_eq(fixture_stats().reads, 2);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(data);
}
END_TEST

/* --- The log ------------------------------------------------------------- */

struct heard {
  size_t lines;
  char last[1024];
  pthread_t thread;
};

static void hear(const char *line, void *user)
{
  struct heard *heard = user;

  heard->lines++;
  heard->thread = pthread_self();
  snprintf(heard->last, sizeof heard->last, "%s", line);
}

START_TEST(the_log_has_a_line_a_transfer)
{
  struct heard heard = {0, "", pthread_self()};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  unsigned char *data = fixture_bytes(54321, 2);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, 54321);
  clb_bytes *bytes;

  options.log = hear;
  options.log_user = &heard;
  fixture_options(&options);
  bytes = fixture_handle(buffer, NULL);
  ck_ok(clb_bytes_set_label(bytes, "layer.7"));
  ck_assert_uint_eq(heard.lines, 0);
  expect_copy_into(bytes, data, 54321);
  ck_assert_uint_eq(heard.lines, 1);
  ck_assert_msg(strstr(heard.last, "54321") != NULL, "%s", heard.last);
  ck_assert_msg(strstr(heard.last, "layer.7") != NULL, "%s", heard.last);
  ck_assert_msg(strchr(heard.last, '\n') == NULL, "%s", heard.last);
  ck_assert(pthread_equal(heard.thread, pthread_self()));
  expect_stream(bytes, data, 54321);
  ck_assert_uint_eq(heard.lines, 2);
  expect_read(bytes, data, 54321);
  ck_assert_uint_eq(heard.lines, 3);
  expect_read(bytes, data, 54321); /* no transfer */
  ck_assert_uint_eq(heard.lines, 3);
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
  ck_assert_uint_eq(heard.lines, 4);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(data);
}
END_TEST

/* What a read of a context made now writes to stderr; malloc'ed. */
static char *stderr_of_a_read(void)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, SAMPLE, sizeof SAMPLE);
  FILE *file = tmpfile();
  char *text = fixture_malloc(4096);
  int saved = dup(STDERR_FILENO);
  clb_bytes *bytes;

  ck_assert_ptr_nonnull(file);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  fixture_options(NULL);
  bytes = fixture_handle(buffer, NULL);
  expect_read(bytes, SAMPLE, sizeof SAMPLE);
  clb_bytes_release(bytes);
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(file);
  text[fread(text, 1, 4095, file)] = '\0';
  fclose(file);
  ck_cl(clReleaseMemObject(buffer));
  return text;
}

START_TEST(the_environment_turns_the_log_on)
{
  char *text;

  ck_assert_int_eq(unsetenv("CLBYTES_DEBUG"), 0);
  text = stderr_of_a_read();
  ck_assert_str_eq(text, "");
  free(text);
  ck_assert_int_eq(setenv("CLBYTES_DEBUG", "log", 1), 0);
  text = stderr_of_a_read();
  ck_assert_msg(strstr(text, "16") != NULL && strchr(text, '\n') != NULL,
                "on stderr: \"%s\"", text);
  free(text);
  unsetenv("CLBYTES_DEBUG");
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("context");
  TCase *all = fixture_case(suite, "device", 60);

  tcase_add_test(all, null_options_and_initialised_ones_are_the_defaults);
  tcase_add_test(all, no_queue_or_no_out_pointer_is_refused);
  tcase_add_test(all, given_costs_choose_the_plan);
  tcase_add_test(all, costs_that_are_none_are_refused);
  tcase_add_test(all, members_beyond_a_smaller_struct_size_read_as_zero);
  tcase_add_test(all, bytes_beyond_a_larger_struct_size_must_be_zero);
  tcase_add_test(all, unknown_plans_are_refused);
  tcase_add_test(all, the_pack_bit_is_accepted);
  tcase_add_test(all, sizes_that_contradict_are_refused);
  tcase_add_test(all, sizes_at_their_limits_work);
  tcase_add_test(all, a_chunk_of_most_of_the_address_space_does_not_wrap);
  tcase_add_test(all, the_queue_is_retained_and_given_back);
  tcase_add_test(all, retain_returns_its_argument_and_counts);
  tcase_add_test(all, a_handle_keeps_the_context);
  tcase_add_test(all, an_out_of_order_queue_works);
  tcase_add_test(all, two_contexts_on_one_queue_both_work);
  tcase_add_test(all, contexts_come_and_go_without_a_trace);
  tcase_add_test(all, a_new_contexts_counters_are_zero);
  tcase_add_test(all, counters_of_no_context_are_zero);
  tcase_add_test(all, counters_fit_the_callers_size);
  tcase_add_test(all, trim_gives_idle_staging_back_and_reads_go_on);
  tcase_add_test(all, the_log_has_a_line_a_transfer);
  tcase_add_test(all, the_environment_turns_the_log_on);
  return fixture_main(suite, FIXTURE_DEVICE);
}
