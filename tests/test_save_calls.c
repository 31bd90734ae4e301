/*
 * Every call to the system that a save makes fails once: the old file or the
 * new one is there, whole, no scratch file is left, and no descriptor.  Also
 * that short writes are gone on with, and what durable adds.  The calls are
 * caught by functions of the same names in this program, which come before the
 * C library's.
 */
#include "config.h"

/* The functions below have their plain names. */
#undef _FILE_OFFSET_BITS

#include <clbytes/safetensors.h>

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined __GLIBC__ || !defined __LP64__

int main(void)
{
  fputs("how to catch the calls of this C library is not known\n", stderr);
  return 77;
}

#else

/* --- The calls that are caught ------------------------------------------- */

enum call { OPEN, LOCK, CHMOD, RESIZE, WRITE, SYNC, RENAME, UNLINK, CLOSE,
            CALLS };

static const char *const call_names[CALLS] = {
  "open", "lock", "chmod", "resize", "write", "sync", "rename", "unlink",
  "close"};

static struct {
  int watching;          /* else nothing is counted and nothing fails */
  size_t calls;          /* caught, of all kinds */
  size_t made[CALLS];    /* and of each */
  size_t from, to;       /* which of all fail, from 1 on; from 0: none */
  int error;             /* errno of those */
  size_t most;           /* bytes of a write; 0: as many as it has */
  size_t interrupted;    /* every so many writes are; 0: none */
  char order[64];        /* f: a file is synced, d: a directory, r: a rename */
  ino_t synced;          /* the last directory that was */
  enum call failed;      /* the first that did */
} calls;

/* Is it this call's turn to fail? */
static int fails(enum call call)
{
  if (!calls.watching)
    return 0;
  calls.made[call]++;
  calls.calls++;
  if (calls.from == 0 || calls.calls < calls.from || calls.calls > calls.to)
    return 0;
  if (calls.calls == calls.from)
    calls.failed = call;
  errno = calls.error;
  return 1;
}

static void note(char letter)
{
  size_t length = strlen(calls.order);

  if (calls.watching && length + 1 < sizeof calls.order)
    calls.order[length] = letter;
}

/* Defines a function that the C library has, with its declaration, which its
 * header may have under another name alone. */
#define CATCH(type, name, ...)                                                 \
  type name(__VA_ARGS__);                                                      \
  type name(__VA_ARGS__)

static int do_open(int folder, const char *path, int flags, va_list more)
{
  mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(more, int) : 0;

  return fails(OPEN) ? -1
                     : (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define CATCH_OPEN(name, folder, ...)                                          \
  CATCH(int, name, __VA_ARGS__, const char *path, int flags, ...)              \
  {                                                                            \
    va_list more;                                                              \
    int descriptor;                                                            \
                                                                               \
    va_start(more, flags);                                                     \
    descriptor = do_open(folder, path, flags, more);                           \
    va_end(more);                                                              \
    return descriptor;                                                         \
  }
#define CATCH_OPEN_HERE(name)                                                  \
  CATCH(int, name, const char *path, int flags, ...)                           \
  {                                                                            \
    va_list more;                                                              \
    int descriptor;                                                            \
                                                                               \
    va_start(more, flags);                                                     \
    descriptor = do_open(AT_FDCWD, path, flags, more);                         \
    va_end(more);                                                              \
    return descriptor;                                                         \
  }

CATCH_OPEN_HERE(open)
CATCH_OPEN_HERE(open64)
CATCH_OPEN(openat, folder, int folder)
CATCH_OPEN(openat64, folder, int folder)

CATCH(int, flock, int descriptor, int operation)
{
  return fails(LOCK) ? -1 : (int)syscall(SYS_flock, descriptor, operation);
}

CATCH(int, fchmod, int descriptor, mode_t mode)
{
  return fails(CHMOD) ? -1 : (int)syscall(SYS_fchmod, descriptor, mode);
}

static int do_resize(int descriptor, off_t length)
{
  return fails(RESIZE) ? -1 : (int)syscall(SYS_ftruncate, descriptor, length);
}

CATCH(int, ftruncate, int descriptor, off_t length)
{
  return do_resize(descriptor, length);
}

CATCH(int, ftruncate64, int descriptor, off_t length)
{
  return do_resize(descriptor, length);
}

static int do_allocate(int descriptor, int mode, off_t from, off_t length)
{
  return fails(RESIZE)
           ? -1
           : (int)syscall(SYS_fallocate, descriptor, mode, from, length);
}

CATCH(int, fallocate, int descriptor, int mode, off_t from, off_t length)
{
  return do_allocate(descriptor, mode, from, length);
}

CATCH(int, fallocate64, int descriptor, int mode, off_t from, off_t length)
{
  return do_allocate(descriptor, mode, from, length);
}

/* How many bytes this write may have; 0: it fails. */
static size_t written(size_t length)
{
  if (fails(WRITE))
    return 0;
  if (!calls.watching)
    return length;
  if (calls.interrupted > 0 && calls.made[WRITE] % calls.interrupted == 0) {
    errno = EINTR;
    return 0;
  }
  return calls.most > 0 && length > calls.most ? calls.most : length;
}

CATCH(ssize_t, write, int descriptor, const void *data, size_t length)
{
  size_t part = length > 0 ? written(length) : 0;

  if (length > 0 && part == 0)
    return -1;
  return syscall(SYS_write, descriptor, data, part);
}

static ssize_t do_pwrite(int descriptor, const void *data, size_t length,
                         off_t at)
{
  size_t part = length > 0 ? written(length) : 0;

  if (length > 0 && part == 0)
    return -1;
  return syscall(SYS_pwrite64, descriptor, data, part, at);
}

CATCH(ssize_t, pwrite, int descriptor, const void *data, size_t length,
      off_t at)
{
  return do_pwrite(descriptor, data, length, at);
}

CATCH(ssize_t, pwrite64, int descriptor, const void *data, size_t length,
      off_t at)
{
  return do_pwrite(descriptor, data, length, at);
}

/* A sync that succeeds is believed: nothing here pulls the plug. */
static int do_sync(int descriptor)
{
  struct stat status;

  if (fails(SYNC))
    return -1;
  if (fstat(descriptor, &status) != 0)
    return -1;
  note(S_ISDIR(status.st_mode) ? 'd' : 'f');
  if (S_ISDIR(status.st_mode))
    calls.synced = status.st_ino;
  return 0;
}

CATCH(int, fsync, int descriptor)
{
  return do_sync(descriptor);
}

CATCH(int, fdatasync, int descriptor)
{
  return do_sync(descriptor);
}

static int do_rename(int from, const char *old, int to, const char *new)
{
  if (fails(RENAME))
    return -1;
  note('r');
  return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

CATCH(int, rename, const char *old, const char *new)
{
  return do_rename(AT_FDCWD, old, AT_FDCWD, new);
}

CATCH(int, renameat, int from, const char *old, int to, const char *new)
{
  return do_rename(from, old, to, new);
}

CATCH(int, unlink, const char *path)
{
  return fails(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

CATCH(int, unlinkat, int folder, const char *path, int flags)
{
  return fails(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

/* The descriptor is gone even where close fails, as on Linux. */
CATCH(int, close, int descriptor)
{
  int failed = fails(CLOSE), error = errno;
  int result = (int)syscall(SYS_close, descriptor);

  if (!failed)
    return result;
  errno = error;
  return -1;
}

/* --- A save --------------------------------------------------------------- */

static const size_t large = 100003, small = 3;
static clb_tensor tensors[] = {{"large", "U8", 1, &large, NULL},
                               {"small", "I8", 1, &small, NULL}};
static struct text new_file;

static void make_model(void)
{
  unsigned char *data = fixture_bytes(large, 6);
  struct gathered file = {0};

  ck_ok(clb_bytes_from_copy(data, large, &tensors[0].bytes));
  ck_ok(clb_bytes_from_copy("abc", small, &tensors[1].bytes));
  ck_ok(clb_safetensors_write(gather_sink, &file, tensors, 2, NULL));
  new_file = (struct text){file.data, file.length, file.length};
  free(data);
}

static void give_model_back(void)
{
  clb_bytes_release(tensors[0].bytes);
  clb_bytes_release(tensors[1].bytes);
  free(new_file.data);
}

/* A save with the calls watched; set what is to fail before. */
static clb_status watched_save(const char *path, int durable)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_status status;

  options.durable = durable;
  calls.watching = 1;
  status = clb_safetensors_save(path, tensors, 2, &options);
  calls.watching = 0;
  return status;
}

static void forget_calls(void)
{
  memset(&calls, 0, sizeof calls);
}

/* --- Failures ------------------------------------------------------------- */

static int is_file(const char *path, const void *data, size_t length)
{
  struct text text = file_read(path);
  int same = text.length == length && memcmp(text.data, data, length) == 0;

  free(text.data);
  return same;
}

/*
 * Fails the n-th call, or all from the n-th on, for every n that a save
 * reaches; returns how many that are.
 */
static size_t each_call_fails(const char *path, int durable, int error,
                              int all)
{
  size_t descriptors = fixture_descriptors(), n = 1;

  for (;; n++) {
    clb_status status;

    unlink(".out.clbytes-tmp");
    file_write("out", "old", 3);
    forget_calls();
    calls.from = n;
    calls.to = all ? SIZE_MAX : n;
    calls.error = error;
    status = watched_save(path, durable);
    ck_assert_uint_eq(fixture_descriptors(), descriptors);
    if (calls.calls < n)
      break;
    if (status == CLB_OK) {
      ck_assert_msg(is_file("out", new_file.data, new_file.length),
                    "call %zu, a %s, failed and the file is not the new one",
                    n, call_names[calls.failed]);
    } else {
      ck_assert_msg(status == CLB_IO_ERROR, "call %zu, a %s: %s (%s)", n,
                    call_names[calls.failed], clb_status_name(status),
                    clb_error_message());
      ck_message(path);
      ck_assert_msg(is_file("out", "old", 3) ||
                      is_file("out", new_file.data, new_file.length),
                    "call %zu, a %s, failed and the file is neither", n,
                    call_names[calls.failed]);
    }
    if (!all)
      ck_assert_msg(access(".out.clbytes-tmp", F_OK) != 0,
                    "call %zu, a %s, failed and left the scratch file", n,
                    call_names[calls.failed]);
    /* What these three were for is not had without them. */
    if (calls.failed == WRITE || calls.failed == RENAME ||
        calls.failed == SYNC)
      ck_assert_msg(status == CLB_IO_ERROR || error == EINTR,
                    "call %zu, a %s, failed unnoticed", n,
                    call_names[calls.failed]);
    ck_assert_uint_lt(n, 10000);
  }
  ck_assert(is_file("out", new_file.data, new_file.length));
  ck_assert_uint_gt(calls.made[WRITE], 0);
  ck_assert_uint_gt(calls.made[RENAME], 0);
  return n - 1;
}

START_TEST(each_call_of_a_save_fails_once)
{
  static const int errors[] = {EIO, ENOSPC, EACCES, EINTR, ENOENT, ENOMEM};

  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    for (int durable = 0; durable < 2; durable++)
      ck_assert_uint_gt(each_call_fails("out", durable, errors[i], 0), 4);
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

START_TEST(all_calls_of_a_save_fail_from_one_on)
{
  for (int durable = 0; durable < 2; durable++)
    ck_assert_uint_gt(each_call_fails("out", durable, EIO, 1), 4);
}
END_TEST

START_TEST(each_call_of_a_save_through_a_link_fails_once)
{
  char target[8] = "";

  ck_assert_int_eq(symlink("out", "link"), 0);
  ck_assert_uint_gt(each_call_fails("link", 1, EIO, 0), 4);
  ck_assert_int_eq(readlink("link", target, sizeof target), 3);
  ck_assert_uint_eq(files_in("."), 2);
}
END_TEST

START_TEST(message_says_the_systems_reason)
{
  forget_calls();
  file_write("out", "old", 3);
  calls.from = 1;
  calls.to = SIZE_MAX;
  calls.error = EDQUOT;
  ck_status(watched_save("out", 1), CLB_IO_ERROR);
  ck_message("out");
  ck_message(strerror(EDQUOT));
  ck_file("out", "old", 3);
}
END_TEST

/* --- Writes --------------------------------------------------------------- */

START_TEST(short_and_interrupted_writes_are_gone_on_with)
{
  static const size_t most[] = {1000, 7, 1};

  for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
    forget_calls();
    calls.most = most[i];
    calls.interrupted = 3;
    ck_ok(watched_save("out", 1));
    ck_assert_uint_ge(calls.made[WRITE], new_file.length / most[i]);
    ck_file("out", new_file.data, new_file.length);
    ck_assert_uint_eq(files_in("."), 1);
  }
}
END_TEST

/* --- Durable -------------------------------------------------------------- */

START_TEST(durable_syncs_file_then_renames_then_syncs_directory)
{
  struct stat folder;

  forget_calls();
  ck_ok(watched_save("out", 1));
  ck_assert_str_eq(calls.order, "frd");
  ck_assert_int_eq(stat(".", &folder), 0);
  ck_assert_uint_eq(calls.synced, folder.st_ino);
  /* The directory is the target's, not the link's. */
  ck_assert_int_eq(mkdir("far", 0755), 0);
  ck_assert_int_eq(symlink("far/target", "link"), 0);
  forget_calls();
  ck_ok(watched_save("link", 1));
  ck_assert_str_eq(calls.order, "frd");
  ck_assert_int_eq(stat("far", &folder), 0);
  ck_assert_uint_eq(calls.synced, folder.st_ino);
}
END_TEST

START_TEST(not_durable_waits_for_no_disk)
{
  forget_calls();
  ck_ok(watched_save("out", 0));
  ck_assert_str_eq(calls.order, "r");
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("system calls of saves");
  TCase *all = files_case(suite, "all", 60);

  tcase_add_checked_fixture(all, make_model, give_model_back);
  tcase_add_test(all, each_call_of_a_save_fails_once);
  tcase_add_test(all, all_calls_of_a_save_fail_from_one_on);
  tcase_add_test(all, each_call_of_a_save_through_a_link_fails_once);
  tcase_add_test(all, message_says_the_systems_reason);
  tcase_add_test(all, short_and_interrupted_writes_are_gone_on_with);
  tcase_add_test(all, durable_syncs_file_then_renames_then_syncs_directory);
  tcase_add_test(all, not_durable_waits_for_no_disk);
  return files_main(suite, FIXTURE_HOST);
}

#endif
