/*
 * A save with verify: a disk that keeps something else than it was given is
 * found out, and the tensor named.  Writes are caught by functions of the same
 * names in this program, which come before the C library's.
 */
#include "config.h"

/* The functions below have their plain names. */
#undef _FILE_OFFSET_BITS

#include "compose.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined __GLIBC__ || !defined __LP64__ || !defined HAVE_XXHASH

int main(void)
{
  fputs("without xxHash, or a C library whose calls can be caught\n", stderr);
  return 77;
}

#else

enum { SIZE = 300000, NOTHING = -1 };

static off_t bad = NOTHING; /* the byte of the file that is changed */

static ssize_t do_pwrite(int descriptor, const void *data, size_t length,
                         off_t at)
{
  ssize_t written = syscall(SYS_pwrite64, descriptor, data, length, at);

  if (bad >= at && written > bad - at) {
    unsigned char other = ((const unsigned char *)data)[bad - at] ^ 1;

    /* Past any rule of O_DIRECT's. */
    char path[64];
    int again;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    again = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(again, 0);
    ck_assert_int_eq(syscall(SYS_pwrite64, again, &other, (size_t)1, bad), 1);
    close(again);
  }
  return written;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t at);
ssize_t pwrite(int descriptor, const void *data, size_t length, off_t at)
{
  return do_pwrite(descriptor, data, length, at);
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off_t at);
ssize_t pwrite64(int descriptor, const void *data, size_t length, off_t at)
{
  return do_pwrite(descriptor, data, length, at);
}

static struct parts parts;
static clb_tensor *tensors;
static unsigned char *contents;
static cl_mem buffer;

/* "b" is over the region of "a". */
static void setup(void)
{
  static const size_t lengths[] = {SIZE, SIZE, 5001};
  static const char *const names[] = {"a", "b", "c"};

  fixture_setup();
  bad = NOTHING;
  contents = fixture_bytes(SIZE, 3);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  parts = (struct parts){0};
  for (int i = 0; i < 3; i++) {
    clb_layout layout = {1, &lengths[i], NULL, 1, 0};
    parts_add_device(&parts, names[i], "U8", buffer, contents, &layout);
  }
  tensors = parts_tensors(&parts);
  file_write("out", "old", 3);
}

static void teardown(void)
{
  free(tensors);
  parts_free(&parts);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static clb_status save(clb_file_io io)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;

  options.verify = 1;
  options.io = io;
  return clb_safetensors_save("out", tensors, parts.count, &options);
}

static void expect_found(clb_file_io io, uint64_t at, const char *words)
{
  bad = (off_t)at;
  ck_status(save(io), CLB_IO_ERROR);
  ck_message(words);
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
}

static void each_byte_that_differs(clb_file_io io)
{
  expect_found(io, 9, "header");
  expect_found(io, parts_offset(&parts, 0), "\"a\"");
  expect_found(io, parts_offset(&parts, 0) + SIZE - 1, "\"a\"");
  expect_found(io, parts_offset(&parts, 1) + SIZE / 2, "\"b\"");
  expect_found(io, parts_offset(&parts, 2), "\"c\"");
  expect_found(io, parts_offset(&parts, 2) + 5000, "\"c\"");
}

START_TEST(byte_that_the_disk_changed_is_found)
{
  each_byte_that_differs(CLB_FILE_BUFFERED);
  if (takes_direct("."))
    each_byte_that_differs(CLB_FILE_DIRECT);
}
END_TEST

START_TEST(what_is_right_is_saved)
{
  for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++) {
    struct text expected = parts_file(&parts);

    if (io == CLB_FILE_DIRECT && !takes_direct("."))
      continue;
    ck_ok(save((clb_file_io)io));
    ck_file("out", expected.data, expected.length);
    free(expected.data);
  }
}
END_TEST

START_TEST(file_without_tensors_is_right_too)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;

  options.verify = 1;
  ck_ok(clb_safetensors_save("out", NULL, 0, &options));
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("verified saves");
  TCase *all = files_case(suite, "all", 30);

  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, byte_that_the_disk_changed_is_found);
  tcase_add_test(all, what_is_right_is_saved);
  tcase_add_test(all, file_without_tensors_is_right_too);
  return files_main(suite, FIXTURE_DEVICE);
}

#endif
