/* A program beside this one.  Knows nothing of what is said to it. */
#include "config.h"

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void close_pipe(int ends[2])
{
  for (int i = 0; i < 2; i++)
    if (ends[i] >= 0)
      close(ends[i]);
}

/* A pipe that a program started later does not inherit. */
static bool make_pipe(int ends[2])
{
  if (pipe(ends) != 0) {
    ends[0] = ends[1] = -1;
    return false;
  }
  return fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
         fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static bool spawn(char *const argv[], int input, int output, bool quiet,
                  pid_t *id)
{
  posix_spawn_file_actions_t actions;
  bool done;

  if (posix_spawn_file_actions_init(&actions) != 0)
    return false;
  done = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) == 0 &&
         posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) ==
             0 &&
         (!quiet || posix_spawn_file_actions_addopen(
                        &actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ==
                        0) &&
         posix_spawnp(id, argv[0], &actions, NULL, argv, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  return done;
}

bool bench_child_start(char *const argv[], int output, bool quiet,
                       struct bench_child *out)
{
  int input[2] = {-1, -1};
  int answer[2] = {-1, -1};
  struct bench_child child = {0, NULL, NULL};
  bool piped = output < 0;

  if (!make_pipe(input) || (piped && !make_pipe(answer)) ||
      !spawn(argv, input[0], piped ? answer[1] : output, quiet, &child.id)) {
    close_pipe(input);
    close_pipe(answer);
    return false;
  }
  close(input[0]);
  child.to = fdopen(input[1], "w");
  if (piped) {
    close(answer[1]);
    child.from = fdopen(answer[0], "r");
  }
  *out = child;
  if (child.to != NULL && (!piped || child.from != NULL))
    return true;
  if (child.to == NULL)
    close(input[1]);
  bench_child_end(out);
  return false;
}

bool bench_child_end(struct bench_child *child)
{
  int status = 1;
  bool told = child->to != NULL && fclose(child->to) == 0;

  if (child->from != NULL)
    fclose(child->from);
  if (child->id > 0)
    while (waitpid(child->id, &status, 0) < 0 && errno == EINTR)
      ;
  *child = (struct bench_child){0, NULL, NULL};
  return told && status == 0;
}
