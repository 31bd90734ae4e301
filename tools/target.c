/* Whether a file can be written, looked at before the work that it is for.
 * What is said here may change until the file is made: the library checks all
 * of it again. */
#include "config.h"

#include "target.h"

#include "report.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The directory that the file is made in: that of what a link leads to.  NULL
 * with errno set. */
static char *directory_of(const char *path)
{
  char *real = realpath(path, NULL);
  char *directory;
  char *slash;

  if (real == NULL && errno != ENOENT)
    return NULL;
  directory = real != NULL ? real : strdup(path);
  if (directory == NULL)
    return NULL;
  slash = strrchr(directory, '/');
  if (slash == NULL) {
    free(directory);
    return strdup(".");
  }
  slash[slash == directory] = '\0'; /* "/" stays */
  return directory;
}

static int refused(const char *path, const char *what, int error)
{
  tool_error("%s: %s: %s", path, what, strerror(error));
  return TOOL_FAILED;
}

int tool_target_check(const char *path)
{
  struct stat status;
  char *directory;
  int result = TOOL_OK;

  if (stat(path, &status) == 0) {
    if (!S_ISREG(status.st_mode)) {
      tool_error("%s: not a regular file", path);
      return TOOL_FAILED;
    }
  } else if (lstat(path, &status) == 0) {
    return TOOL_OK; /* a link that leads nowhere: the library follows it */
  }
  directory = directory_of(path);
  if (directory == NULL)
    return refused(path, "cannot find its directory", errno);
  if (stat(directory, &status) != 0)
    result = refused(path, "cannot open its directory", errno);
  else if (access(directory, W_OK | X_OK) != 0)
    result = refused(path, "cannot write in its directory", errno);
  free(directory);
  return result;
}

int tool_target_check_room(const char *path, uint64_t bytes)
{
  char *directory = directory_of(path);
  struct statvfs status;
  uint64_t blocks;
  int told;

  if (directory == NULL)
    return TOOL_OK;
  told = statvfs(directory, &status);
  free(directory);
  if (told != 0 || status.f_blocks == 0 || status.f_frsize == 0)
    return TOOL_OK;
  /* Some blocks may be root's alone. */
  blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail;
  if (bytes / status.f_frsize < blocks)
    return TOOL_OK;
  tool_error("%s: no room for %" PRIu64 " bytes: its file system has %" PRIu64
             " free",
             path, bytes, blocks * status.f_frsize);
  return TOOL_FAILED;
}
