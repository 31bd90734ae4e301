/* Statuses, their names and texts, the version, the thread's last error. */
#include "config.h"

#include "fixture.h"

#include <pthread.h>

START_TEST(every_status_has_its_name)
{
#define CHECK_NAME(name, text)                                                 \
  ck_assert_str_eq(clb_status_name(CLB_##name), "CLB_" #name);
  CLB_STATUS_MAP(CHECK_NAME)
#undef CHECK_NAME
}
END_TEST

START_TEST(numbers_of_statuses_stay_what_they_are)
{
  static const clb_status in_order[] = {
      CLB_OK,           CLB_WOULD_COPY,    CLB_INVALID_ARGUMENT,
      CLB_INVALID_LAYOUT, CLB_OUT_OF_RANGE, CLB_UNSUPPORTED,
      CLB_OUT_OF_MEMORY, CLB_DEVICE_ERROR, CLB_IO_ERROR,
      CLB_FORMAT_ERROR, CLB_CANCELLED,     CLB_TIMEOUT,
      CLB_NOT_FOUND};

  for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++)
    ck_assert_uint_eq((size_t)in_order[i], i);
}
END_TEST

START_TEST(any_other_number_is_unknown)
{
  static const int others[] = {13, 14, 1000, -1, INT32_MAX, INT32_MIN};

  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    ck_assert_str_eq(clb_status_name((clb_status)others[i]), "CLB_UNKNOWN");
}
END_TEST

START_TEST(version_is_that_of_the_headers)
{
  ck_assert_uint_eq(clb_version(), CLB_VERSION_MAJOR << 16 |
                                       CLB_VERSION_MINOR << 8 |
                                       CLB_VERSION_MICRO);
}
END_TEST

/* Fails with CLB_IO_ERROR: an error with a text of errno, and no device. */
static void fail_to_open(const char *path)
{
  clb_bytes *bytes = NULL;

  ck_status(clb_bytes_from_file(path, 0, 1, &bytes), CLB_IO_ERROR);
  ck_assert_ptr_null(bytes);
}

static void *look_for_a_message(void *result)
{
  *(int *)result = clb_error_message()[0] != '\0' ||
                   clb_error_cl() != CL_SUCCESS;
  return NULL;
}

START_TEST(before_a_threads_first_failure_its_message_is_empty)
{
  pthread_t thread;
  int found = -1;

  fail_to_open("/nonexistent/first");
  ck_assert_int_eq(pthread_create(&thread, NULL, look_for_a_message, &found),
                   0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(found, 0);
}
END_TEST

static void *fail_to_open_thread(void *path)
{
  clb_bytes *bytes = NULL;

  if (clb_bytes_from_file(path, 0, 1, &bytes) != CLB_IO_ERROR ||
      strstr(clb_error_message(), path) == NULL)
    return NULL;
  return path;
}

START_TEST(a_failure_in_another_thread_leaves_this_ones_message)
{
  pthread_t threads[8];
  char paths[8][32];
  char before[1024];

  fail_to_open("/nonexistent/mine");
  snprintf(before, sizeof before, "%s", clb_error_message());
  for (size_t i = 0; i < 8; i++) {
    snprintf(paths[i], sizeof paths[i], "/nonexistent/theirs-%zu", i);
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, fail_to_open_thread, paths[i]), 0);
  }
  for (size_t i = 0; i < 8; i++) {
    void *result;

    ck_assert_int_eq(pthread_join(threads[i], &result), 0);
    ck_assert_ptr_eq(result, paths[i]);
  }
  ck_assert_str_eq(clb_error_message(), before);
}
END_TEST

START_TEST(a_message_has_the_path_and_the_text_of_errno)
{
  fail_to_open("/nonexistent/name-of-it");
  ck_message("/nonexistent/name-of-it");
  ck_message("No such file");
  ck_assert_int_eq(clb_error_cl(), CL_SUCCESS);
}
END_TEST

START_TEST(the_next_failure_replaces_the_message)
{
  fail_to_open("/nonexistent/first");
  fail_to_open("/nonexistent/second");
  ck_message("second");
  ck_assert_ptr_null(strstr(clb_error_message(), "first"));
}
END_TEST

START_TEST(success_leaves_the_last_error)
{
  clb_bytes *bytes = NULL;
  const void *data;
  char before[1024];

  fail_to_open("/nonexistent/kept");
  snprintf(before, sizeof before, "%s", clb_error_message());
  ck_ok(clb_bytes_from_copy("abc", 3, &bytes));
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  clb_bytes_release(bytes);
  ck_assert_str_eq(clb_error_message(), before);
}
END_TEST

START_TEST(would_copy_leaves_the_last_error)
{
  char path[] = "/tmp/clbytes-status-XXXXXX";
  int fd = mkstemp(path);
  FILE *file = fdopen(fd, "w");
  clb_bytes *bytes = NULL;
  const void *data = NULL;
  char before[1024];

  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs("contents", file), 0);
  ck_assert_int_eq(fclose(file), 0);
  ck_ok(clb_bytes_from_file(path, 0, 8, &bytes));
  fail_to_open("/nonexistent/kept");
  snprintf(before, sizeof before, "%s", clb_error_message());
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  ck_assert_str_eq(clb_error_message(), before);
  ck_assert_ptr_null(data);
  clb_bytes_release(bytes);
  remove(path);
}
END_TEST

/* Every call that can fail without a device, each with its status. */
START_TEST(every_failure_says_something_in_one_line)
{
  clb_bytes *bytes = NULL, *view = NULL;
  const void *data;
  clb_layout layout;
  char text[8];
  size_t i = 0;

  ck_ok(clb_bytes_from_copy("abc", 3, &bytes));
#define FAILS(expression, status)                                              \
  do {                                                                         \
    char mark[64];                                                             \
    snprintf(mark, sizeof mark, "/nonexistent/mark-%zu", i++);                 \
    fail_to_open(mark);                                                        \
    ck_status(expression, status);                                             \
    ck_assert_msg(strstr(clb_error_message(), mark) == NULL,                   \
                  "%s left the message of the last failure", #expression);     \
    ck_assert_msg(clb_error_message()[0] != '\0' &&                            \
                      strchr(clb_error_message(), '\n') == NULL,               \
                  "%s: \"%s\"", #expression, clb_error_message());             \
  } while (0)
  FAILS(clb_bytes_read(NULL, CLB_COPY, &data), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_read(bytes, CLB_COPY, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_read(bytes, (clb_access)7, &data), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_copy_into(NULL, 0, text, 1), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_copy_into(bytes, 0, NULL, 1), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_copy_into(bytes, 3, text, 1), CLB_OUT_OF_RANGE);
  FAILS(clb_bytes_stream(NULL, 0, 0, gather_sink, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_stream(bytes, 0, 3, NULL, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_stream(bytes, 0, 4, gather_sink, NULL), CLB_OUT_OF_RANGE);
  FAILS(clb_bytes_view(NULL, 0, 0, &view), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_view(bytes, 0, 1, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_view(bytes, 2, 1, &view), CLB_OUT_OF_RANGE);
  FAILS(clb_bytes_view(bytes, 0, 4, &view), CLB_OUT_OF_RANGE);
  FAILS(clb_bytes_snapshot(NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_set_label(NULL, "x"), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_layout(NULL, &layout), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_layout(bytes, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_plan(NULL, text, sizeof text), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_plan(bytes, NULL, sizeof text), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_plan(bytes, text, 0), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_file(NULL, 0, 0, &view), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_file("/etc/passwd", 0, 0, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_host(NULL, 1, NULL, NULL, &view), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_host(text, 1, NULL, NULL, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_copy(NULL, 1, &view), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_copy(text, 1, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_upload(NULL, NULL, NULL, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_upload(bytes, NULL, NULL, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_context_create(NULL, NULL, NULL), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_buffer(NULL, NULL, NULL, &view), CLB_INVALID_ARGUMENT);
  FAILS(clb_bytes_from_buffer_after(NULL, NULL, NULL, 0, NULL, &view),
        CLB_INVALID_ARGUMENT);
#undef FAILS
  ck_assert_ptr_null(view);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(an_error_names_the_label)
{
  clb_bytes *bytes = NULL, *view = NULL;
  char big[20000];
  const char *message;

  ck_ok(clb_bytes_from_copy("abc", 3, &bytes));
  ck_ok(clb_bytes_set_label(bytes, "encoder.weight"));
  ck_status(clb_bytes_view(bytes, 0, 9, &view), CLB_OUT_OF_RANGE);
  ck_message("encoder.weight");
  ck_message("9");
  ck_message("3");
  ck_ok(clb_bytes_view(bytes, 1, 3, &view));
  ck_ok(clb_bytes_set_label(bytes, "other"));
  ck_status(clb_bytes_copy_into(view, 0, big, 7), CLB_OUT_OF_RANGE);
  ck_message("encoder.weight");
  ck_ok(clb_bytes_set_label(bytes, NULL));
  ck_status(clb_bytes_copy_into(bytes, 0, big, 7), CLB_OUT_OF_RANGE);
  ck_assert_ptr_null(strstr(clb_error_message(), "other"));

  memset(big, 'x', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  ck_ok(clb_bytes_set_label(bytes, big));
  ck_status(clb_bytes_copy_into(bytes, 0, big, 7), CLB_OUT_OF_RANGE);
  ck_message("xxxxxxxx");
  ck_message("[0, 7)");
  ck_status(clb_bytes_copy_into(bytes, 2, big, SIZE_MAX), CLB_OUT_OF_RANGE);
  ck_message("xxxxxxxx");
  ck_message("overflow");
  ck_ok(clb_bytes_set_label(bytes, "two\nlines"));
  ck_status(clb_bytes_copy_into(bytes, 0, big, 7), CLB_OUT_OF_RANGE);
  message = clb_error_message();
  ck_assert_msg(strchr(message, '\n') == NULL, "two lines: %s", message);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(null_is_fine_where_nothing_is_returned)
{
  clb_bytes_release(NULL);
  clb_context_release(NULL);
  clb_context_trim(NULL);
  ck_assert_ptr_null(clb_bytes_retain(NULL));
  ck_assert_ptr_null(clb_context_retain(NULL));
  ck_assert_uint_eq(clb_bytes_length(NULL), 0);
  ck_assert_int_eq(clb_bytes_place(NULL), CLB_PLACE_HEAP);
  ck_assert_uint_eq(clb_bytes_alignment(NULL), 1);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("status");
  TCase *all = tcase_create("host");

  suite_add_tcase(suite, all);
  tcase_add_test(all, every_status_has_its_name);
  tcase_add_test(all, numbers_of_statuses_stay_what_they_are);
  tcase_add_test(all, any_other_number_is_unknown);
  tcase_add_test(all, version_is_that_of_the_headers);
  tcase_add_test(all, before_a_threads_first_failure_its_message_is_empty);
  tcase_add_test(all, a_failure_in_another_thread_leaves_this_ones_message);
  tcase_add_test(all, a_message_has_the_path_and_the_text_of_errno);
  tcase_add_test(all, the_next_failure_replaces_the_message);
  tcase_add_test(all, success_leaves_the_last_error);
  tcase_add_test(all, would_copy_leaves_the_last_error);
  tcase_add_test(all, every_failure_says_something_in_one_line);
  tcase_add_test(all, an_error_names_the_label);
  tcase_add_test(all, null_is_fine_where_nothing_is_returned);
  return fixture_main(suite, FIXTURE_HOST);
}
