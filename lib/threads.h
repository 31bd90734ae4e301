/*
 * threads.h - how the library's own threads are started.
 */
#ifndef CLB_THREADS_H
#define CLB_THREADS_H

#include <pthread.h>

/* Starts up to so many, with all signals blocked: those are the program's.
 * Returns how many were to be had. */
unsigned clb__threads_start(pthread_t *thread, unsigned most,
                            void *(*work)(void *user), void *user);

#endif
