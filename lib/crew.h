/*
 * crew.h - host threads that copy bytes from memory to memory.
 *
 * A batch is cut into pieces; the threads and whoever asked for it take them
 * one after the other.  Pieces wait for nothing, so a batch always ends.
 */
#ifndef CLB_CREW_H
#define CLB_CREW_H

#include <stdbool.h>
#include <stddef.h>

/* Lives from post to finish, in the caller's memory. */
typedef struct clb__batch {
  void (*piece)(void *user, size_t index);
  void *user;
  size_t pieces;
  unsigned helpers; /* most threads beside the caller */
  /* The crew's: */
  struct clb__batch *next_batch;
  size_t next, running;
  unsigned helping;
} clb__batch;

/* One more user, and one less; the threads end with the last.  false: there is
 * no thread, and callers do all themselves. */
bool clb__crew_join(void);
void clb__crew_leave(void);

/* Threads that a machine like this one has for a copy, the caller's too. */
unsigned clb__crew_size(void);

/* Lets the crew begin.  Fields before the crew's are the caller's, who has
 * joined where helpers is not 0. */
void clb__crew_post(clb__batch *batch);

/* Helps until no piece is left to take, then waits for those that others
 * took. */
void clb__crew_finish(clb__batch *batch);

/* memcpy() by the caller and up to so many helpers. */
void clb__crew_copy(unsigned helpers, void *to, const void *from,
                    size_t length);

#endif
