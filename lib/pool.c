/*
 * pool.c - the library's own threads, for the whole process.
 *
 * Owns the threads and the list of jobs.  A thread may sleep in a job that
 * waits for a command of the program's, but never the last one: it looks for
 * jobs that need not wait, since the program may want those to end first.
 */
#include "config.h"

#include "pool.h"
#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FEWEST_THREADS 2
#define MOST_THREADS 4

/* The last thread looks at so many jobs, or at all of them once, then pauses,
 * longer each time that it finds none. */
#define LOOKS 16
#define SHORTEST_PAUSE_NS 250000L
#define MOST_DOUBLINGS 4

/* More jobs than this are a backlog, and a caller takes so many off it. */
#define BACKLOG 512
#define HELPINGS 2

/* What the threads of one generation share; a generation ends with its last
 * user, and may end after the next has begun. */
typedef struct thread_pool {
  pthread_cond_t work;
  clb__job *first, **last;
  size_t jobs;
  unsigned users, threads;
  unsigned asleep; /* threads in a job that was not ready */
  bool over;
  pthread_t thread[MOST_THREADS];
} thread_pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static thread_pool *current;
static _Thread_local bool inside; /* a thread of the library's */

static void append(thread_pool *pool, clb__job *job) {
  job->next = NULL;
  *pool->last = job;
  pool->last = &job->next;
  pool->jobs++;
}

static clb__job *take(thread_pool *pool) {
  clb__job *job = pool->first;

  if (job == NULL)
    return NULL;
  pool->first = job->next;
  if (pool->first == NULL)
    pool->last = &pool->first;
  pool->jobs--;
  return job;
}

/* Runs the job, or puts it back; with the lock held before and after. */
static bool try_job(thread_pool *pool, clb__job *job) {
  bool ready;

  pthread_mutex_unlock(&lock);
  ready = job->ready(job);
  pthread_mutex_lock(&lock);
  if (!ready && pool->asleep + 1 >= pool->threads) {
    append(pool, job);
    return false;
  }
  pool->asleep += !ready;
  pthread_mutex_unlock(&lock);
  job->run(job);
  pthread_mutex_lock(&lock);
  pool->asleep -= !ready;
  return true;
}

static void pause_looking(unsigned pauses) {
  unsigned doublings = pauses < MOST_DOUBLINGS ? pauses : MOST_DOUBLINGS;
  struct timespec time = {0, SHORTEST_PAUSE_NS << doublings};

  pthread_mutex_unlock(&lock);
  nanosleep(&time, NULL);
  pthread_mutex_lock(&lock);
}

static void *work(void *user) {
  thread_pool *pool = user;
  clb__job *job;
  unsigned looks = 0, pauses = 0;

  inside = true;
  pthread_mutex_lock(&lock);
  for (;;) {
    job = take(pool);
    if (job == NULL && pool->over)
      break;
    if (job == NULL) {
      pthread_cond_wait(&pool->work, &lock);
    } else if (try_job(pool, job)) {
      looks = pauses = 0;
    } else if (++looks >= LOOKS || looks >= pool->jobs) {
      pause_looking(pauses++);
      looks = 0;
    }
  }
  if (--pool->threads > 0) {
    pool = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (pool != NULL) { /* the last one out */
    pthread_cond_destroy(&pool->work);
    free(pool);
  }
  return NULL;
}

static unsigned wanted(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);

  return cores < FEWEST_THREADS ? FEWEST_THREADS
         : cores > MOST_THREADS ? MOST_THREADS
                                : (unsigned)cores;
}

/* With the lock held; NULL if not even one thread could be started. */
static thread_pool *start(void) {
  thread_pool *pool = calloc(1, sizeof *pool);

  if (pool == NULL)
    return NULL;
  pthread_cond_init(&pool->work, NULL);
  pool->last = &pool->first;
  pool->threads = clb__threads_start(pool->thread, wanted(), work, pool);
  if (pool->threads > 0)
    return pool;
  pthread_cond_destroy(&pool->work);
  free(pool);
  return NULL;
}

bool clb__pool_inside(void) {
  return inside;
}

clb_status clb__pool_join(void) {
  bool there;

  pthread_mutex_lock(&lock);
  if (current == NULL)
    current = start();
  there = current != NULL;
  if (there)
    current->users++;
  pthread_mutex_unlock(&lock);
  return there ? CLB_OK
               : clb__fail(CLB_OUT_OF_MEMORY, "no thread could be started");
}

void clb__pool_leave(void) {
  pthread_t thread[MOST_THREADS];
  unsigned threads = 0, i;
  thread_pool *pool;

  pthread_mutex_lock(&lock);
  pool = current;
  if (--pool->users == 0) {
    current = NULL;
    pool->over = true;
    threads = pool->threads;
    for (i = 0; i < threads; i++)
      thread[i] = pool->thread[i];
    pthread_cond_broadcast(&pool->work);
  }
  pthread_mutex_unlock(&lock);
  for (i = 0; i < threads; i++)
    if (pthread_equal(thread[i], pthread_self()))
      pthread_detach(thread[i]); /* ends when the job is done */
    else
      pthread_join(thread[i], NULL);
}

/* Ends the first job if nobody wants it; with the lock held before and
 * after. */
static bool end_unwanted(thread_pool *pool) {
  clb__job *job = pool->first;

  if (pool->jobs <= BACKLOG || job->wanted(job))
    return false;
  (void)take(pool);
  pthread_mutex_unlock(&lock);
  job->run(job);
  pthread_mutex_lock(&lock);
  return true;
}

void clb__pool_run(clb__job *job) {
  thread_pool *pool;
  unsigned i;

  pthread_mutex_lock(&lock);
  pool = current;
  append(pool, job);
  pthread_cond_signal(&pool->work);
  for (i = 0; i < HELPINGS && end_unwanted(pool); i++)
    ;
  pthread_mutex_unlock(&lock);
}
