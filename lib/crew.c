/*
 * crew.c - the threads of crew.h, for the whole process.
 *
 * Owns the threads and the list of batches with pieces to take.  A thread
 * sleeps while there are none.
 */
#include "config.h"

#include "crew.h"
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More do not make a copy faster: memory is what is slow. */
#define MOST_THREADS 16

/* A piece of a copy for one thread. */
#define COPY_PIECE ((size_t)256 << 10)

/* What the threads of one generation share; a generation ends with its last
 * user. */
typedef struct crew {
  pthread_cond_t work;
  unsigned users, threads, idle;
  bool over;
  pthread_t thread[MOST_THREADS];
} crew;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static clb__batch *batches; /* with pieces that nobody has taken */
static crew *current;

static void unlink_batch(clb__batch *batch) {
  clb__batch **link = &batches;

  while (*link != NULL && *link != batch)
    link = &(*link)->next_batch;
  if (*link != NULL)
    *link = batch->next_batch;
}

/* Takes pieces of a batch until there are no more; with the lock held before
 * and after. */
static void take_pieces(clb__batch *batch) {
  while (batch->next < batch->pieces) {
    size_t index = batch->next++;
    if (batch->next == batch->pieces)
      unlink_batch(batch);
    batch->running++;
    pthread_mutex_unlock(&lock);
    batch->piece(batch->user, index);
    pthread_mutex_lock(&lock);
    batch->running--;
  }
}

/* The first batch that may have one more helper. */
static clb__batch *to_help(void) {
  clb__batch *batch = batches;

  while (batch != NULL && batch->helping >= batch->helpers)
    batch = batch->next_batch;
  return batch;
}

static void *work(void *user) {
  crew *mine = user;

  pthread_mutex_lock(&lock);
  while (!mine->over) {
    clb__batch *batch = to_help();
    if (batch == NULL) {
      mine->idle++;
      pthread_cond_wait(&mine->work, &lock);
      mine->idle--;
      continue;
    }
    batch->helping++;
    take_pieces(batch);
    /* The one who asked may be gone as soon as nothing runs. */
    if (--batch->helping == 0 && batch->running == 0)
      pthread_cond_broadcast(&ended);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

unsigned clb__crew_size(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);

  return cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (unsigned)cores;
}

/* With the lock held. */
static crew *start(void) {
  crew *made = calloc(1, sizeof *made);

  if (made == NULL)
    return NULL;
  pthread_cond_init(&made->work, NULL);
  /* The caller is one more. */
  made->threads =
      clb__threads_start(made->thread, clb__crew_size() - 1, work, made);
  if (made->threads > 0)
    return made;
  pthread_cond_destroy(&made->work);
  free(made);
  return NULL;
}

bool clb__crew_join(void) {
  bool there;

  pthread_mutex_lock(&lock);
  if (current == NULL)
    current = start();
  there = current != NULL;
  if (there)
    current->users++;
  pthread_mutex_unlock(&lock);
  return there;
}

void clb__crew_leave(void) {
  crew *last = NULL;
  unsigned i;

  pthread_mutex_lock(&lock);
  if (--current->users == 0) {
    last = current;
    current = NULL;
    last->over = true;
    pthread_cond_broadcast(&last->work);
  }
  pthread_mutex_unlock(&lock);
  if (last == NULL)
    return;
  for (i = 0; i < last->threads; i++)
    pthread_join(last->thread[i], NULL);
  pthread_cond_destroy(&last->work);
  free(last);
}

void clb__crew_post(clb__batch *batch) {
  clb__batch **link = &batches;
  size_t wake = batch->helpers;

  batch->next = batch->running = 0;
  batch->helping = 0;
  batch->next_batch = NULL;
  if (batch->helpers == 0 || batch->pieces == 0)
    return; /* for finish alone */
  pthread_mutex_lock(&lock);
  while (*link != NULL)
    link = &(*link)->next_batch;
  *link = batch;
  if (wake > batch->pieces)
    wake = batch->pieces;
  if (wake > current->idle)
    wake = current->idle;
  while (wake-- > 0)
    pthread_cond_signal(&current->work);
  pthread_mutex_unlock(&lock);
}

void clb__crew_finish(clb__batch *batch) {
  if (batch->helpers == 0) {
    for (; batch->next < batch->pieces; batch->next++)
      batch->piece(batch->user, batch->next);
    return;
  }
  pthread_mutex_lock(&lock);
  take_pieces(batch);
  while (batch->running > 0 || batch->helping > 0)
    pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
}

typedef struct copy {
  unsigned char *to;
  const unsigned char *from;
  size_t length;
} copy;

static void copy_piece(void *user, size_t index) {
  const copy *all = user;
  size_t at = index * COPY_PIECE, left = all->length - at;

  memcpy(all->to + at, all->from + at, left < COPY_PIECE ? left : COPY_PIECE);
}

void clb__crew_copy(unsigned helpers, void *to, const void *from,
                    size_t length) {
  copy all = {to, from, length};
  clb__batch batch = {.piece = copy_piece, .user = &all, .helpers = helpers};

  if (helpers == 0 || length <= 2 * COPY_PIECE) {
    memcpy(to, from, length);
    return;
  }
  batch.pieces = (length + COPY_PIECE - 1) / COPY_PIECE;
  clb__crew_post(&batch);
  clb__crew_finish(&batch);
}
