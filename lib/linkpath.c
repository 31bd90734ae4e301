/*
 * linkpath.c - where a path leads, dangling links included.
 */
#include "config.h"

#include "linkpath.h"

#include "error.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as many as Linux follows */

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* What a link at path stands for, if its text is link. */
static char *step(const char *path, const char *link) {
  const char *slash = strrchr(path, '/');
  bool alone = link[0] == '/' || slash == NULL;
  size_t kept = alone ? 0 : (size_t)(slash + 1 - path);
  char *next = malloc(kept + strlen(link) + 1);

  if (next != NULL) {
    memcpy(next, path, kept);
    memcpy(next + kept, link, strlen(link) + 1);
  }
  return next;
}

clb_status clb__path_resolve(const char *path, char **out) {
  char link[PATH_MAX + 1], *now = step("", path), *next;
  ssize_t length = 0;

  for (int links = 0; now != NULL; links++) {
    length = readlink(now, link, sizeof link - 1);
    if (length < 0 && (errno == EINVAL || errno == ENOENT)) {
      *out = now;
      return CLB_OK;
    }
    if (length >= 0 && links == LINKS_MAX) {
      length = -1;
      errno = ELOOP;
    }
    if (length < 0) {
      int err = errno;
      free(now);
      return clb__fail_errno(CLB_IO_ERROR, err, "%s", path);
    }
    link[length] = '\0';
    next = step(now, link);
    free(now);
    now = next;
  }
  return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for the path", path);
}
