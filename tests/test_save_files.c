/*
 * What a save does to the file system: the old file or the new one is there,
 * whole, whatever fails; links and modes stay what they were.  (Savers that
 * are killed or many: test_save_scratch.c.  Calls that fail:
 * test_save_calls.c.)
 */
#include "config.h"

#include "saves.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- Links --------------------------------------------------------------- */

static void ck_link(const char *path, const char *target)
{
  char text[PATH_MAX] = "";

  ck_assert_int_gt(readlink(path, text, sizeof text - 1), 0);
  ck_assert_str_eq(text, target);
}

START_TEST(symbolic_link_stays_and_its_target_is_replaced)
{
  ck_assert_int_eq(mkdir("far", 0755), 0);
  ck_ok(save_value("far/target", 1));
  ck_assert_int_eq(symlink("far/target", "link"), 0);
  ck_ok(save_value("link", 2));
  ck_link("link", "far/target");
  ck_assert_int_eq(saved_value("far/target"), 2);
  ck_assert_uint_eq(files_in("."), 2);
  ck_assert_uint_eq(files_in("far"), 1);
  /* A link of a link, the second relative to where it stands. */
  ck_assert_int_eq(symlink("target", "far/second"), 0);
  ck_assert_int_eq(symlink("far/second", "first"), 0);
  ck_ok(save_value("first", 3));
  ck_link("first", "far/second");
  ck_link("far/second", "target");
  ck_assert_int_eq(saved_value("far/target"), 3);
}
END_TEST

START_TEST(dangling_link_stays_and_its_target_is_made)
{
  struct text path = {0};

  ck_assert_int_eq(mkdir("far", 0755), 0);
  ck_assert_int_eq(symlink("far/target", "link"), 0);
  ck_ok(save_value("link", 1));
  ck_link("link", "far/target");
  ck_assert_int_eq(saved_value("far/target"), 1);
  ck_assert_uint_eq(files_in("far"), 1);
  text_format(&path, "%s/far/absolute", files_here());
  text_bytes(&path, "", 1);
  ck_assert_int_eq(symlink((char *)path.data, "second"), 0);
  ck_ok(save_value("second", 2));
  ck_link("second", (char *)path.data);
  ck_assert_int_eq(saved_value("far/absolute"), 2);
  ck_assert_uint_eq(files_in("."), 3);
  free(path.data);
}
END_TEST

START_TEST(links_to_nowhere_are_io_errors)
{
  ck_assert_int_eq(symlink("missing/target", "link"), 0);
  ck_status(save_value("link", 1), CLB_IO_ERROR);
  ck_message("link");
  ck_assert_int_eq(symlink("loop", "loop"), 0);
  ck_status(save_value("loop", 1), CLB_IO_ERROR);
  ck_message(strerror(ELOOP));
  ck_link("loop", "loop");
  ck_link("link", "missing/target");
  ck_assert_uint_eq(files_in("."), 2);
}
END_TEST

START_TEST(hard_link_keeps_the_old_file)
{
  ck_ok(save_value("out", 1));
  ck_assert_int_eq(link("out", "kept"), 0);
  ck_ok(save_value("out", 2));
  ck_assert_int_eq(saved_value("out"), 2);
  ck_assert_int_eq(saved_value("kept"), 1);
}
END_TEST

/* --- What a target may be ------------------------------------------------ */

static void refused(const char *path, clb_status status, const char *says)
{
  size_t entries = files_in(".");

  ck_status(save_value(path, 1), status);
  if (says != NULL)
    ck_message(says);
  ck_assert_uint_eq(files_in("."), entries);
}

START_TEST(target_that_is_no_regular_file_is_refused)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  struct stat status;

  ck_assert_int_eq(mkdir("folder", 0755), 0);
  ck_assert_int_eq(mkfifo("pipe", 0600), 0);
  ck_assert_int_eq(bind(descriptor, (struct sockaddr *)&address,
                        sizeof address), 0);
  ck_assert_int_eq(symlink("folder", "link"), 0);
  ck_assert_int_eq(symlink("pipe", "second"), 0);
  refused("folder", CLB_INVALID_ARGUMENT, "folder");
  refused("pipe", CLB_INVALID_ARGUMENT, "pipe");
  refused("socket", CLB_INVALID_ARGUMENT, "socket");
  refused("link", CLB_INVALID_ARGUMENT, NULL);
  refused("second", CLB_INVALID_ARGUMENT, NULL);
  refused(".", CLB_INVALID_ARGUMENT, NULL);
  ck_assert_int_eq(stat("pipe", &status), 0);
  ck_assert(S_ISFIFO(status.st_mode));
  ck_assert_int_eq(stat("socket", &status), 0);
  ck_assert(S_ISSOCK(status.st_mode));
  ck_assert_uint_eq(files_in("folder"), 0);
  close(descriptor);
}
END_TEST

START_TEST(paths_that_cannot_be_are_io_errors)
{
  struct text path = {0};

  file_write("file", "old", 3);
  refused("missing/out", CLB_IO_ERROR, "missing/out");
  refused("file/out", CLB_IO_ERROR, strerror(ENOTDIR));
  ck_assert_int_ne(save_value("", 1), CLB_OK);
  ck_assert_int_ne(save_value("new/", 1), CLB_OK);
  ck_assert_int_ne(save_value("file/", 1), CLB_OK);
  ck_file("file", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
  text_repeat(&path, "0123456789", 26);
  text_bytes(&path, "", 1);
  refused((char *)path.data, CLB_IO_ERROR, strerror(ENAMETOOLONG));
  free(path.data);
}
END_TEST

START_TEST(names_up_to_the_systems_longest_are_saved)
{
  char name[NAME_MAX + 1];

  for (size_t length = NAME_MAX - 20; length <= NAME_MAX; length++) {
    memset(name, 'n', length);
    name[length] = '\0';
    ck_ok(save_length(name, 1, 10, NULL));
    ck_ok(save_length(name, 2, 10, NULL));
    ck_assert_int_eq(saved_value(name), 2);
    ck_assert_uint_eq(files_in("."), 1);
    ck_assert_int_eq(unlink(name), 0);
  }
}
END_TEST

START_TEST(paths_of_every_kind_are_saved)
{
  struct text path = {0};

  ck_assert_int_eq(mkdir("a", 0755), 0);
  ck_ok(save_value("a/../a//./b", 1));
  ck_assert_int_eq(saved_value("a/b"), 1);
  ck_ok(save_value(".hidden", 2));
  ck_assert_int_eq(saved_value(".hidden"), 2);
  ck_ok(save_value(" \n\xff%s", 3));
  ck_assert_int_eq(saved_value(" \n\xff%s"), 3);
  text_format(&path, "%s/absolute", files_here());
  text_bytes(&path, "", 1);
  ck_ok(save_value((char *)path.data, 4));
  ck_assert_int_eq(saved_value("absolute"), 4);
  ck_assert_uint_eq(files_in("."), 4);
  ck_assert_uint_eq(files_in("a"), 1);
  free(path.data);
}
END_TEST

/* --- Modes --------------------------------------------------------------- */

/* While a save goes on, nobody may read more than the file will let them. */
static int watch_scratch_mode(uint64_t done, uint64_t total, void *user)
{
  const mode_t *allowed = user;

  (void)done;
  (void)total;
  /* The saver itself has to write. */
  ck_assert_uint_eq(file_mode(SCRATCH("out")) & ~(*allowed | 0600), 0);
  return 0;
}

START_TEST(mode_of_the_old_file_is_kept)
{
  static const mode_t modes[] = {0640, 0600, 0644, 0666, 0400, 0444, 0755};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  mode_t allowed;

  options.progress = watch_scratch_mode;
  options.user = &allowed;
  umask(022);
  ck_ok(save_value("out", 1));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    allowed = modes[i];
    ck_assert_int_eq(chmod("out", modes[i]), 0);
    ck_ok(save_length("out", 2, SAVE_LARGE, &options));
    ck_assert_uint_eq(file_mode("out"), modes[i]);
  }
  allowed = 0640;
  ck_assert_int_eq(chmod("out", 0640), 0);
  ck_assert_int_eq(symlink("out", "link"), 0);
  ck_ok(save_length("link", 3, SAVE_LARGE, &options));
  ck_assert_uint_eq(file_mode("out"), 0640);
}
END_TEST

START_TEST(mode_of_a_new_file_follows_the_umask)
{
  static const mode_t masks[] = {022, 027, 077, 0, 002};

  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    umask(masks[i]);
    ck_ok(save_value("new", 1));
    ck_assert_uint_eq(file_mode("new"), 0666 & ~masks[i]);
    ck_assert_int_eq(unlink("new"), 0);
    ck_assert_int_eq(umask(masks[i]), masks[i]);
  }
}
END_TEST

/* --- Saves that fail ----------------------------------------------------- */

START_TEST(failure_at_the_second_tensor_keeps_the_old_file)
{
  size_t length = SAVE_LARGE;
  clb_tensor tensors[2] = {{"first", "U8", 1, &length, NULL},
                           {"second", "U8", 1, &length, NULL}};
  unsigned char *data = fixture_bytes(SAVE_LARGE, 1);
  size_t descriptors;

  /* A file that is changed in place after its handle was made. */
  file_write("source", data, SAVE_LARGE);
  ck_ok(clb_bytes_from_copy(data, SAVE_LARGE, &tensors[0].bytes));
  ck_ok(clb_bytes_from_file("source", 0, SAVE_LARGE, &tensors[1].bytes));
  ck_assert_int_eq(truncate("source", SAVE_LARGE / 2), 0);
  descriptors = fixture_descriptors();
  file_write("out", "old", 3);
  ck_status(clb_safetensors_save("out", tensors, 2, NULL), CLB_IO_ERROR);
  ck_message("second");
  ck_file("out", "old", 3);
  ck_status(clb_safetensors_save("new", tensors, 2, NULL), CLB_IO_ERROR);
  ck_assert_uint_eq(files_in("."), 2);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  /* And the next one is fine. */
  ck_ok(clb_safetensors_save("out", tensors, 1, NULL));
  clb_bytes_release(tensors[0].bytes);
  clb_bytes_release(tensors[1].bytes);
  free(data);
}
END_TEST

START_TEST(read_only_directory_is_an_io_error)
{
  ck_assert_int_eq(mkdir("closed", 0755), 0);
  file_write("closed/out", "old", 3);
  ck_assert_int_eq(chmod("closed/out", 0666), 0);
  ck_assert_int_eq(chmod("closed", 0555), 0);
  become_nobody();
  if (access("closed", W_OK) == 0)
    FIXTURE_SKIP("this user may write everywhere");
  ck_status(save_value("closed/out", 1), CLB_IO_ERROR);
  ck_message("closed/out");
  ck_message(strerror(EACCES));
  ck_file("closed/out", "old", 3);
  ck_status(save_value("closed/new", 1), CLB_IO_ERROR);
  ck_message("closed/new");
  ck_assert_uint_eq(files_in("closed"), 1);
  /* Who owns it has to be able to remove it. */
  if (chmod("closed", 0755) != 0)
    ck_assert_int_eq(errno, EPERM);
}
END_TEST

/* A file system of its own on "disk", with too little room; 0 if this process
 * may not mount. */
static int mount_small_disk(const char *options)
{
  if (mkdir("disk", 0755) != 0 || unshare(CLONE_NEWNS) != 0)
    return 0;
  return mount("none", "/", "none", MS_REC | MS_PRIVATE, "") == 0 &&
         mount("none", "disk", "tmpfs", 0, options) == 0;
}

START_TEST(full_disk_keeps_the_old_file)
{
  size_t descriptors = fixture_descriptors();

  if (!mount_small_disk("size=1m"))
    FIXTURE_SKIP("no file system can be mounted: %s", strerror(errno));
  file_write("disk/out", "old", 3);
  ck_status(save_value("disk/out", 1), CLB_IO_ERROR);
  ck_message("disk/out");
  ck_message(strerror(ENOSPC));
  ck_file("disk/out", "old", 3);
  ck_assert_uint_eq(files_in("disk"), 1);
  /* The space is there again. */
  ck_ok(save_length("disk/out", 2, 700000, NULL));
  ck_assert_int_eq(saved_value("disk/out"), 2);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
}
END_TEST

START_TEST(no_name_left_on_the_disk_is_an_io_error)
{
  if (!mount_small_disk("size=64m,nr_inodes=2"))
    FIXTURE_SKIP("no file system can be mounted: %s", strerror(errno));
  file_write("disk/out", "old", 3);
  ck_status(save_value("disk/out", 1), CLB_IO_ERROR);
  ck_message("disk/out");
  ck_file("disk/out", "old", 3);
  ck_assert_uint_eq(files_in("disk"), 1);
}
END_TEST

START_TEST(file_size_limit_keeps_the_old_file)
{
  struct rlimit limit = {SAVE_LARGE / 2, RLIM_INFINITY};

  file_write("out", "old", 3);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_status(save_value("out", 1), CLB_IO_ERROR);
  ck_message("out");
  ck_message(strerror(EFBIG));
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

/* --- Saves onto what is read --------------------------------------------- */

START_TEST(file_is_saved_onto_itself)
{
  enum { COUNT = 4 };
  static const size_t sizes[COUNT] = {SAVE_LARGE, 3, 100000, 8};
  static const char *const dtypes[COUNT] = {"U8", "BOOL", "I8", "F8_E8M0"};
  static const char *const names[COUNT] = {"d", "c", "b", "a"};
  clb_tensor tensors[COUNT];
  clb_safetensors *file;
  struct text before;

  for (size_t i = 0; i < COUNT; i++) {
    unsigned char *data = fixture_bytes(sizes[i], i);

    tensors[i] = (clb_tensor){names[i], dtypes[i], 1, &sizes[i], NULL};
    ck_ok(clb_bytes_from_copy(data, sizes[i], &tensors[i].bytes));
    free(data);
  }
  ck_ok(clb_safetensors_save("out", tensors, COUNT, NULL));
  before = file_read("out");
  for (size_t i = 0; i < COUNT; i++)
    clb_bytes_release(tensors[i].bytes);

  ck_ok(clb_safetensors_open("out", &file));
  for (size_t i = 0; i < COUNT; i++)
    ck_ok(clb_safetensors_tensor(file, i, &tensors[i]));
  for (int round = 0; round < 3; round++) {
    ck_ok(clb_safetensors_save("out", tensors, COUNT, NULL));
    ck_file("out", before.data, before.length);
  }
  /* With other names the data moves. */
  tensors[0].name = "zzz";
  tensors[3].name = "longer than it was before, by more than eight bytes";
  ck_assert_int_eq(symlink("out", "link"), 0);
  ck_ok(clb_safetensors_save("link", tensors, COUNT, NULL));
  for (size_t i = 0; i < COUNT; i++) {
    clb_safetensors *again;
    clb_tensor found;
    const void *new, *old;

    ck_ok(clb_safetensors_open("out", &again));
    ck_ok(clb_safetensors_find(again, tensors[i].name, &found));
    ck_ok(clb_bytes_read(found.bytes, CLB_COPY, &new));
    ck_ok(clb_bytes_read(tensors[i].bytes, CLB_COPY, &old));
    ck_bytes(new, old, clb_bytes_length(found.bytes));
    clb_safetensors_close(again);
  }
  clb_safetensors_close(file);
  free(before.data);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("files of saves");
  TCase *links = files_case(suite, "links", 20);
  TCase *targets = files_case(suite, "targets", 20);
  TCase *failures = files_case(suite, "failures", 20);

  tcase_add_test(links, symbolic_link_stays_and_its_target_is_replaced);
  tcase_add_test(links, dangling_link_stays_and_its_target_is_made);
  tcase_add_test(links, links_to_nowhere_are_io_errors);
  tcase_add_test(links, hard_link_keeps_the_old_file);
  tcase_add_test(targets, target_that_is_no_regular_file_is_refused);
  tcase_add_test(targets, paths_that_cannot_be_are_io_errors);
  tcase_add_test(targets, names_up_to_the_systems_longest_are_saved);
  tcase_add_test(targets, paths_of_every_kind_are_saved);
  tcase_add_test(targets, mode_of_the_old_file_is_kept);
  tcase_add_test(targets, mode_of_a_new_file_follows_the_umask);
  tcase_add_test(failures, failure_at_the_second_tensor_keeps_the_old_file);
  tcase_add_test(failures, read_only_directory_is_an_io_error);
  tcase_add_test(failures, full_disk_keeps_the_old_file);
  tcase_add_test(failures, no_name_left_on_the_disk_is_an_io_error);
  tcase_add_test(failures, file_size_limit_keeps_the_old_file);
  tcase_add_test(failures, file_is_saved_onto_itself);
  return files_main(suite, FIXTURE_HOST);
}
