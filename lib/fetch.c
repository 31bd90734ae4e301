/*
 * fetch.c - the first access: one brings, the others sleep.
 *
 * If the one who brings fails, each of those who waited makes its own try.
 */
#include "config.h"

#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct clb__fetch {
  pthread_cond_t done;
  unsigned waiters;
  bool over;
  clb__job *first, **last; /* followers */
};

static clb__fetch *fetch_make(void) {
  clb__fetch *fetch = malloc(sizeof *fetch);
  pthread_condattr_t attributes;

  if (fetch == NULL) {
    (void)clb__fail(CLB_OUT_OF_MEMORY, "no memory for an access");
    return NULL;
  }
  pthread_condattr_init(&attributes);
#ifndef __APPLE__
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
  pthread_cond_init(&fetch->done, &attributes);
  pthread_condattr_destroy(&attributes);
  fetch->waiters = 0;
  fetch->over = false;
  fetch->first = NULL;
  fetch->last = &fetch->first;
  return fetch;
}

static void fetch_free(clb__fetch *fetch) {
  pthread_cond_destroy(&fetch->done);
  free(fetch);
}

/* Sleeps until the access is over or the time is up; with the lock held. */
static bool sleep_on(clb__fetch *fetch, pthread_mutex_t *lock,
                     const struct timespec *until) {
  bool over;
  int err = 0;

  fetch->waiters++;
  while (!fetch->over && err != ETIMEDOUT)
    err = until == NULL ? pthread_cond_wait(&fetch->done, lock)
                        : pthread_cond_timedwait(&fetch->done, lock, until);
  over = fetch->over;
  if (--fetch->waiters == 0 && over)
    fetch_free(fetch);
  return over;
}

clb_status clb__fetch_claim(clb_bytes *bytes, _Atomic(unsigned char *) *what,
                            bool *mine) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__fetch *fetch = fetch_make();

  *mine = false;
  if (fetch == NULL)
    return CLB_OUT_OF_MEMORY;
  pthread_mutex_lock(lock);
  while (atomic_load(what) == NULL && bytes->fetch != NULL)
    (void)sleep_on(bytes->fetch, lock, NULL);
  *mine = atomic_load(what) == NULL && bytes->fetch == NULL;
  if (*mine)
    bytes->fetch = fetch;
  pthread_mutex_unlock(lock);
  if (!*mine)
    fetch_free(fetch);
  return CLB_OK;
}

clb_status clb__fetch_queue(clb_bytes *bytes, clb__follower *follower) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__fetch *fetch = fetch_make();
  bool there;

  if (fetch == NULL)
    return CLB_OUT_OF_MEMORY;
  follower->job.next = NULL;
  pthread_mutex_lock(lock);
  there = atomic_load(&bytes->data) != NULL;
  follower->claimed = !there && bytes->fetch == NULL;
  if (follower->claimed) {
    bytes->fetch = fetch;
    fetch = NULL;
  } else if (!there) {
    *bytes->fetch->last = &follower->job;
    bytes->fetch->last = &follower->job.next;
  }
  pthread_mutex_unlock(lock);
  if (fetch != NULL)
    fetch_free(fetch);
  else
    clb__pool_run(&follower->job);
  if (there)
    follower->job.run(&follower->job);
  return CLB_OK;
}

/* Takes the first follower out, to go on with the access. */
static clb__follower *next_to_try(clb__fetch *fetch) {
  clb__follower *next = (clb__follower *)fetch->first;

  fetch->first = next->job.next;
  if (fetch->first == NULL)
    fetch->last = &fetch->first;
  next->claimed = true;
  return next;
}

void clb__fetch_settle(clb_bytes *bytes, clb_status status, clb__copy *copy,
                       clb__error *failure) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__follower *next = NULL;
  clb__job *followers = NULL;
  clb__error *old = NULL;
  clb__fetch *fetch;

  pthread_mutex_lock(lock);
  if (copy != NULL) {
    bytes->copy = copy;
    atomic_store(&bytes->data, copy->data);
  }
  if (status == CLB_OK || failure != NULL) {
    old = bytes->failure;
    bytes->failure = failure;
  }
  fetch = bytes->fetch;
  if (fetch->first != NULL && atomic_load(&bytes->data) == NULL) {
    next = next_to_try(fetch);
  } else {
    followers = fetch->first;
    bytes->fetch = NULL;
    fetch->over = true;
    if (fetch->waiters > 0)
      pthread_cond_broadcast(&fetch->done);
    else
      fetch_free(fetch);
  }
  pthread_mutex_unlock(lock);
  free(old);
  if (next != NULL)
    clb__pool_run(&next->job);
  while (followers != NULL) {
    clb__job *job = followers;
    followers = job->next;
    job->run(job);
  }
}

clb_status clb__bytes_bring(clb_bytes *bytes, clb_bytes *then,
                            clb__port *port) {
  clb__error *failure = NULL;
  clb__copy *copy = NULL;
  clb_status status = clb__copy_make(bytes, &copy);

  if (status != CLB_OK) {
    status = clb__bytes_blame(bytes, status, 0, bytes->length);
    if (port != NULL)
      clb__bytes_drop(port);
  } else {
    clb__target target = {.memory = copy->data, .fresh = true};
    status = port != NULL
                 ? clb__bytes_get_ordered(then, port, &target)
                 : clb__bytes_get(bytes, 0, bytes->length, &target);
  }
  if (status != CLB_OK) {
    clb__copy_release(copy);
    copy = NULL;
    if (port != NULL && (failure = malloc(sizeof *failure)) != NULL)
      clb__error_save(failure, status);
  }
  clb__fetch_settle(bytes, status, copy, failure);
  return status;
}

clb_status clb__bytes_materialise(clb_bytes *bytes) {
  bool mine;
  clb_status status = clb__fetch_claim(bytes, &bytes->data, &mine);

  return status == CLB_OK && mine ? clb__bytes_bring(bytes, NULL, NULL)
                                  : status;
}

static struct timespec after(uint64_t ns) {
  struct timespec until;

#ifdef __APPLE__
  clock_gettime(CLOCK_REALTIME, &until);
#else
  clock_gettime(CLOCK_MONOTONIC, &until);
#endif
  until.tv_sec += (time_t)(ns / 1000000000u);
  until.tv_nsec += (long)(ns % 1000000000u);
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  return until;
}

clb_status clb__fetch_wait(clb_bytes *bytes, uint64_t timeout_ns) {
  pthread_mutex_t *lock = clb__lock(bytes);
  /* A time this far away is for ever, and does not overflow. */
  bool for_ever = timeout_ns / 1000000000u > 1000000000u;
  struct timespec until = after(for_ever ? 0 : timeout_ns);
  bool over = true;

  pthread_mutex_lock(lock);
  if (bytes->fetch != NULL)
    over = sleep_on(bytes->fetch, lock, for_ever ? NULL : &until);
  pthread_mutex_unlock(lock);
  return over ? CLB_OK : CLB_TIMEOUT;
}
