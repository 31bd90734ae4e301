/*
 * savefile.c - a file that takes its name only when it is whole.
 *
 * Owns the scratch file beside a target: its name, its lock, its removal.
 * Knows nothing of what is written.
 *
 * The lock tells a scratch file in use from one that a killed process left.
 * Between opening a file and locking it another saver may have renamed or
 * removed it, so after locking the name must still be that of the file, else
 * all starts again; and only who holds the lock takes the name away.
 */
#include "config.h"

#include "savefile.h"

#include "error.h"
#include "linkpath.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#ifdef HAVE_SYS_VFS_H
#include <sys/vfs.h>
#endif
#include <unistd.h>

#define SUFFIX ".clbytes-tmp"
#define OTHER "2" /* after a scratch file's name */
#define WRITE_MAX ((size_t)1 << 30) /* some systems refuse more at once */

/* What fstatfs() says of file systems that are in memory. */
#define TMPFS 0x01021994
#define RAMFS 0x858458f6

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* The last component of the target. */
static const char *target_name(const clb__savefile *file) {
  const char *slash = strrchr(file->path, '/');
  return slash == NULL ? file->path : slash + 1;
}

/* --- Names ---------------------------------------------------------------- */

/* ".NAME.clbytes-tmp".  A name too long for that is cut, and a hash keeps
 * scratch files of two such names apart (FNV-1a, 64 bits). */
static char *scratch_name(const char *name, size_t name_max) {
  const size_t around = 1 + strlen(SUFFIX), hash_length = 17;
  size_t length = strlen(name), kept = length;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  char mark[20] = "", *scratch = malloc(length + around + hash_length + 1);

  if (scratch == NULL)
    return NULL;
  if (length + around > name_max) {
    for (size_t i = 0; i < length; i++)
      hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    (void)snprintf(mark, sizeof mark, "-%016" PRIx64, hash);
    kept = 0;
    if (around + hash_length < name_max)
      kept = name_max - around - hash_length;
    if (kept > length)
      kept = length;
    /* Not within a character: some file systems want UTF-8. */
    while (kept > 0 && ((unsigned char)name[kept] & 0xc0) == 0x80)
      kept--;
  }
  (void)sprintf(scratch, ".%.*s%s" SUFFIX, (int)kept, name, mark);
  return scratch;
}

static clb_status open_directory(clb__savefile *file, bool durable) {
  /* Without a sync it need not be readable. */
  int flags = (durable ? O_RDONLY : O_PATH) | O_DIRECTORY | O_CLOEXEC;
  size_t length = (size_t)(target_name(file) - file->path);
  char *directory = length == 0 ? strdup(".") : strndup(file->path, length);

  if (directory == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for the path",
                     file->given);
  file->directory = open(directory, flags);
  free(directory);
  if (file->directory < 0)
    return clb__fail_errno(CLB_IO_ERROR, errno,
                           "%s: cannot open its directory", file->given);
  return CLB_OK;
}

/* --- The target ----------------------------------------------------------- */

/* Sets exists and, if it does, mode. */
static clb_status look_at_target(const clb__savefile *file, bool *exists,
                                 mode_t *mode) {
  struct stat st;

  *exists = fstatat(file->directory, target_name(file), &st,
                    AT_SYMLINK_NOFOLLOW) == 0;
  if (!*exists && errno != ENOENT)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s", file->given);
  if (*exists && !S_ISREG(st.st_mode))
    return clb__fail(CLB_INVALID_ARGUMENT, "%s: not a regular file",
                     file->given);
  if (*exists)
    *mode = st.st_mode & 07777;
  return CLB_OK;
}

/* Also where the links of /proc lead nowhere: to a pipe, say. */
static clb_status check_path(const char *path) {
  struct stat st;
  size_t length = strlen(path);

  if (length == 0)
    return clb__fail(CLB_INVALID_ARGUMENT, "the path is empty");
  if (path[length - 1] == '/' ||
      (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
    return clb__fail(CLB_INVALID_ARGUMENT, "%s: not a regular file", path);
  return CLB_OK;
}

/* --- The lock ------------------------------------------------------------- */

static int lock(int fd) {
  int result;

  do
    result = flock(fd, LOCK_EX);
  while (result != 0 && errno == EINTR);
  return result;
}

/* 1: the scratch name is that of fd; 0: of another file or none; -1: fd is no
 * regular file. */
static int still_named(const clb__savefile *file, int fd) {
  struct stat own, named;

  if (fstat(fd, &own) != 0 || !S_ISREG(own.st_mode))
    return -1;
  return fstatat(file->directory, file->scratch, &named,
                 AT_SYMLINK_NOFOLLOW) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

static bool same_file(int a, int b) {
  struct stat x, y;

  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

static clb_status in_the_way(const clb__savefile *file, int err) {
  return clb__fail_errno(CLB_IO_ERROR, err, "%s: its scratch file %s cannot be "
                         "taken over", file->given, file->scratch);
}

/* Waits for the saver whose scratch file is there; removes it if that left it
 * behind.  After CLB_OK the name may be tried again. */
static clb_status wait_for_other(const clb__savefile *file) {
  clb_status status = CLB_OK;
  int fd = openat(file->directory, file->scratch,
                  O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

  if (fd < 0)
    return errno == ENOENT ? CLB_OK : in_the_way(file, errno);
  switch (lock(fd) == 0 ? still_named(file, fd) : -2) {
  case 1:
    if (unlinkat(file->directory, file->scratch, 0) != 0 && errno != ENOENT)
      status = in_the_way(file, errno);
    break;
  case -1:
    status = in_the_way(file, EEXIST);
    break;
  case -2:
    status = in_the_way(file, errno);
    break;
  }
  (void)close(fd);
  return status;
}

/* Makes the scratch file and locks it. */
static clb_status take_scratch(clb__savefile *file, mode_t mode) {
  clb_status status = CLB_OK;

  while (status == CLB_OK) {
    file->fd = openat(file->directory, file->scratch,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file->fd < 0 && errno == EEXIST) {
      status = wait_for_other(file);
      continue;
    }
    if (file->fd < 0)
      return clb__fail_errno(CLB_IO_ERROR, errno,
                             "%s: cannot make its scratch file %s", file->given,
                             file->scratch);
    /* A file system without locks still has O_EXCL. */
    if (lock(file->fd) != 0 || still_named(file, file->fd) == 1)
      return CLB_OK;
    (void)close(file->fd);
    file->fd = -1;
  }
  return status;
}

static bool is_in_memory(int fd) {
#ifdef HAVE_SYS_VFS_H
  struct statfs st;

  return fstatfs(fd, &st) == 0 &&
         ((uint32_t)st.f_type == TMPFS || (uint32_t)st.f_type == RAMFS);
#else
  (void)fd;
  return false;
#endif
}

/* Memory would be allocated by one thread; it is asked for alone. */
static int find_memory(int fd, uint64_t size) {
  struct statvfs st;

  if (fstatvfs(fd, &st) != 0 || st.f_blocks == 0 || st.f_frsize == 0)
    return 0; /* the writes will tell */
  return size / st.f_frsize + (size % st.f_frsize != 0) > st.f_bavail ? ENOSPC
                                                                      : 0;
}

/* 0, or that there is none; where it cannot be asked for the writes will
 * tell. */
static int allocate(int fd, uint64_t size) {
#ifdef HAVE_FALLOCATE
  while (fallocate(fd, 0, 0, (off_t)size) != 0)
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
      return errno;
    else if (errno != EINTR)
      return 0;
#else
  (void)fd;
  (void)size;
#endif
  return 0;
}

/* A full disk is found here, before the transfer; not by posix_fallocate(),
 * which may write every block itself. */
static clb_status find_room(clb__savefile *file, uint64_t size) {
  int err = 0;

  file->in_memory = is_in_memory(file->fd);
  if (size > INT64_MAX)
    err = EFBIG;
  else if (size > 0)
    err = file->in_memory ? find_memory(file->fd, size)
                          : allocate(file->fd, size);
  return err == 0 ? CLB_OK
                  : clb__fail_errno(CLB_IO_ERROR, err,
                                    "%s: no room for %" PRIu64 " bytes",
                                    file->given, size);
}

/* --- From creation to the end --------------------------------------------- */

static void finish(clb__savefile *file) {
  if (file->fd >= 0) {
    /* A forked child may still have the file open. */
    (void)flock(file->fd, LOCK_UN);
    (void)close(file->fd);
  }
  if (file->directory >= 0)
    (void)close(file->directory);
  free(file->scratch);
  free(file->path);
}

void clb__savefile_discard(clb__savefile *file) {
  if (file->fd >= 0 && still_named(file, file->fd) == 1)
    (void)unlinkat(file->directory, file->scratch, 0);
  finish(file);
}

static clb_status create(clb__savefile *file, uint64_t size, bool durable) {
  clb_status status = open_directory(file, durable);
  long name_max;
  bool exists;
  mode_t mode;

  if (status == CLB_OK)
    status = look_at_target(file, &exists, &mode);
  if (status != CLB_OK)
    return status;
  name_max = fpathconf(file->directory, _PC_NAME_MAX);
  file->scratch =
      scratch_name(target_name(file), name_max > 0 ? (size_t)name_max : 255);
  if (file->scratch == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for a name",
                     file->given);
  /* What is to have an old file's mode is nobody else's until it has it. */
  status = take_scratch(file, exists ? 0600 : 0666);
  return status == CLB_OK ? find_room(file, size) : status;
}

clb_status clb__savefile_create(const char *path, uint64_t size, bool durable,
                                clb__savefile *out) {
  clb__savefile file = {.given = path, .directory = -1, .fd = -1};
  clb_status status = check_path(path);

  if (status == CLB_OK)
    status = clb__path_resolve(path, &file.path);
  if (status != CLB_OK)
    return status;
  status = create(&file, size, durable);
  if (status == CLB_OK)
    *out = file;
  else
    clb__savefile_discard(&file);
  return status;
}

int clb__savefile_write(clb__savefile *file, const void *data, size_t length) {
  const char *from = data;

  while (length > 0) {
    ssize_t n = write(file->fd, from, length < WRITE_MAX ? length : WRITE_MAX);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? errno : EIO;
    from += n;
    length -= (size_t)n;
  }
  return 0;
}

int clb__savefile_write_at(const clb__savefile *file, const void *data,
                           size_t length, uint64_t at) {
  const char *from = data;

  while (length > 0) {
    ssize_t n = pwrite(file->fd, from, length < WRITE_MAX ? length : WRITE_MAX,
                       (off_t)at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? errno : EIO;
    from += n;
    at += (uint64_t)n;
    length -= (size_t)n;
  }
  return 0;
}

int clb__savefile_extend(const clb__savefile *file, uint64_t size) {
  struct stat st;

  if (fstat(file->fd, &st) != 0)
    return errno;
  if ((uint64_t)st.st_size >= size)
    return 0;
  while (ftruncate(file->fd, (off_t)size) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

int clb__savefile_reopen_direct(const clb__savefile *file, int *fd) {
#ifdef O_DIRECT
  *fd = openat(file->directory, file->scratch,
               O_RDWR | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
  if (*fd < 0)
    return errno;
  if (same_file(file->fd, *fd))
    return 0;
  (void)close(*fd);
  *fd = -1;
  return ENOENT;
#else
  (void)file;
  *fd = -1;
  return ENOSYS;
#endif
}

/* A network file system may tell of a failed write at a close alone; that of a
 * duplicate keeps the lock. */
static int close_duplicate(int fd) {
  int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return duplicate < 0 ? 0 : close(duplicate);
}

/* A sync that failed is never tried again: the kernel may have dropped the
 * pages and would report success. */
clb_status clb__savefile_seal(clb__savefile *file, bool durable) {
  mode_t mode;
  clb_status status = look_at_target(file, &file->replaces, &mode);

  if (status != CLB_OK)
    return status;
  if (file->replaces && fchmod(file->fd, mode) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s: cannot set its mode",
                           file->given);
  if ((durable && fsync(file->fd) != 0) || close_duplicate(file->fd) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s: cannot write",
                           file->given);
  file->sealed = true;
  return CLB_OK;
}

/* EINVAL: a file system whose directories need no sync. */
static bool sync_directory(const clb__savefile *file) {
  return fsync(file->directory) == 0 || errno == EINVAL;
}

clb_status clb__savefile_withdraw(const clb__savefile *file, bool durable) {
  if (unlinkat(file->directory, target_name(file), 0) != 0 && errno != ENOENT)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s: cannot remove",
                           file->given);
  if (durable && !sync_directory(file))
    return clb__fail_errno(CLB_IO_ERROR, errno,
                           "%s is removed, but its directory cannot be synced",
                           file->given);
  return CLB_OK;
}

/* A second scratch file, which the lock of the first guards too. */
static char *second_scratch(const clb__savefile *file) {
  size_t size = strlen(file->scratch) + sizeof OTHER;
  char *name = malloc(size);

  if (name != NULL)
    (void)snprintf(name, size, "%s" OTHER, file->scratch);
  return name;
}

void clb__savefile_tidy(const clb__savefile *file) {
  char *name = second_scratch(file);

  if (name != NULL)
    (void)unlinkat(file->directory, name, 0);
  free(name);
}

clb_status clb__savefile_interpose(const clb__savefile *file, const void *data,
                                   size_t length, bool durable) {
  char *name = second_scratch(file);
  clb__savefile other = {.directory = -1, .fd = -1};
  struct stat st;
  int err = 0;

  if (name == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for a name",
                     file->given);
  (void)unlinkat(file->directory, name, 0);
  other.fd = openat(file->directory, name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (other.fd < 0 || fstat(file->fd, &st) != 0 ||
      fchmod(other.fd, st.st_mode & 07777) != 0)
    err = errno;
  if (err == 0)
    err = clb__savefile_write(&other, data, length);
  /* The names beside it that the contents may tell of, too. */
  if (err == 0 && durable && (fsync(other.fd) != 0 || !sync_directory(file)))
    err = errno;
  if (other.fd >= 0 && close(other.fd) != 0 && err == 0)
    err = errno;
  if (err == 0 && (renameat(file->directory, name, file->directory,
                            target_name(file)) != 0 ||
                   (durable && !sync_directory(file))))
    err = errno;
  if (err != 0)
    (void)unlinkat(file->directory, name, 0);
  free(name);
  return err == 0 ? CLB_OK
                  : clb__fail_errno(CLB_IO_ERROR, err, "%s: cannot replace",
                                    file->given);
}

static clb_status publish(clb__savefile *file, bool durable) {
  clb_status status =
      file->sealed ? CLB_OK : clb__savefile_seal(file, durable);

  if (status != CLB_OK)
    return status;
  /* If somebody removed it, its name may be another saver's by now. */
  if (still_named(file, file->fd) != 1)
    return clb__fail(CLB_IO_ERROR, "%s: its scratch file %s was removed",
                     file->given, file->scratch);
  if (renameat(file->directory, file->scratch, file->directory,
               target_name(file)) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s: cannot rename %s to it",
                           file->given, file->scratch);
  return CLB_OK;
}

clb_status clb__savefile_commit(clb__savefile *file, bool durable) {
  clb_status status = publish(file, durable);

  if (status != CLB_OK) {
    clb__savefile_discard(file);
    return status;
  }
  if (durable && !sync_directory(file))
    status = clb__fail_errno(CLB_IO_ERROR, errno,
                             "%s is written, but its directory cannot be "
                             "synced", file->given);
  finish(file);
  return status;
}
