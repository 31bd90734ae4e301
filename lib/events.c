/*
 * events.c - waiting for OpenCL events by the host.
 *
 * No driver is trusted to wake a blocking call of ours when an event fails, to
 * run a callback, or to carry an error along a wait list (each was seen to
 * fail): the status that an event ends with is looked at, always.
 */
#include "config.h"

#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How often an event may refuse to be asked before it is given up. */
#define SETTLE_TRIES 20

/* In no list of the program's: the copy of a snapshot. */
#define OUR_OWN CL_UINT_MAX

typedef struct item {
  cl_event event;
  cl_uint index; /* in the program's list, or OUR_OWN */
} item;

struct clb__events {
  atomic_size_t refs;
  pthread_mutex_t lock;
  cl_int failed;  /* how the first one that failed ended; 0: none so far */
  cl_uint index;  /* of that one */
  cl_uint count;  /* not yet seen to have ended */
  item item[];
};

static cl_int status_of(cl_event event, cl_int *status) {
  return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                        sizeof *status, status, NULL);
}

bool clb__event_ended(cl_event event) {
  cl_int status = CL_QUEUED;

  return status_of(event, &status) == CL_SUCCESS && status <= CL_COMPLETE;
}

bool clb__event_ready(cl_event event) {
  cl_int status = CL_QUEUED;

  return status_of(event, &status) != CL_SUCCESS || status <= CL_COMPLETE;
}

clb_status clb__event_wait(cl_event event, cl_int *end) {
  cl_int waited = clWaitForEvents(1, &event);
  cl_int status = CL_QUEUED, err = status_of(event, &status);

  if (err == CL_SUCCESS && status <= CL_COMPLETE) {
    *end = status;
    return CLB_OK;
  }
  return waited != CL_SUCCESS ? clb__fail_cl(waited, "clWaitForEvents")
                              : clb__fail_cl(err, "clGetEventInfo");
}

/* Waits a little longer each time, up to a millisecond, and after a tenth of a
 * second up to four: little of the time that it took in all. */
static void nap(unsigned round) {
  struct timespec time = {0, 1000L << (round < 10    ? round
                                       : round < 100 ? 10
                                                     : 12)};

  nanosleep(&time, NULL);
}

/* clb__event_wait() that calls nothing in which a driver waits for a lock. */
static clb_status watch(cl_event event, cl_int *end) {
  cl_int status = CL_QUEUED, err;
  unsigned round;

  for (round = 0; (err = status_of(event, &status)) == CL_SUCCESS; round++) {
    if (status <= CL_COMPLETE) {
      *end = status;
      return CLB_OK;
    }
    nap(round);
  }
  return clb__fail_cl(err, "clGetEventInfo");
}

bool clb__event_settle(cl_event event) {
  cl_int status;
  unsigned round, refused = 0;

  for (round = 0; refused < SETTLE_TRIES; round++) {
    (void)clWaitForEvents(1, &event);
    if (status_of(event, &status) != CL_SUCCESS)
      refused++;
    else if (status <= CL_COMPLETE)
      return true;
    nap(round);
  }
  return false;
}

clb_status clb__event_fail(cl_int end, const char *what) {
  (void)clb__fail_cl(end, "event ended with");
  return clb__fail_prefix(CLB_DEVICE_ERROR, "%s", what);
}

static clb_status check_event(clb_context *context, cl_event event,
                              cl_uint index) {
  cl_context owner = NULL;
  cl_int err = event == NULL ? CL_INVALID_EVENT
                             : clGetEventInfo(event, CL_EVENT_CONTEXT,
                                              sizeof owner, &owner, NULL);

  if (err == CL_INVALID_EVENT)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "wait list: item %u is not an event", (unsigned)index);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetEventInfo");
  if (owner != context->cl)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "wait list: item %u is of another OpenCL context",
                     (unsigned)index);
  return CLB_OK;
}

/* A list of up to count events, none so far. */
static clb__events *make_empty(cl_uint count) {
  clb__events *events = malloc(sizeof *events + count * sizeof(item));

  if (events == NULL) {
    (void)clb__fail(CLB_OUT_OF_MEMORY, "wait list: no memory");
    return NULL;
  }
  atomic_init(&events->refs, 1);
  pthread_mutex_init(&events->lock, NULL);
  events->failed = CL_COMPLETE;
  events->count = 0;
  return events;
}

static clb_status append(clb__events *events, cl_event event, cl_uint index) {
  cl_int err = clRetainEvent(event);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainEvent");
  events->item[events->count++] = (item){event, index};
  return CLB_OK;
}

clb_status clb__events_make(clb_context *context, cl_uint count,
                            const cl_event *list, clb__events **out) {
  clb__events *events;
  clb_status status = CLB_OK;
  cl_uint i;

  if (count > 0 && list == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_bytes_from_buffer_after: num_events is %u, and "
                     "wait_list is NULL",
                     (unsigned)count);
  for (i = 0; i < count && status == CLB_OK; i++)
    status = check_event(context, list[i], i);
  if (status != CLB_OK)
    return status;
  events = make_empty(count);
  if (events == NULL)
    return CLB_OUT_OF_MEMORY;
  for (i = 0; i < count && status == CLB_OK; i++)
    status = append(events, list[i], i);
  if (status != CLB_OK)
    clb__events_release(events);
  else
    *out = events;
  return status;
}

clb_status clb__events_make_behind(clb__events *before, cl_event event,
                                   clb__events **out) {
  clb__events *events;
  clb_status status = CLB_OK;
  cl_uint i;

  if (before != NULL)
    pthread_mutex_lock(&before->lock);
  events = make_empty(before != NULL ? before->count + 1 : 1);
  if (events == NULL)
    status = CLB_OUT_OF_MEMORY;
  for (i = 0; before != NULL && i < before->count && status == CLB_OK; i++)
    status = append(events, before->item[i].event, before->item[i].index);
  if (before != NULL)
    pthread_mutex_unlock(&before->lock);
  if (status == CLB_OK)
    status = append(events, event, OUR_OWN);
  if (status != CLB_OK)
    clb__events_release(events);
  else
    *out = events;
  return status;
}

clb__events *clb__events_retain(clb__events *events) {
  if (events != NULL)
    atomic_fetch_add_explicit(&events->refs, 1, memory_order_relaxed);
  return events;
}

void clb__events_release(clb__events *events) {
  cl_uint i;

  if (events == NULL || !clb__refs_last(&events->refs))
    return;
  for (i = 0; i < events->count; i++)
    (void)clReleaseEvent(events->item[i].event);
  pthread_mutex_destroy(&events->lock);
  free(events);
}

/* A command that nobody flushed may never start: OpenCL 1.2, 5.13. */
static clb_status flush_queue_of(cl_event event) {
  cl_command_queue queue = NULL;
  cl_int err = clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue,
                              &queue, NULL);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetEventInfo");
  if (queue == NULL) /* a user event */
    return CLB_OK;
  err = clFlush(queue);
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, "clFlush");
}

/* One after the other, with no lock held: a flush may block.  From the last to
 * the first, since others move the last to the place of one that has ended. */
static clb_status flush_queues(clb__events *events) {
  cl_uint left = CL_UINT_MAX;

  for (;;) {
    cl_event event = NULL;
    cl_int err = CL_SUCCESS;
    clb_status status;

    pthread_mutex_lock(&events->lock);
    if (left > events->count)
      left = events->count;
    if (left > 0) {
      event = events->item[--left].event;
      err = clRetainEvent(event);
    }
    pthread_mutex_unlock(&events->lock);
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clRetainEvent");
    if (event == NULL)
      return CLB_OK;
    status = flush_queue_of(event);
    (void)clReleaseEvent(event);
    if (status != CLB_OK)
      return status;
  }
}

static clb_status fail_of(const clb__events *events) {
  char what[40] = "snapshot";

  if (events->index != OUR_OWN)
    (void)snprintf(what, sizeof what, "wait list: item %u",
                   (unsigned)events->index);
  return clb__event_fail(events->failed, what);
}

/* Lets go of those that have ended well; with the lock held. */
static clb_status look(clb__events *events) {
  cl_uint i = 0;

  while (i < events->count) {
    const item *it = &events->item[i];
    cl_int state = CL_QUEUED, err = status_of(it->event, &state);
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clGetEventInfo");
    if (state < CL_COMPLETE && events->failed == CL_COMPLETE) {
      events->failed = state;
      events->index = it->index;
    } else if (state == CL_COMPLETE) {
      (void)clReleaseEvent(it->event);
      events->item[i] = events->item[--events->count];
      continue;
    }
    i++;
  }
  return events->failed < CL_COMPLETE ? fail_of(events) : CLB_OK;
}

clb_status clb__events_flush(clb__events *events) {
  clb_status status;

  pthread_mutex_lock(&events->lock);
  status = look(events);
  pthread_mutex_unlock(&events->lock);
  return status == CLB_OK ? flush_queues(events) : status;
}

bool clb__events_ready(clb__events *events) {
  bool ready;

  pthread_mutex_lock(&events->lock);
  ready = look(events) != CLB_OK || events->count == 0;
  pthread_mutex_unlock(&events->lock);
  return ready;
}

clb_status clb__events_watch(clb__events *events) {
  unsigned round;

  for (round = 0;; round++) {
    clb_status status;
    bool over;

    pthread_mutex_lock(&events->lock);
    status = look(events);
    over = status != CLB_OK || events->count == 0;
    pthread_mutex_unlock(&events->lock);
    if (over)
      return status;
    nap(round);
  }
}

clb_status clb__events_wait(clb__events *events) {
  unsigned round;

  for (round = 0;; round++) {
    clb_status status;
    cl_event only = NULL;

    pthread_mutex_lock(&events->lock);
    status = look(events);
    if (status != CLB_OK || events->count == 0) {
      pthread_mutex_unlock(&events->lock);
      return status;
    }
    /* Several are watched in turn: one that fails must be seen while another
     * is pending.  A single one can be slept on. */
    if (events->count == 1 &&
        clRetainEvent(events->item[0].event) == CL_SUCCESS)
      only = events->item[0].event;
    pthread_mutex_unlock(&events->lock);

    if (round == 0)
      status = flush_queues(events);
    if (only != NULL) {
      cl_int end;
      if (status == CLB_OK)
        status = clb__event_wait(only, &end);
      (void)clReleaseEvent(only);
    } else if (status == CLB_OK) {
      nap(round);
    }
    if (status != CLB_OK)
      return status;
  }
}

clb_status clb__queue_mark(clb_context *context, cl_event *out) {
  cl_event marker;
  cl_int err = clEnqueueMarkerWithWaitList(context->program, 0, NULL, &marker);

  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clEnqueueMarkerWithWaitList");
  err = clFlush(context->program);
  if (err != CL_SUCCESS) {
    (void)clReleaseEvent(marker);
    return clb__fail_cl(err, "clFlush");
  }
  *out = marker;
  return CLB_OK;
}

/* PoCL wakes those who wait for an event that fails, lets go of its own
 * reference, and then locks the event once more: it aborts if that was the last
 * one (seen with 3.1 under load, one time in ten).  So a marker that failed is
 * released only when others have failed after it. */
static void keep_failed(clb_context *context, cl_event marker) {
  cl_event *place, old;

  pthread_mutex_lock(&context->lock);
  place = &context->failed[context->failures++ % CLB__KEPT_MARKERS];
  old = *place;
  *place = marker;
  pthread_mutex_unlock(&context->lock);
  if (old != NULL)
    (void)clReleaseEvent(old);
}

void clb__markers_end(clb_context *context) {
  unsigned i;

  if (context->failures > 0)
    nap(10); /* for the last of them: see above */
  for (i = 0; i < CLB__KEPT_MARKERS; i++)
    if (context->failed[i] != NULL)
      (void)clReleaseEvent(context->failed[i]);
}

/* How the marker ended says nothing else: an earlier command that failed counts
 * as ended. */
static void give_marker(clb_context *context, cl_event marker, cl_int end) {
  if (end < CL_COMPLETE)
    keep_failed(context, marker);
  else
    (void)clReleaseEvent(marker);
}

clb_status clb__marker_wait(clb_context *context, cl_event marker) {
  cl_int end = CL_COMPLETE;
  clb_status status = clb__event_wait(marker, &end);

  give_marker(context, marker, end);
  return status;
}

clb_status clb__marker_watch(clb_context *context, cl_event marker) {
  cl_int end = CL_COMPLETE;
  clb_status status = watch(marker, &end);

  give_marker(context, marker, end);
  return status;
}
