/*
 * Saves of one target by many: the scratch file is locked while it is written,
 * one that a killed process left is removed, and the last save is whole.  No
 * descriptor is kept or inherited.
 */
#include "config.h"

#include "saves.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    save_length(path, 9, SAVE_LARGE, &options);
    _exit(1);
  }
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(scratch_of_a_killed_save_is_removed_by_the_next)
{
  ck_ok(save_value("other", 3));
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
    ck_ok(save_value("other", 3));
    ck_assert_int_eq(access(SCRATCH("out"), F_OK), 0);
    ck_ok(save_value("out", 2));
    ck_assert_int_eq(saved_value("out"), 2);
    ck_assert_uint_eq(files_in("."), 2);
    ck_assert_int_eq(unlink("out"), 0);
  }
}
END_TEST

START_TEST(failed_save_removes_the_scratch_of_a_killed_one)
{
  struct rlimit limit = {SAVE_LARGE / 2, RLIM_INFINITY};

  save_and_be_killed("out");
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_status(save_value("out", 1), CLB_IO_ERROR);
  ck_assert_uint_eq(files_in("."), 0);
}
END_TEST

START_TEST(longer_scratch_of_a_killed_save_leaves_no_tail)
{
  unsigned char *data = fixture_bytes(3 * SAVE_LARGE, 5);

  file_write(SCRATCH("out"), data, 3 * SAVE_LARGE);
  ck_ok(save_length("out", 4, 10, NULL));
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
  if (save_value("out", 1) == CLB_OK)
    ck_assert_int_eq(saved_value("out"), 1);
  else
    ck_message("out");
  ck_file("precious", "precious", 8);
  unlink(SCRATCH("out"));
  unlink("out");
  ck_assert_int_eq(link("precious", SCRATCH("out")), 0);
  if (save_value("out", 1) == CLB_OK)
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
  if (save_value("out", 1) != CLB_OK)
    ck_file("out", "old", 3);
  else
    ck_assert_int_eq(saved_value("out"), 1);
  unlink(SCRATCH("out"));
  file_write("out", "old", 3);
  ck_assert_int_eq(mkdir(SCRATCH("out"), 0755), 0);
  ck_status(save_value("out", 1), CLB_IO_ERROR);
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

  ck_ok(save_value("out", 99));
  for (int i = 0; i < SAVERS; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      for (int j = 0; j < SAVES; j++)
        if (save_value("out", 10 * i + 1) != CLB_OK)
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
    ck_ok(save_value("out", *(int *)value));
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
    _exit(save_length("out", 1, SAVE_LARGE, &options) == CLB_OK ? 0 : 1);
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
    _exit(save_value("out", value) == CLB_OK ? 0 : 1);
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

  ck_ok(save_value("other", 5));
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
  ck_ok(save_length("out", 1, SAVE_LARGE, &options));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("scratch files of saves");
  TCase *scratch = files_case(suite, "scratch", 20);
  TCase *at_once = files_case(suite, "at once", 60);

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
