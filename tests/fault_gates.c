/*
 * fault_gates.c - commands that are held: each waits for a user event of ours,
 * the gate, which a test opens, or a thread that lives while gates with a time
 * are closed.
 */
#include "fault_layer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define NS 1000000000

struct gate {
  struct gate *next;
  cl_event event;
  int timed;
  struct timespec at; /* when a timed one opens, CLOCK_REALTIME */
};

/* Guarded by lock.  Whoever takes a gate off the list opens it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct gate *gates;
static int timer_runs;

/* Opening runs callbacks in some drivers: no lock may be held. */
static void gate_open(struct gate *gate) {
  fault__target.clSetUserEventStatus(gate->event, CL_COMPLETE);
  fault__target.clReleaseEvent(gate->event);
  free(gate);
}

static int is_before(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec
                                : a->tv_nsec < b->tv_nsec;
}

/* Where the list points to the timed gate that opens first; NULL: to none. */
static struct gate **first_timed(void) {
  struct gate **first = NULL, **link;

  for (link = &gates; *link != NULL; link = &(*link)->next)
    if ((*link)->timed &&
        (first == NULL || is_before(&(*link)->at, &(*first)->at)))
      first = link;
  return first;
}

static void *timer(void *unused) {
  struct timespec at, now;
  struct gate **link, *gate;

  (void)unused;
  pthread_mutex_lock(&lock);
  while ((link = first_timed()) != NULL) {
    gate = *link;
    at = gate->at;
    clock_gettime(CLOCK_REALTIME, &now);
    if (is_before(&now, &at)) {
      pthread_cond_timedwait(&changed, &lock, &at);
      continue; /* the list may be another */
    }
    *link = gate->next;
    pthread_mutex_unlock(&lock);
    gate_open(gate);
    pthread_mutex_lock(&lock);
  }
  timer_runs = 0;
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Starts the timer thread if none runs; with the lock held. */
static int timer_start(void) {
  pthread_t thread;

  if (timer_runs) {
    pthread_cond_signal(&changed);
    return 0;
  }
  if (pthread_create(&thread, NULL, timer, NULL) != 0)
    return -1;
  pthread_detach(thread);
  timer_runs = 1;
  return 0;
}

static int gate_add(struct gate *gate, uint64_t ns) {
  int result = 0;

  if (ns > 0) {
    clock_gettime(CLOCK_REALTIME, &gate->at);
    gate->at.tv_sec += (time_t)(ns / NS);
    gate->at.tv_nsec += (long)(ns % NS);
    if (gate->at.tv_nsec >= NS) {
      gate->at.tv_nsec -= NS;
      gate->at.tv_sec++;
    }
    gate->timed = 1;
  }
  pthread_mutex_lock(&lock);
  gate->next = gates;
  gates = gate;
  if (gate->timed && timer_start() != 0) {
    gates = gate->next;
    result = -1;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

cl_int fault__gate_make(cl_command_queue queue, uint64_t ns, cl_event *out) {
  struct gate *gate = calloc(1, sizeof *gate);
  cl_context context;
  cl_event event;
  cl_int error;

  if (gate == NULL)
    return CL_OUT_OF_HOST_MEMORY;
  error = fault__target.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT,
                                              sizeof context, &context, NULL);
  if (error == CL_SUCCESS)
    event = gate->event = fault__target.clCreateUserEvent(context, &error);
  if (error != CL_SUCCESS) {
    free(gate);
    return error;
  }
  fault__target.clRetainEvent(event); /* the caller's; the gate may open now */
  if (gate_add(gate, ns) != 0) {
    gate_open(gate);
    fault__target.clReleaseEvent(event);
    return CL_OUT_OF_HOST_MEMORY;
  }
  *out = event;
  return CL_SUCCESS;
}

unsigned fault__gates_held(void) {
  const struct gate *gate;
  unsigned count = 0;

  pthread_mutex_lock(&lock);
  for (gate = gates; gate != NULL; gate = gate->next)
    count++;
  pthread_mutex_unlock(&lock);
  return count;
}

void fault__gates_open(void) {
  struct gate *gate, *next;

  pthread_mutex_lock(&lock);
  gate = gates;
  gates = NULL;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  for (; gate != NULL; gate = next) {
    next = gate->next;
    gate_open(gate);
  }
}
