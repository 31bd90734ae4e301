/*
 * writer.c - the ways of writer.h, and the threads.
 *
 * A parcel is one write: to a second descriptor that goes past the page cache
 * (direct), into a shared mapping of its range (mapped), or through the page
 * cache (buffered).  A way that turns out to be refused is left for good, and
 * the parcel is written again.  A large durable file tries direct and buffered
 * out, with its own bytes, and goes on with the faster one.
 */
#include "config.h"

#include "writer.h"

#include "bytes.h"
#include "crew.h"
#include "error.h"
#include "threads.h"
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_SYS_MMAN_H
#include <sys/mman.h>
#endif

#define MOST_THREADS 4
#define WORTH_MAPPING_CORES 4 /* with fewer, write() is as fast */
#define MOST_AT_ONCE ((size_t)1 << 30) /* some systems refuse more */

struct clb__writer {
  clb__savefile *file;
  clb__writer_hooks hooks;
  bool durable, asked; /* asked: for this way, and no other will do */
  bool crewed;
  int direct; /* descriptor, or -1 */
  atomic_int way;
  atomic_bool trying; /* it has a trial that is not over */

  pthread_mutex_t lock;
  clb__trial trial; /* 0: direct, 1: buffered */
  pthread_cond_t work, written;
  clb__parcel *todo, **todo_end, *done;
  unsigned out; /* parcels that were put and have not come back */
  bool over;
  int err; /* the first failure, */
  uint64_t err_at;
  bool refused; /* which is that the way asked for was */
  pthread_t thread[MOST_THREADS];
  unsigned threads;
};

/* --- Through the page cache ------------------------------------------------- */

int clb__writer_copy(clb__writer *w, const void *data, size_t length,
                     uint64_t at) {
  return clb__savefile_write_at(w->file, data, length, at);
}

static int write_buffered(clb__writer *w, const clb__parcel *parcel,
                          size_t from) {
  int err = clb__writer_copy(w, parcel->data + from, parcel->length - from,
                             parcel->at + from);

#ifdef HAVE_SYNC_FILE_RANGE
  /* Lets the disk begin now; what it says is said again by the sync. */
  if (err == 0 && w->durable)
    (void)sync_file_range(w->file->fd, (off_t)(parcel->at + from),
                          (off_t)(parcel->length - from),
                          SYNC_FILE_RANGE_WRITE);
#endif
  return err;
}

/* Until the disk has it, which a trial counts. */
static void wait_written(const clb__writer *w, const clb__parcel *parcel) {
#ifdef HAVE_SYNC_FILE_RANGE
  (void)sync_file_range(w->file->fd, (off_t)parcel->at, (off_t)parcel->length,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
#else
  (void)w;
  (void)parcel;
#endif
}

/* --- Past it ---------------------------------------------------------------- */

/* What a file system, a driver's pinned memory or an odd alignment is refused
 * with. */
static bool is_refusal(int err) {
  return err == EINVAL || err == EFAULT || err == EOPNOTSUPP || err == ENOSYS;
}

/* Writes whole pages; *done: so many bytes, a multiple of a page. */
static int write_pages(const clb__writer *w, const clb__parcel *parcel,
                       size_t length, size_t *done) {
  while (*done < length) {
    size_t most = length - *done < MOST_AT_ONCE ? length - *done : MOST_AT_ONCE;
    ssize_t n = pwrite(w->direct, parcel->data + *done, most,
                       (off_t)(parcel->at + *done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      return EIO;
    *done += (size_t)n;
    if (*done % CLB__PAGE != 0) { /* the rest of it goes another way */
      *done -= *done % CLB__PAGE;
      return 0;
    }
  }
  return 0;
}

/* The end of a file, which is no whole page, and what a short write left go
 * through the page cache. */
static int write_direct(clb__writer *w, const clb__parcel *parcel,
                        bool *refused) {
  size_t done = 0;
  int err = write_pages(w, parcel, parcel->length / CLB__PAGE * CLB__PAGE,
                        &done);

  *refused = is_refusal(err);
  if (err != 0)
    return err;
  return done == parcel->length ? 0 : write_buffered(w, parcel, done);
}

/* --- Into a mapping --------------------------------------------------------- */

#if defined HAVE_SYS_MMAN_H && defined MADV_POPULATE_WRITE

/* A full file system is an error here, where touching the pages would be a
 * signal. */
static int populate(void *window, size_t length) {
  int result;

  do
    result = madvise(window, length, MADV_POPULATE_WRITE);
  while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0)
    return 0;
  return errno == EFAULT || errno == ENOMEM ? ENOSPC : errno;
}

static int write_mapped(clb__writer *w, const clb__parcel *parcel,
                        bool *refused) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t before = (size_t)(parcel->at % page);
  size_t length = before + parcel->length;
  unsigned char *window =
      mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, w->file->fd,
           (off_t)(parcel->at - before));
  int err;

  *refused = window == MAP_FAILED;
  if (*refused)
    return errno;
  err = populate(window, length);
  *refused = err == EINVAL || err == ENOSYS;
  if (err == 0)
    clb__crew_copy(w->crewed ? clb__crew_size() - 1 : 0, window + before,
                   parcel->data, parcel->length);
  if (munmap(window, length) != 0 && err == 0)
    err = errno;
  return err;
}

#define CAN_MAP true
#else
#define CAN_MAP false

static int write_mapped(clb__writer *w, const clb__parcel *parcel,
                        bool *refused) {
  (void)w;
  (void)parcel;
  *refused = true;
  return ENOSYS;
}
#endif

/* --- A parcel --------------------------------------------------------------- */

static void note_failure(clb__writer *w, int err, bool refused, uint64_t at) {
  pthread_mutex_lock(&w->lock);
  if (w->err == 0) {
    w->err = err;
    w->err_at = at;
    w->refused = refused;
  }
  pthread_mutex_unlock(&w->lock);
}

/* The way of a parcel; *trying: the trial is to be told when it is written. */
static int begin_parcel(clb__writer *w, const clb__parcel *parcel,
                        bool *trying) {
  int way = atomic_load(&w->way);

  *trying = way == CLB_FILE_DIRECT && atomic_load(&w->trying);
  if (!*trying)
    return way;
  pthread_mutex_lock(&w->lock);
  way = clb__trial_begin(&w->trial, parcel->length, clb__seconds()) == 0
            ? CLB_FILE_DIRECT
            : CLB_FILE_BUFFERED;
  pthread_mutex_unlock(&w->lock);
  return way;
}

static void end_trial(clb__writer *w, const clb__parcel *parcel, int way) {
  if (way == CLB_FILE_BUFFERED)
    wait_written(w, parcel);
  pthread_mutex_lock(&w->lock);
  if (clb__trial_end(&w->trial, way == CLB_FILE_BUFFERED, parcel->length,
                     clb__seconds())) {
    if (w->trial.best == 1)
      atomic_store(&w->way, CLB_FILE_BUFFERED);
    atomic_store(&w->trying, false);
  }
  pthread_mutex_unlock(&w->lock);
}

static void write_parcel(clb__writer *w, const clb__parcel *parcel) {
  bool refused = false, trying;
  int way = begin_parcel(w, parcel, &trying), err = 0;

  if (w->hooks.before != NULL)
    w->hooks.before(w->hooks.user, parcel);
  if (way == CLB_FILE_DIRECT)
    err = write_direct(w, parcel, &refused);
  else if (way == CLB_FILE_MAPPED)
    err = write_mapped(w, parcel, &refused);
  if (refused && !w->asked) {
    way = CLB_FILE_BUFFERED;
    atomic_store(&w->way, way);
    atomic_store(&w->trying, false);
    refused = trying = false;
    err = 0;
  }
  if (way == CLB_FILE_BUFFERED)
    err = write_buffered(w, parcel, 0);
  if (err == 0 && trying)
    end_trial(w, parcel, way);
  if (err == 0 && w->hooks.after != NULL)
    err = w->hooks.after(w->hooks.user, w, parcel);
  if (err != 0)
    note_failure(w, err, refused, parcel->at);
}

/* --- Threads ---------------------------------------------------------------- */

static void *work(void *user) {
  clb__writer *w = user;

  pthread_mutex_lock(&w->lock);
  for (;;) {
    clb__parcel *parcel = w->todo;
    bool failed = w->err != 0;
    if (parcel == NULL && w->over)
      break;
    if (parcel == NULL) {
      pthread_cond_wait(&w->work, &w->lock);
      continue;
    }
    w->todo = parcel->next;
    if (w->todo == NULL)
      w->todo_end = &w->todo;
    pthread_mutex_unlock(&w->lock);
    if (!failed)
      write_parcel(w, parcel);
    pthread_mutex_lock(&w->lock);
    parcel->next = w->done;
    w->done = parcel;
    pthread_cond_signal(&w->written);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

void clb__writer_put(clb__writer *w, clb__parcel *parcel) {
  parcel->next = NULL;
  w->out++;
  if (w->threads == 0) {
    if (w->err == 0)
      write_parcel(w, parcel);
    parcel->next = w->done;
    w->done = parcel;
    return;
  }
  pthread_mutex_lock(&w->lock);
  *w->todo_end = parcel;
  w->todo_end = &parcel->next;
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
}

clb__parcel *clb__writer_take(clb__writer *w, bool wait) {
  clb__parcel *parcel;

  if (w->out == 0)
    return NULL;
  pthread_mutex_lock(&w->lock);
  while (wait && w->done == NULL)
    pthread_cond_wait(&w->written, &w->lock);
  parcel = w->done;
  if (parcel != NULL)
    w->done = parcel->next;
  pthread_mutex_unlock(&w->lock);
  w->out -= parcel != NULL;
  return parcel;
}

clb_status clb__writer_status(clb__writer *w) {
  bool refused;
  uint64_t at;
  int err;

  pthread_mutex_lock(&w->lock);
  err = w->err;
  at = w->err_at;
  refused = w->refused;
  pthread_mutex_unlock(&w->lock);
  if (err == 0)
    return CLB_OK;
  return clb__fail_errno(refused ? CLB_UNSUPPORTED : CLB_IO_ERROR, err,
                         "%s: cannot write%s, at byte %" PRIu64,
                         w->file->given,
                         !refused                 ? ""
                         : w->direct >= 0 ? " past the page cache"
                                                  : " into a mapping",
                         at);
}

/* --- Choosing a way --------------------------------------------------------- */

static clb_status refuse(const clb__writer *w, int err, const char *what) {
  return clb__fail_errno(CLB_UNSUPPORTED, err, "%s: %s", w->file->given, what);
}

static clb_status choose_direct(clb__writer *w) {
  int err = clb__savefile_reopen_direct(w->file, &w->direct);

  if (err == 0)
    atomic_store(&w->way, CLB_FILE_DIRECT);
  else if (w->asked)
    return refuse(w, err, "the file system takes no direct I/O");
  return CLB_OK;
}

static clb_status choose_mapped(clb__writer *w, uint64_t size) {
  int err = CAN_MAP ? clb__savefile_extend(w->file, size) : ENOSYS;

  if (err == 0)
    atomic_store(&w->way, CLB_FILE_MAPPED);
  else if (w->asked)
    return refuse(w, err, "the file cannot be written by a mapping");
  if (err == 0 && clb__crew_size() > 1)
    w->crewed = clb__crew_join();
  return CLB_OK;
}

static clb_status choose(clb__writer *w, uint64_t size, size_t parcels,
                         clb_file_io io) {
  w->asked = io != CLB_FILE_AUTO;
  if (io == CLB_FILE_AUTO && parcels > 1 && w->file->in_memory &&
      clb__crew_size() >= WORTH_MAPPING_CORES)
    io = CLB_FILE_MAPPED;
#ifdef HAVE_SYNC_FILE_RANGE
  /* Elsewhere the two cannot be compared before the end. */
  if (io == CLB_FILE_AUTO && w->durable && !w->file->in_memory &&
      size >= CLB__TRIAL_WORTH) {
    atomic_store(&w->trying, true);
    io = CLB_FILE_DIRECT;
  }
#endif
  switch (io) {
  case CLB_FILE_DIRECT:
    return choose_direct(w);
  case CLB_FILE_MAPPED:
    return choose_mapped(w, size);
  default:
    return CLB_OK;
  }
}

/* --- From opening to closing ------------------------------------------------ */

clb_status clb__writer_open(clb__savefile *file, uint64_t size,
                            size_t parcels, clb_file_io io, bool durable,
                            const clb__writer_hooks *hooks,
                            clb__writer **out) {
  clb__writer *w = calloc(1, sizeof *w);
  clb_status status;

  if (w == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory to write it",
                     file->given);
  w->file = file;
  w->durable = durable;
  w->hooks = *hooks;
  w->direct = -1;
  w->todo_end = &w->todo;
  atomic_init(&w->way, CLB_FILE_BUFFERED);
  atomic_init(&w->trying, false);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->work, NULL);
  pthread_cond_init(&w->written, NULL);
  status = choose(w, size, parcels, io);
  if (status != CLB_OK) {
    clb__writer_close(w);
    return status;
  }
  if (parcels > 1)
    w->threads = clb__threads_start(
        w->thread,
        parcels < MOST_THREADS ? (unsigned)parcels : MOST_THREADS, work, w);
  *out = w;
  return CLB_OK;
}

void clb__writer_close(clb__writer *w) {
  unsigned i;

  pthread_mutex_lock(&w->lock);
  w->over = true;
  pthread_cond_broadcast(&w->work);
  pthread_mutex_unlock(&w->lock);
  for (i = 0; i < w->threads; i++)
    pthread_join(w->thread[i], NULL);
  if (w->crewed)
    clb__crew_leave();
  if (w->direct >= 0)
    (void)close(w->direct);
  pthread_cond_destroy(&w->written);
  pthread_cond_destroy(&w->work);
  pthread_mutex_destroy(&w->lock);
  free(w);
}
