/*
 * source_file.c - contents in a region of a file.
 *
 * The descriptor is kept open and read with pread: a file that is replaced by
 * rename keeps its old contents, and one that others may truncate is never
 * mapped.  A change in place is seen by size and modification time, before and
 * after each access.
 */
#include "config.h"

#include "crew.h"
#include "pool.h"
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

struct clb__file {
  atomic_size_t refs;
  pthread_mutex_t lock;
  bool pooled, crewed;
  int fd;
  off_t size;
  struct timespec modified;
  char path[]; /* for messages */
};

/* Figures for choosing between reading a gap and one more system call. */
static const clb__facts file_facts = {
    .asked = CLB_PLAN_READ | CLB_PLAN_GATHER,
    .plans = CLB_PLAN_READ | CLB_PLAN_GATHER,
    .command_us = 1,
    .link_gbs = 4,
    .pick_ns = 4,
    .pick_gbs = 8};

/* O_NONBLOCK: a FIFO without a writer must not block; it says nothing for a
 * regular file. */
static clb_status open_regular(const char *path, clb__file *file) {
  struct stat st;

  file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd < 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "open");
  if (fstat(file->fd, &st) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "fstat");
  if (!S_ISREG(st.st_mode))
    return clb__fail(CLB_INVALID_ARGUMENT, "not a regular file");
  file->size = st.st_size;
  file->modified = st.st_mtim;
  return CLB_OK;
}

clb_status clb__source_file(const char *path, uint64_t offset, uint64_t length,
                            clb__source *out) {
  clb__file *file = malloc(sizeof *file + strlen(path) + 1);
  clb_status status;
  uint64_t end;

  if (file == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for a handle", path);
  atomic_init(&file->refs, 1);
  strcpy(file->path, path);
  status = open_regular(path, file);
  if (status == CLB_OK && (clb__add_u64(offset, length, &end) ||
                           end > (uint64_t)file->size))
    status = clb__fail(CLB_OUT_OF_RANGE,
                       "%llu bytes at offset %llu are not inside the file of "
                       "%lld",
                       (unsigned long long)length, (unsigned long long)offset,
                       (long long)file->size);
  if (status != CLB_OK) {
    if (file->fd >= 0)
      close(file->fd);
    free(file);
    return clb__fail_prefix(status, "%s", path);
  }
  pthread_mutex_init(&file->lock, NULL);
  file->pooled = file->crewed = false;
  out->ops = &clb__file_ops;
  out->u.file = file;
  out->flags = 0;
  out->place = CLB_PLACE_FILE;
  return CLB_OK;
}

static clb_status file_retain(const clb__source *source) {
  atomic_fetch_add_explicit(&source->u.file->refs, 1, memory_order_relaxed);
  return CLB_OK;
}

static void file_release(clb__source *source) {
  clb__file *file = source->u.file;

  if (!clb__refs_last(&file->refs))
    return;
  close(file->fd);
  if (file->pooled)
    clb__pool_leave();
  if (file->crewed)
    clb__crew_leave();
  pthread_mutex_destroy(&file->lock);
  free(file);
}

static pthread_mutex_t *file_lock(const clb__source *source) {
  return &source->u.file->lock;
}

static bool *file_pooled(const clb__source *source) {
  return &source->u.file->pooled;
}

static clb_status facts_of_file(const clb__source *source,
                                clb__direction direction, bool guess,
                                clb__facts *facts) {
  (void)source;
  (void)direction;
  (void)guess;
  *facts = file_facts;
  return CLB_OK;
}

static clb_status check_unchanged(const clb__file *file) {
  struct stat st;

  if (fstat(file->fd, &st) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "fstat");
  if (st.st_size != file->size)
    return clb__fail(CLB_IO_ERROR,
                     "changed since it was opened: %lld bytes, now %lld",
                     (long long)file->size, (long long)st.st_size);
  if (st.st_mtim.tv_sec != file->modified.tv_sec ||
      st.st_mtim.tv_nsec != file->modified.tv_nsec)
    return clb__fail(CLB_IO_ERROR,
                     "changed since it was opened: modification time");
  return CLB_OK;
}

static bool file_ready(const clb__port *port) {
  (void)port;
  return true;
}

static clb_status file_check(clb__port *port) {
  const clb__file *file = port->source->u.file;

  return clb__fail_prefix(check_unchanged(file), "%s", file->path);
}

static clb__block *file_take(clb__port *port, bool bare, bool must) {
  (void)bare;
  return must ? clb__block_make(port->source->ops->chunk) : NULL;
}

static void file_give(clb__port *port, clb__block *block) {
  (void)port;
  clb__block_free(block);
}

static clb_status read_move(const clb__file *file, unsigned char *data,
                            const clb__move *move) {
  size_t done = 0;

  while (done < move->bytes) {
    ssize_t got = pread(file->fd, data + done, move->bytes - done,
                        (off_t)(move->origin + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return clb__fail_errno(CLB_IO_ERROR, errno,
                             "read of %zu bytes at %llu", move->bytes,
                             (unsigned long long)move->origin);
    if (got == 0)
      return clb__fail(CLB_IO_ERROR,
                       "ends at byte %llu, where %zu more were expected",
                       (unsigned long long)(move->origin + done),
                       move->bytes - done);
    done += (size_t)got;
  }
  return CLB_OK;
}

static clb_status file_start(clb__port *port, const clb__plan *plan,
                             clb__block *block, size_t at, unsigned char *data,
                             const clb__move *move) {
  const clb__file *file = port->source->u.file;

  (void)plan;
  (void)block;
  (void)at;
  return clb__fail_prefix(read_move(file, data, move), "%s", file->path);
}

static clb_status file_order(clb__port *port) {
  (void)port;
  return CLB_OK;
}

static clb_status file_flush(clb__port *port, clb__block *block) {
  (void)port;
  (void)block;
  return CLB_OK;
}

static void file_drop(clb__port *port) {
  (void)port;
}

static clb_status file_wait(clb__port *port, clb__block *block) {
  (void)port;
  (void)block;
  return CLB_OK;
}

/* What is in the page cache is copied faster by several. */
static unsigned file_helpers(const clb__port *port) {
  clb__file *file = port->source->u.file;
  bool crewed;

  pthread_mutex_lock(&file->lock);
  if (!file->crewed)
    file->crewed = clb__crew_join();
  crewed = file->crewed;
  pthread_mutex_unlock(&file->lock);
  return crewed ? clb__crew_size() - 1 : 0;
}

const clb__source_ops clb__file_ops = {
    .chunk = (size_t)1 << 20,
    .retain = file_retain,
    .release = file_release,
    .lock = file_lock,
    .pooled = file_pooled,
    .facts = facts_of_file,
    .order = file_order,
    .await = file_check,
    .ready = file_ready,
    .drop = file_drop,
    .close = file_check,
    .take = file_take,
    .give = file_give,
    .start = file_start,
    .flush = file_flush,
    .wait = file_wait,
    .helpers = file_helpers,
    .direct = true,
};
