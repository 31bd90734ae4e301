/*
 * threads.c - starts threads for the pool and the crew.
 */
#include "config.h"

#include "threads.h"

#include <signal.h>

unsigned clb__threads_start(pthread_t *thread, unsigned most,
                            void *(*work)(void *user), void *user) {
  sigset_t all, before;
  unsigned started = 0;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < most &&
         pthread_create(&thread[started], NULL, work, user) == 0)
    started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}
