/* Handles on files: what is opened, what changes under them, descriptors. */
#include "config.h"

#include "fixture.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SIZE = 3000000 }; /* more than two pieces of a stream */

static char folder[64];
static char path[128];
static char other[128];
static unsigned char *contents;

static void write_file(const char *name, const void *data, size_t size)
{
  FILE *file = fopen(name, "wb");

  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(data, 1, size, file), size);
  ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
  const char *base = getenv("TMPDIR");

  snprintf(folder, sizeof folder, "%s/clbytes-file-XXXXXX",
           base != NULL && strlen(base) < 32 ? base : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/data.bin", folder);
  snprintf(other, sizeof other, "%s/other.bin", folder);
  contents = fixture_bytes(SIZE, 40);
  write_file(path, contents, SIZE);
}

static void teardown(void)
{
  unlink(path);
  unlink(other);
  ck_assert_int_eq(rmdir(folder), 0);
  free(contents);
}

static clb_bytes *open_range(uint64_t offset, uint64_t length)
{
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_file(path, offset, length, &bytes));
  ck_assert_uint_eq(clb_bytes_length(bytes), length);
  return bytes;
}

static void expect_not_opened(const char *name, uint64_t offset,
                              uint64_t length, clb_status status)
{
  size_t before = fixture_descriptors();
  clb_bytes *bytes = NULL;

  ck_status(clb_bytes_from_file(name, offset, length, &bytes), status);
  ck_assert_ptr_null(bytes);
  ck_assert_uint_eq(fixture_descriptors(), before);
}

/* --- Reading ------------------------------------------------------------- */

START_TEST(a_region_is_read_in_every_way)
{
  static const struct {
    uint64_t offset, length;
  } regions[] = {{0, SIZE}, {1, SIZE - 1}, {12345, 1048577},
                 {SIZE - 1, 1}, {4095, 2}, {1000, 0}, {SIZE, 0}, {0, 0}};

  for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
    const unsigned char *expected = contents + regions[i].offset;
    size_t length = (size_t)regions[i].length;
    clb_bytes *bytes = open_range(regions[i].offset, length);

    ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FILE);
    expect_stream(bytes, expected, length);
    expect_copy_into(bytes, expected, length);
    expect_read(bytes, expected, length);
    expect_stream(bytes, expected, length);
    clb_bytes_release(bytes);
  }
}
END_TEST

START_TEST(nothing_is_on_the_host_before_a_read)
{
  clb_bytes *bytes = open_range(0, SIZE);
  const void *data = NULL, *again = NULL;

  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  ck_status(clb_bytes_read(bytes, CLB_MAP, &data), CLB_WOULD_COPY);
  ck_assert_ptr_null(data);
  ck_assert_uint_eq(clb_bytes_alignment(bytes), 64);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FILE);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_HEAP);
  ck_assert_uint_eq((uintptr_t)data % clb_bytes_alignment(bytes), 0);
  ck_assert_uint_ge(clb_bytes_alignment(bytes), 64);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &again));
  ck_assert_ptr_eq(again, data);
  ck_ok(clb_bytes_read(bytes, CLB_NO_COPY, &again));
  ck_assert_ptr_eq(again, data);
  ck_ok(clb_bytes_read(bytes, CLB_MAP, &again));
  ck_assert_ptr_eq(again, data);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(streams_pass_a_mebibyte_at_most)
{
  clb_bytes *bytes = open_range(7, SIZE - 7);
  struct gathered all = {NULL, 0, 0, 0};

  ck_ok(clb_bytes_stream(bytes, 3, SIZE - 10, gather_sink, &all));
  ck_assert_uint_eq(all.length, SIZE - 13);
  ck_bytes(all.data, contents + 10, SIZE - 13);
  ck_assert_uint_le(all.longest, 1 << 20);
  free(all.data);
  clb_bytes_release(bytes);
}
END_TEST

static int stop_sink(const void *data, size_t length, void *user)
{
  (void)data;
  (void)length;
  return ++*(int *)user == 2;
}

START_TEST(a_sink_that_stops_is_not_called_again)
{
  clb_bytes *bytes = open_range(0, SIZE);
  int pieces = 0;

  ck_status(clb_bytes_stream(bytes, 0, SIZE, stop_sink, &pieces),
            CLB_CANCELLED);
  ck_assert_int_eq(pieces, 2);
  expect_stream(bytes, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(ranges_outside_the_handle_are_refused)
{
  clb_bytes *bytes = open_range(10, 100), *view = NULL;
  unsigned char byte[200];
  struct gathered all = {NULL, 0, 0, 0};

  ck_status(clb_bytes_copy_into(bytes, 0, byte, 101), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_copy_into(bytes, 101, byte, 0), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_copy_into(bytes, SIZE_MAX, byte, 2), CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_stream(bytes, 0, 101, gather_sink, &all),
            CLB_OUT_OF_RANGE);
  ck_status(clb_bytes_view(bytes, 0, 101, &view), CLB_OUT_OF_RANGE);
  ck_assert_ptr_null(view);
  ck_assert_uint_eq(all.pieces, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(views_are_right_before_and_after_a_read)
{
  clb_bytes *bytes = open_range(100, 10000), *view, *inner;
  const void *whole, *part;

  ck_ok(clb_bytes_view(bytes, 11, 9000, &view));
  ck_ok(clb_bytes_view(view, 13, 14, &inner));
  expect_copy_into(inner, contents + 124, 1);
  expect_read(view, contents + 111, 8989);
  ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &whole), CLB_WOULD_COPY);
  clb_bytes_release(view);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &whole));
  ck_ok(clb_bytes_view(bytes, 17, 9999, &view));
  ck_ok(clb_bytes_read(view, CLB_NO_COPY, &part));
  ck_assert_ptr_eq(part, (const unsigned char *)whole + 17);
  clb_bytes_release(bytes);
  ck_bytes(part, contents + 117, 9982);
  expect_read(inner, contents + 124, 1);
  clb_bytes_release(view);
  clb_bytes_release(inner);
}
END_TEST

START_TEST(the_layout_is_its_bytes)
{
  clb_bytes *bytes = open_range(100, 10000);
  clb_layout layout;
  char text[200] = "";

  ck_ok(clb_bytes_layout(bytes, &layout));
  ck_assert_uint_eq(layout.ndim, 1);
  ck_assert_uint_eq(layout.shape[0], 10000);
  ck_assert_uint_eq(layout.elem_size, 1);
  ck_assert_uint_eq(layout.offset, 0);
  ck_assert_ptr_null(layout.strides);
  ck_ok(clb_bytes_plan(bytes, text, sizeof text));
  ck_assert_str_ne(text, "");
  memset(text, 'x', sizeof text);
  ck_ok(clb_bytes_plan(bytes, text, 4));
  ck_assert_uint_eq(strlen(text), 3);
  ck_assert_int_eq(text[4], 'x');
  ck_ok(clb_bytes_plan(bytes, text, 1));
  ck_assert_uint_eq(strlen(text), 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(a_snapshot_does_nothing)
{
  clb_bytes *bytes = open_range(100, 10000);

  ck_ok(clb_bytes_snapshot(bytes));
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FILE);
  expect_read(bytes, contents + 100, 10000);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(beyond_4_gib_is_read_where_it_lies)
{
#if SIZE_MAX > UINT32_MAX
  const uint64_t far = UINT64_C(5) << 30;
  int fd = open(path, O_WRONLY);
  clb_bytes *bytes, *view;
  unsigned char got[8];

  ck_assert_int_ge(fd, 0);
  if (ftruncate(fd, (off_t)(far + 8)) != 0 ||
      pwrite(fd, "farbytes", 8, (off_t)far) != 8) {
    close(fd);
    FIXTURE_SKIP("no sparse files of 5 GiB here");
  }
  close(fd);
  bytes = open_range(0, far + 8);
  ck_ok(clb_bytes_copy_into(bytes, far, got, 8));
  ck_bytes(got, "farbytes", 8);
  ck_ok(clb_bytes_view(bytes, far + 3, far + 8, &view));
  expect_read(view, "bytes", 5);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  bytes = open_range(far, 8);
  expect_stream(bytes, "farbytes", 8);
  clb_bytes_release(bytes);
#endif
}
END_TEST

/* --- What is refused ----------------------------------------------------- */

START_TEST(what_is_missing_is_an_error_with_its_path)
{
  expect_not_opened(other, 0, 0, CLB_IO_ERROR);
  ck_message("other.bin");
  ck_message("No such file");
  expect_not_opened("", 0, 0, CLB_IO_ERROR);
  snprintf(other, sizeof other, "%s/data.bin/below", folder);
  expect_not_opened(other, 0, 0, CLB_IO_ERROR);
  ck_message("below");
}
END_TEST

START_TEST(null_arguments_are_refused)
{
  clb_bytes *bytes = NULL;

  ck_status(clb_bytes_from_file(NULL, 0, 0, &bytes), CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_from_file(path, 0, 0, NULL), CLB_INVALID_ARGUMENT);
  ck_assert_ptr_null(bytes);
}
END_TEST

START_TEST(what_is_no_regular_file_is_refused_at_once)
{
  struct sockaddr_un address;
  double start = fixture_seconds();
  int fd;

  expect_not_opened(folder, 0, 0, CLB_INVALID_ARGUMENT);
  ck_message(folder);
  expect_not_opened("/dev/null", 0, 0, CLB_INVALID_ARGUMENT);
  expect_not_opened("/dev/zero", 0, 100, CLB_INVALID_ARGUMENT);
  /* Opening one for reading waits for a writer. */
  ck_assert_int_eq(mkfifo(other, 0600), 0);
  expect_not_opened(other, 0, 0, CLB_INVALID_ARGUMENT);
  ck_message("other.bin");
  ck_assert_double_lt(fixture_seconds() - start, 2);
  unlink(other);

  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%.100s", other);
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd >= 0 &&
      bind(fd, (struct sockaddr *)&address, sizeof address) == 0) {
    clb_bytes *bytes = NULL;
    clb_status status = clb_bytes_from_file(other, 0, 0, &bytes);

    /* open() itself refuses a socket. */
    ck_assert(status == CLB_INVALID_ARGUMENT || status == CLB_IO_ERROR);
  }
  close(fd);
}
END_TEST

START_TEST(a_symbolic_link_is_followed)
{
  clb_bytes *bytes = NULL;

  ck_assert_int_eq(symlink(path, other), 0);
  ck_ok(clb_bytes_from_file(other, 5, 100, &bytes));
  expect_read(bytes, contents + 5, 100);
  clb_bytes_release(bytes);
  unlink(other);
  ck_assert_int_eq(symlink(folder, other), 0);
  expect_not_opened(other, 0, 0, CLB_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_region_past_the_end_is_refused)
{
  expect_not_opened(path, 0, SIZE + 1, CLB_OUT_OF_RANGE);
  ck_message("3000001");
  ck_message("3000000");
  expect_not_opened(path, SIZE, 1, CLB_OUT_OF_RANGE);
  expect_not_opened(path, SIZE + 1, 0, CLB_OUT_OF_RANGE);
  expect_not_opened(path, 1, UINT64_MAX, CLB_OUT_OF_RANGE);
  expect_not_opened(path, UINT64_MAX, 1, CLB_OUT_OF_RANGE);
  expect_not_opened(path, UINT64_MAX, UINT64_MAX, CLB_OUT_OF_RANGE);
  expect_not_opened(path, UINT64_MAX - 5, 10, CLB_OUT_OF_RANGE);
  expect_not_opened(path, UINT64_C(1) << 63, 0, CLB_OUT_OF_RANGE);
  write_file(other, "", 0);
  expect_not_opened(other, 0, 1, CLB_OUT_OF_RANGE);
}
END_TEST

/* --- Files that change --------------------------------------------------- */

/* Lets the clock of file times go on, so that a change can be seen. */
static void let_time_pass(void)
{
  fixture_sleep(0.05);
}

static void expect_io_error(clb_bytes *bytes)
{
  size_t length = clb_bytes_length(bytes);
  unsigned char *into = fixture_malloc(length);
  struct gathered all = {NULL, 0, 0, 0};
  const void *data = NULL;

  for (int i = 0; i < 2; i++) {
    ck_status(clb_bytes_read(bytes, CLB_COPY, &data), CLB_IO_ERROR);
    ck_assert_ptr_null(data);
    ck_message("data.bin");
    ck_status(clb_bytes_copy_into(bytes, 0, into, length), CLB_IO_ERROR);
    ck_status(clb_bytes_copy_into(bytes, 0, into, 1), CLB_IO_ERROR);
    ck_status(clb_bytes_stream(bytes, 0, length, gather_sink, &all),
              CLB_IO_ERROR);
    ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  }
  ck_assert_uint_eq(all.pieces, 0);
  free(into);
}

START_TEST(replaced_by_rename_it_reads_the_old_contents)
{
  clb_bytes *bytes = open_range(0, SIZE), *view;
  unsigned char *later = fixture_bytes(SIZE, 41);

  write_file(other, later, SIZE);
  ck_assert_int_eq(rename(other, path), 0);
  ck_ok(clb_bytes_view(bytes, 5, 1000, &view));
  expect_stream(bytes, contents, SIZE);
  expect_read(view, contents + 5, 995);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  bytes = open_range(0, SIZE);
  expect_read(bytes, later, SIZE);
  clb_bytes_release(bytes);
  free(later);
}
END_TEST

START_TEST(unlinked_it_reads_the_old_contents)
{
  clb_bytes *bytes = open_range(0, SIZE);

  ck_assert_int_eq(unlink(path), 0);
  expect_read(bytes, contents, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(truncated_it_is_an_error)
{
  static const off_t sizes[] = {0, 10, SIZE / 2, SIZE - 1};

  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    clb_bytes *bytes = open_range(0, SIZE), *start = open_range(0, 5), *view;

    let_time_pass();
    ck_ok(clb_bytes_view(bytes, 0, 7, &view));
    ck_assert_int_eq(truncate(path, sizes[i]), 0);
    expect_io_error(bytes);
    expect_io_error(start);
    expect_io_error(view);
    clb_bytes_release(view);
    clb_bytes_release(start);
    clb_bytes_release(bytes);
    write_file(path, contents, SIZE);
  }
}
END_TEST

START_TEST(overwritten_in_place_it_is_an_error)
{
  clb_bytes *bytes = open_range(0, SIZE);
  int fd = open(path, O_WRONLY);

  let_time_pass();
  ck_assert_int_eq((int)pwrite(fd, "x", 1, SIZE / 2), 1);
  close(fd);
  expect_io_error(bytes);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(appended_to_it_is_an_error)
{
  clb_bytes *bytes = open_range(0, SIZE);
  int fd = open(path, O_WRONLY | O_APPEND);

  let_time_pass();
  ck_assert_int_eq((int)write(fd, "x", 1), 1);
  close(fd);
  expect_io_error(bytes);
  clb_bytes_release(bytes);
}
END_TEST

/* A change of size alone, the times put back as they were. */
START_TEST(of_another_size_at_the_old_time_it_is_an_error)
{
  static const off_t sizes[] = {SIZE - 1, SIZE + 1, SIZE / 2, 0};

  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    clb_bytes *bytes = open_range(0, 100);
    struct timespec times[2];
    struct stat before;

    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_eq(truncate(path, sizes[i]), 0);
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    expect_io_error(bytes);
    clb_bytes_release(bytes);
    write_file(path, contents, SIZE);
  }
}
END_TEST

START_TEST(touched_it_is_an_error)
{
  clb_bytes *bytes = open_range(0, SIZE);
  struct timespec times[2] = {{0, UTIME_OMIT}, {1234567890, 1}};

  ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
  expect_io_error(bytes);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(read_before_it_keeps_its_copy)
{
  clb_bytes *bytes = open_range(0, SIZE), *view;

  expect_read(bytes, contents, SIZE);
  let_time_pass();
  ck_assert_int_eq(truncate(path, 0), 0);
  expect_read(bytes, contents, SIZE);
  expect_stream(bytes, contents, SIZE);
  ck_ok(clb_bytes_view(bytes, 5, 1000, &view));
  expect_read(view, contents + 5, 995);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
}
END_TEST

static int truncating_sink(const void *data, size_t length, void *user)
{
  size_t *passed = user;

  ck_bytes(data, contents + *passed, length);
  *passed += length;
  let_time_pass();
  ck_assert_int_eq(truncate(path, 100), 0);
  return 0;
}

/* Never zeros, never a signal. */
START_TEST(truncated_while_it_streams_it_is_an_error)
{
  clb_bytes *bytes = open_range(0, SIZE);
  size_t passed = 0;

  ck_status(clb_bytes_stream(bytes, 0, SIZE, truncating_sink, &passed),
            CLB_IO_ERROR);
  ck_assert_uint_lt(passed, SIZE);
  clb_bytes_release(bytes);
}
END_TEST

/* --- Descriptors --------------------------------------------------------- */

START_TEST(views_share_one_descriptor)
{
  size_t before = fixture_descriptors();
  clb_bytes *bytes, *views[100];

  if (before == 0)
    FIXTURE_SKIP("descriptors cannot be counted here");
  bytes = open_range(0, SIZE);
  for (size_t i = 0; i < 100; i++)
    ck_ok(clb_bytes_view(i == 0 ? bytes : views[i - 1], 1, 10000 - 2 * i,
                         &views[i]));
  ck_assert_uint_eq(fixture_descriptors(), before + 1);
  clb_bytes_release(bytes);
  for (size_t i = 0; i < 100; i++) {
    ck_assert_uint_eq(fixture_descriptors(), before + 1);
    if (i == 50)
      expect_read(views[i], contents + 51, 9899);
    clb_bytes_release(views[i]);
  }
  ck_assert_uint_eq(fixture_descriptors(), before);
}
END_TEST

START_TEST(a_thousand_handles_leave_no_descriptor)
{
  size_t before = fixture_descriptors();

  for (uint64_t i = 0; i < 1000; i++) {
    clb_bytes *bytes = open_range(i, 1000);

    expect_read(bytes, contents + i, 1000);
    clb_bytes_release(bytes);
  }
  ck_assert_uint_eq(fixture_descriptors(), before);
}
END_TEST

START_TEST(the_descriptor_closes_on_exec)
{
  int next = dup(STDIN_FILENO), flags;
  clb_bytes *bytes;

  /* The lowest free one is the one that the library gets. */
  ck_assert_int_ge(next, 0);
  close(next);
  bytes = open_range(0, SIZE);
  flags = fcntl(next, F_GETFD);
  ck_assert_int_ne(flags, -1);
  ck_assert_int_ne(flags & FD_CLOEXEC, 0);
  clb_bytes_release(bytes);
}
END_TEST

START_TEST(no_descriptors_left_is_an_error_and_no_more)
{
  struct rlimit before, none;
  clb_bytes *bytes = NULL;
  clb_status status;

  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = 0;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  status = clb_bytes_from_file(path, 0, 1, &bytes);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  ck_assert_int_eq(status, CLB_IO_ERROR);
  ck_message("Too many open files");
  ck_assert_ptr_null(bytes);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("file");
  TCase *all = tcase_create("host");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, a_region_is_read_in_every_way);
  tcase_add_test(all, nothing_is_on_the_host_before_a_read);
  tcase_add_test(all, streams_pass_a_mebibyte_at_most);
  tcase_add_test(all, a_sink_that_stops_is_not_called_again);
  tcase_add_test(all, ranges_outside_the_handle_are_refused);
  tcase_add_test(all, views_are_right_before_and_after_a_read);
  tcase_add_test(all, the_layout_is_its_bytes);
  tcase_add_test(all, a_snapshot_does_nothing);
  tcase_add_test(all, beyond_4_gib_is_read_where_it_lies);
  tcase_add_test(all, what_is_missing_is_an_error_with_its_path);
  tcase_add_test(all, null_arguments_are_refused);
  tcase_add_test(all, what_is_no_regular_file_is_refused_at_once);
  tcase_add_test(all, a_symbolic_link_is_followed);
  tcase_add_test(all, a_region_past_the_end_is_refused);
  tcase_add_test(all, replaced_by_rename_it_reads_the_old_contents);
  tcase_add_test(all, unlinked_it_reads_the_old_contents);
  tcase_add_test(all, truncated_it_is_an_error);
  tcase_add_test(all, overwritten_in_place_it_is_an_error);
  tcase_add_test(all, appended_to_it_is_an_error);
  tcase_add_test(all, of_another_size_at_the_old_time_it_is_an_error);
  tcase_add_test(all, touched_it_is_an_error);
  tcase_add_test(all, read_before_it_keeps_its_copy);
  tcase_add_test(all, truncated_while_it_streams_it_is_an_error);
  tcase_add_test(all, views_share_one_descriptor);
  tcase_add_test(all, a_thousand_handles_leave_no_descriptor);
  tcase_add_test(all, the_descriptor_closes_on_exec);
  tcase_add_test(all, no_descriptors_left_is_an_error_and_no_more);
  return fixture_main(suite, FIXTURE_HOST);
}
