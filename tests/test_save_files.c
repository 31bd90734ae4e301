/*
 * What a save does to the file system: the old file or the new one is there,
 * whole, whatever fails, is killed or saves at the same time; links, modes and
 * descriptors stay what they were.  The contents come from host memory and
 * files.  (Calls that fail: test_save_calls.c.)
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Large enough for many pieces and for a page cache that fills a small disk. */
enum { LARGE = (2 << 20) + 7 };

#define SCRATCH(name) "." name ".clbytes-tmp"

/* Saves one tensor of length bytes of this value. */
static clb_status save_with(const char *path, int value, size_t length,
                            const clb_save_options *options)
{
  unsigned char *data = fixture_malloc(length);
  clb_tensor tensor = {"x", "U8", 1, &length, NULL};
  clb_status status;

  memset(data, value, length);
  ck_ok(clb_bytes_from_copy(data, length, &tensor.bytes));
  free(data);
  status = clb_safetensors_save(path, &tensor, 1, options);
  clb_bytes_release(tensor.bytes);
  return status;
}

static clb_status save(const char *path, int value)
{
  return save_with(path, value, LARGE, NULL);
}

/* The value that every byte of the saved tensor has; the file is whole. */
static int saved_value(const char *path)
{
  clb_safetensors *file;
  clb_tensor tensor;
  const void *data;
  const unsigned char *bytes;
  int value;

  ck_ok(clb_safetensors_open(path, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 1);
  ck_ok(clb_safetensors_find(file, "x", &tensor));
  ck_ok(clb_bytes_read(tensor.bytes, CLB_COPY, &data));
  bytes = data;
  ck_assert_msg(memcmp(bytes, bytes + 1, clb_bytes_length(tensor.bytes) - 1) ==
                  0, "%s is a mixture", path);
  value = bytes[0];
  clb_safetensors_close(file);
  return value;
}

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
  ck_ok(save("far/target", 1));
  ck_assert_int_eq(symlink("far/target", "link"), 0);
  ck_ok(save("link", 2));
  ck_link("link", "far/target");
  ck_assert_int_eq(saved_value("far/target"), 2);
  ck_assert_uint_eq(files_in("."), 2);
  ck_assert_uint_eq(files_in("far"), 1);
  /* A link of a link, the second relative to where it stands. */
  ck_assert_int_eq(symlink("target", "far/second"), 0);
  ck_assert_int_eq(symlink("far/second", "first"), 0);
  ck_ok(save("first", 3));
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
  ck_ok(save("link", 1));
  ck_link("link", "far/target");
  ck_assert_int_eq(saved_value("far/target"), 1);
  ck_assert_uint_eq(files_in("far"), 1);
  text_format(&path, "%s/far/absolute", files_here());
  text_bytes(&path, "", 1);
  ck_assert_int_eq(symlink((char *)path.data, "second"), 0);
  ck_ok(save("second", 2));
  ck_link("second", (char *)path.data);
  ck_assert_int_eq(saved_value("far/absolute"), 2);
  ck_assert_uint_eq(files_in("."), 3);
  free(path.data);
}
END_TEST

START_TEST(links_to_nowhere_are_io_errors)
{
  ck_assert_int_eq(symlink("missing/target", "link"), 0);
  ck_status(save("link", 1), CLB_IO_ERROR);
  ck_message("link");
  ck_assert_int_eq(symlink("loop", "loop"), 0);
  ck_status(save("loop", 1), CLB_IO_ERROR);
  ck_message(strerror(ELOOP));
  ck_link("loop", "loop");
  ck_link("link", "missing/target");
  ck_assert_uint_eq(files_in("."), 2);
}
END_TEST

START_TEST(hard_link_keeps_the_old_file)
{
  ck_ok(save("out", 1));
  ck_assert_int_eq(link("out", "kept"), 0);
  ck_ok(save("out", 2));
  ck_assert_int_eq(saved_value("out"), 2);
  ck_assert_int_eq(saved_value("kept"), 1);
}
END_TEST

/* --- What a target may be ------------------------------------------------ */

static void refused(const char *path, clb_status status, const char *says)
{
  size_t entries = files_in(".");

  ck_status(save(path, 1), status);
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
  ck_assert_int_ne(save("", 1), CLB_OK);
  ck_assert_int_ne(save("new/", 1), CLB_OK);
  ck_assert_int_ne(save("file/", 1), CLB_OK);
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
    ck_ok(save_with(name, 1, 10, NULL));
    ck_ok(save_with(name, 2, 10, NULL));
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
  ck_ok(save("a/../a//./b", 1));
  ck_assert_int_eq(saved_value("a/b"), 1);
  ck_ok(save(".hidden", 2));
  ck_assert_int_eq(saved_value(".hidden"), 2);
  ck_ok(save(" \n\xff%s", 3));
  ck_assert_int_eq(saved_value(" \n\xff%s"), 3);
  text_format(&path, "%s/absolute", files_here());
  text_bytes(&path, "", 1);
  ck_ok(save((char *)path.data, 4));
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
  ck_ok(save("out", 1));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    allowed = modes[i];
    ck_assert_int_eq(chmod("out", modes[i]), 0);
    ck_ok(save_with("out", 2, LARGE, &options));
    ck_assert_uint_eq(file_mode("out"), modes[i]);
  }
  allowed = 0640;
  ck_assert_int_eq(chmod("out", 0640), 0);
  ck_assert_int_eq(symlink("out", "link"), 0);
  ck_ok(save_with("link", 3, LARGE, &options));
  ck_assert_uint_eq(file_mode("out"), 0640);
}
END_TEST

START_TEST(mode_of_a_new_file_follows_the_umask)
{
  static const mode_t masks[] = {022, 027, 077, 0, 002};

  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    umask(masks[i]);
    ck_ok(save("new", 1));
    ck_assert_uint_eq(file_mode("new"), 0666 & ~masks[i]);
    ck_assert_int_eq(unlink("new"), 0);
    ck_assert_int_eq(umask(masks[i]), masks[i]);
  }
}
END_TEST

/* --- Saves that fail ----------------------------------------------------- */

START_TEST(failure_at_the_second_tensor_keeps_the_old_file)
{
  size_t length = LARGE;
  clb_tensor tensors[2] = {{"first", "U8", 1, &length, NULL},
                           {"second", "U8", 1, &length, NULL}};
  unsigned char *data = fixture_bytes(LARGE, 1);
  size_t descriptors;

  /* A file that is changed in place after its handle was made. */
  file_write("source", data, LARGE);
  ck_ok(clb_bytes_from_copy(data, LARGE, &tensors[0].bytes));
  ck_ok(clb_bytes_from_file("source", 0, LARGE, &tensors[1].bytes));
  ck_assert_int_eq(truncate("source", LARGE / 2), 0);
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
  ck_status(save("closed/out", 1), CLB_IO_ERROR);
  ck_message("closed/out");
  ck_message(strerror(EACCES));
  ck_file("closed/out", "old", 3);
  ck_status(save("closed/new", 1), CLB_IO_ERROR);
  ck_message("closed/new");
  ck_assert_uint_eq(files_in("closed"), 1);
}
END_TEST

/* A file system of its own on "disk", that holds less than a save of LARGE;
 * 0 if this process may not mount. */
static int mount_small_disk(const char *options)
{
  if (mkdir("disk", 0755) != 0 || unshare(CLONE_NEWNS) != 0)
    return 0;
  return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", "disk", "tmpfs", 0, options) == 0;
}

START_TEST(full_disk_keeps_the_old_file)
{
  size_t descriptors = fixture_descriptors();

  if (!mount_small_disk("size=1m"))
    FIXTURE_SKIP("no file system can be mounted: %s", strerror(errno));
  file_write("disk/out", "old", 3);
  ck_status(save("disk/out", 1), CLB_IO_ERROR);
  ck_message("disk/out");
  ck_message(strerror(ENOSPC));
  ck_file("disk/out", "old", 3);
  ck_assert_uint_eq(files_in("disk"), 1);
  /* The space is there again. */
  ck_ok(save_with("disk/out", 2, 700000, NULL));
  ck_assert_int_eq(saved_value("disk/out"), 2);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
}
END_TEST

START_TEST(no_name_left_on_the_disk_is_an_io_error)
{
  if (!mount_small_disk("size=64m,nr_inodes=2"))
    FIXTURE_SKIP("no file system can be mounted: %s", strerror(errno));
  file_write("disk/out", "old", 3);
  ck_status(save("disk/out", 1), CLB_IO_ERROR);
  ck_message("disk/out");
  ck_file("disk/out", "old", 3);
  ck_assert_uint_eq(files_in("disk"), 1);
}
END_TEST

START_TEST(file_size_limit_keeps_the_old_file)
{
  struct rlimit limit = {LARGE / 2, RLIM_INFINITY};

  file_write("out", "old", 3);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_status(save("out", 1), CLB_IO_ERROR);
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
  static const size_t sizes[COUNT] = {LARGE, 3, 100000, 8};
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

/* --- Scratch files of others --------------------------------------------- */

static int kill_me(uint64_t done, uint64_t total, void *user)
{
  (void)done;
  (void)total;
  (void)user;
  raise(SIGKILL);
  return 0;
}

/* A child that is killed in the middle of a save of path. */
static void save_and_be_killed(const char *path)
{
  pid_t child = fork();
  int status;

  if (child == 0) {
    clb_save_options options = CLB_SAVE_OPTIONS_INIT;

    options.progress = kill_me;
    save_with(path, 9, LARGE, &options);
    _exit(1);
  }
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(scratch_of_a_killed_save_is_removed_by_the_next)
{
  ck_ok(save("other", 3));
  for (int old = 0; old < 2; old++) {
    if (old)
      file_write("out", "old", 3);
    save_and_be_killed("out");
    ck_assert_int_eq(access(SCRATCH("out"), F_OK), 0);
    if (old)
      ck_file("out", "old", 3);
    else
      ck_assert_int_ne(access("out", F_OK), 0);
    /* A save of another file is not concerned. */
    ck_ok(save("other", 3));
    ck_assert_int_eq(access(SCRATCH("out"), F_OK), 0);
    ck_ok(save("out", 2));
    ck_assert_int_eq(saved_value("out"), 2);
    ck_assert_uint_eq(files_in("."), 2);
    ck_assert_int_eq(unlink("out"), 0);
  }
}
END_TEST

START_TEST(failed_save_removes_the_scratch_of_a_killed_one)
{
  struct rlimit limit = {LARGE / 2, RLIM_INFINITY};

  save_and_be_killed("out");
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_status(save("out", 1), CLB_IO_ERROR);
  ck_assert_uint_eq(files_in("."), 0);
}
END_TEST

START_TEST(longer_scratch_of_a_killed_save_leaves_no_tail)
{
  unsigned char *data = fixture_bytes(3 * LARGE, 5);

  file_write(SCRATCH("out"), data, 3 * LARGE);
  ck_ok(save_with("out", 4, 10, NULL));
  ck_assert_int_eq(saved_value("out"), 4);
  ck_assert_uint_eq(files_in("."), 1);
  free(data);
}
END_TEST

/* Somebody else's file under the scratch file's name is not written to. */
START_TEST(links_under_the_scratch_name_lead_nowhere)
{
  file_write("precious", "precious", 8);
  ck_assert_int_eq(chmod("precious", 0600), 0);
  ck_assert_int_eq(symlink("precious", SCRATCH("out")), 0);
  if (save("out", 1) == CLB_OK)
    ck_assert_int_eq(saved_value("out"), 1);
  else
    ck_message("out");
  ck_file("precious", "precious", 8);
  unlink(SCRATCH("out"));
  unlink("out");
  ck_assert_int_eq(link("precious", SCRATCH("out")), 0);
  if (save("out", 1) == CLB_OK)
    ck_assert_int_eq(saved_value("out"), 1);
  else
    ck_message("out");
  ck_file("precious", "precious", 8);
  ck_assert_uint_eq(file_mode("precious"), 0600);
}
END_TEST

START_TEST(scratch_name_that_is_no_file_blocks_nothing_for_ever)
{
  file_write("out", "old", 3);
  ck_assert_int_eq(mkfifo(SCRATCH("out"), 0600), 0);
  if (save("out", 1) != CLB_OK)
    ck_file("out", "old", 3);
  else
    ck_assert_int_eq(saved_value("out"), 1);
  unlink(SCRATCH("out"));
  file_write("out", "old", 3);
  ck_assert_int_eq(mkdir(SCRATCH("out"), 0755), 0);
  ck_status(save("out", 1), CLB_IO_ERROR);
  ck_message("out");
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 2);
}
END_TEST

/* --- Saves at once ------------------------------------------------------- */

START_TEST(processes_that_save_at_once_leave_one_whole_file)
{
  enum { SAVERS = 3, SAVES = 12 };
  pid_t children[SAVERS];
  int running = SAVERS;

  ck_ok(save("out", 99));
  for (int i = 0; i < SAVERS; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      for (int j = 0; j < SAVES; j++)
        if (save("out", 10 * i + 1) != CLB_OK)
          _exit(1);
      _exit(0);
    }
  }
  while (running > 0) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, WNOHANG);

    ck_assert_int_gt(saved_value("out"), 0);
    if (ended > 0) {
      ck_assert_int_eq(status, 0);
      running--;
    }
  }
  ck_assert_int_ne(saved_value("out"), 99);
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

static void *save_often(void *value)
{
  for (int i = 0; i < 12; i++)
    ck_ok(save("out", *(int *)value));
  return NULL;
}

START_TEST(threads_that_save_at_once_leave_one_whole_file)
{
  enum { SAVERS = 4 };
  pthread_t threads[SAVERS];
  int values[SAVERS];

  for (int i = 0; i < SAVERS; i++) {
    values[i] = i + 1;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, save_often,
                                    &values[i]), 0);
  }
  for (int i = 0; i < SAVERS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_int_gt(saved_value("out"), 0);
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

struct held {
  int says, waits; /* pipes: "in the middle of a save", "go on" */
};

static int hold(uint64_t done, uint64_t total, void *user)
{
  struct held *held = user;
  char letter = 'h';

  (void)done;
  (void)total;
  if (held->says >= 0) {
    if (write(held->says, &letter, 1) != 1 || read(held->waits, &letter, 1) < 0)
      _exit(3);
    held->says = -1;
  }
  return 0;
}

/* A child that saves value 1 and stops in the middle, until a byte is written
 * to go. */
static pid_t saver_held(int *go)
{
  int says[2], waits[2];
  char letter;
  pid_t child;

  ck_assert_int_eq(pipe(says), 0);
  ck_assert_int_eq(pipe(waits), 0);
  child = fork();
  if (child == 0) {
    clb_save_options options = CLB_SAVE_OPTIONS_INIT;
    struct held held = {says[1], waits[0]};

    close(waits[1]);
    options.progress = hold;
    options.user = &held;
    _exit(save_with("out", 1, LARGE, &options) == CLB_OK ? 0 : 1);
  }
  close(says[1]);
  close(waits[0]);
  ck_assert_int_eq(read(says[0], &letter, 1), 1);
  close(says[0]);
  *go = waits[1];
  return child;
}

static pid_t saver(int value)
{
  pid_t child = fork();

  if (child == 0)
    _exit(save("out", value) == CLB_OK ? 0 : 1);
  return child;
}

START_TEST(second_saver_waits_for_the_first)
{
  int go, status;
  pid_t first = saver_held(&go), second;

  second = saver(2);
  fixture_sleep(0.3);
  ck_assert_int_eq(waitpid(second, &status, WNOHANG), 0);
  ck_assert_int_ne(access("out", F_OK), 0);
  ck_assert_int_eq(write(go, "g", 1), 1);
  child_ended_well(first);
  child_ended_well(second);
  ck_assert_int_eq(saved_value("out"), 2);
  ck_assert_uint_eq(files_in("."), 1);
  close(go);
}
END_TEST

START_TEST(second_saver_goes_on_when_the_first_is_killed)
{
  int go, status;
  pid_t first = saver_held(&go), second, third;

  second = saver(2);
  third = saver(2);
  fixture_sleep(0.3);
  ck_assert_int_eq(kill(first, SIGKILL), 0);
  ck_assert_int_eq(waitpid(first, &status, 0), first);
  child_ended_well(second);
  child_ended_well(third);
  ck_assert_int_eq(saved_value("out"), 2);
  ck_assert_uint_eq(files_in("."), 1);
  close(go);
}
END_TEST

START_TEST(savers_of_other_files_do_not_wait)
{
  int go;
  pid_t first = saver_held(&go);

  ck_ok(save("other", 5));
  ck_assert_int_eq(saved_value("other"), 5);
  ck_assert_int_eq(write(go, "g", 1), 1);
  child_ended_well(first);
  ck_assert_uint_eq(files_in("."), 2);
  close(go);
}
END_TEST

/* --- Descriptors --------------------------------------------------------- */

START_TEST(a_thousand_saves_keep_no_descriptor)
{
  size_t length = 10;
  clb_tensor tensor = {"x", "U8", 1, &length, NULL};
  size_t descriptors;

  ck_ok(clb_bytes_from_copy("0123456789", 10, &tensor.bytes));
  ck_assert_int_eq(mkdir("folder", 0755), 0);
  ck_ok(clb_safetensors_save("out", &tensor, 1, NULL));
  descriptors = fixture_descriptors();
  for (int i = 0; i < 1000; i++)
    ck_ok(clb_safetensors_save("out", &tensor, 1, NULL));
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  for (int i = 0; i < 100; i++) {
    clb_save_options options = CLB_SAVE_OPTIONS_INIT;

    ck_status(clb_safetensors_save("folder", &tensor, 1, NULL),
              CLB_INVALID_ARGUMENT);
    ck_status(clb_safetensors_save("missing/out", &tensor, 1, NULL),
              CLB_IO_ERROR);
    options.durable = 1;
    ck_ok(clb_safetensors_save("out", &tensor, 1, &options));
  }
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  clb_bytes_release(tensor.bytes);
}
END_TEST

static int watch_descriptors(uint64_t done, uint64_t total, void *user)
{
  const char *open_before = user;

  (void)done;
  (void)total;
  for (int i = 0; i < 64; i++) {
    int flags = fcntl(i, F_GETFD);

    if (flags >= 0 && !open_before[i])
      ck_assert_msg((flags & FD_CLOEXEC) != 0, "%d is inherited", i);
  }
  return 0;
}

START_TEST(descriptors_of_a_save_are_not_inherited)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  char open_before[64];

  for (int i = 0; i < 64; i++)
    open_before[i] = fcntl(i, F_GETFD) >= 0;
  options.progress = watch_descriptors;
  options.user = open_before;
  options.durable = 1;
  ck_ok(save_with("out", 1, LARGE, &options));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("files of saves");
  TCase *links = files_case(suite, "links", 20);
  TCase *targets = files_case(suite, "targets", 20);
  TCase *failures = files_case(suite, "failures", 20);
  TCase *scratch = files_case(suite, "scratch", 20);
  TCase *at_once = files_case(suite, "at once", 60);

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
  tcase_add_test(scratch, scratch_of_a_killed_save_is_removed_by_the_next);
  tcase_add_test(scratch, failed_save_removes_the_scratch_of_a_killed_one);
  tcase_add_test(scratch, longer_scratch_of_a_killed_save_leaves_no_tail);
  tcase_add_test(scratch, links_under_the_scratch_name_lead_nowhere);
  tcase_add_test(scratch,
                 scratch_name_that_is_no_file_blocks_nothing_for_ever);
  tcase_add_test(at_once, processes_that_save_at_once_leave_one_whole_file);
  tcase_add_test(at_once, threads_that_save_at_once_leave_one_whole_file);
  tcase_add_test(at_once, second_saver_waits_for_the_first);
  tcase_add_test(at_once, second_saver_goes_on_when_the_first_is_killed);
  tcase_add_test(at_once, savers_of_other_files_do_not_wait);
  tcase_add_test(at_once, a_thousand_saves_keep_no_descriptor);
  tcase_add_test(at_once, descriptors_of_a_save_are_not_inherited);
  return files_main(suite, FIXTURE_HOST);
}
