/*
 * prefetch.c - materialising in the background.
 *
 * The first access is claimed and what it has to see is ordered before
 * prefetch returns; a thread of the pool waits and moves.  The job keeps the
 * handle; if nobody else does when its turn comes, nothing is read.  It reads
 * from a clone, so that a snapshot of the handle does not have to wait.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>

typedef struct prefetch_job {
  clb__follower follower;
  clb_bytes *bytes;
  clb_bytes *then; /* of what the handle was when this was ordered */
  clb__port port;
  cl_event done; /* a user event, or NULL */
} prefetch_job;

static void complete(cl_event done, clb_status status) {
  cl_int code = CL_COMPLETE;

  if (done == NULL)
    return;
  if (status != CLB_OK)
    code = clb_error_cl() < 0 ? clb_error_cl() : CL_OUT_OF_RESOURCES;
  (void)clSetUserEventStatus(done, code);
  (void)clReleaseEvent(done);
}

static void run(clb__job *job) {
  prefetch_job *prefetch = (prefetch_job *)job;
  clb_bytes *bytes = prefetch->bytes;
  clb_status status = CLB_OK;

  if (!prefetch->follower.claimed) { /* the bytes are there */
    clb__bytes_drop(&prefetch->port);
  } else if (atomic_load(&bytes->refs) == 1) { /* released: nobody looks */
    clb__bytes_drop(&prefetch->port);
    clb__fetch_settle(bytes, CLB_CANCELLED, NULL, NULL);
  } else {
    status = clb__bytes_bring(bytes, prefetch->then, &prefetch->port);
  }
  complete(prefetch->done, status);
  clb_bytes_release(prefetch->then);
  clb_bytes_release(bytes);
  free(prefetch);
}

static bool ready(clb__job *job) {
  prefetch_job *prefetch = (prefetch_job *)job;

  return atomic_load(&prefetch->bytes->refs) == 1 ||
         clb__bytes_ready(prefetch->then, &prefetch->port);
}

static bool wanted(clb__job *job) {
  return atomic_load(&((prefetch_job *)job)->bytes->refs) != 1;
}

/* The pool is used from the first prefetch until the end of what the handle is
 * of. */
static clb_status use_pool(clb_bytes *bytes) {
  bool *pooled = bytes->source.ops->pooled(&bytes->source);
  clb_status status = CLB_OK;

  pthread_mutex_lock(clb__lock(bytes));
  if (!*pooled) {
    status = clb__pool_join();
    *pooled = status == CLB_OK;
  }
  pthread_mutex_unlock(clb__lock(bytes));
  return status;
}

static clb_status make_done(clb_bytes *bytes, cl_event *done) {
  cl_int err;

  *done = clCreateUserEvent(bytes->source.u.device.context->cl, &err);
  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, "clCreateUserEvent");
}

/* Nothing is running, and nothing is needed: an event that has ended. */
static clb_status done_already(clb_bytes *bytes, cl_event *done) {
  clb_status status;
  cl_event event;

  if (done == NULL)
    return CLB_OK;
  status = make_done(bytes, &event);
  if (status != CLB_OK)
    return status;
  (void)clSetUserEventStatus(event, CL_COMPLETE);
  *done = event;
  return CLB_OK;
}

/* Orders and hands over to the pool; takes done over where it succeeds.  The
 * order is noted for one that only follows, too: what it might have to move
 * itself is what was there now, whatever waits for its event later. */
static clb_status start(clb_bytes *bytes, clb_bytes *then, cl_event done) {
  prefetch_job *prefetch = calloc(1, sizeof *prefetch);
  clb_status status;

  if (prefetch == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "prefetch: no memory");
  status = clb__bytes_order(then, &prefetch->port);
  if (status != CLB_OK) {
    free(prefetch);
    return status;
  }
  if (done != NULL) {
    cl_int err = clRetainEvent(done); /* the job's */
    if (err != CL_SUCCESS)
      status = clb__fail_cl(err, "clRetainEvent");
    else
      prefetch->done = done;
  }
  prefetch->follower.job.run = run;
  prefetch->follower.job.ready = ready;
  prefetch->follower.job.wanted = wanted;
  prefetch->bytes = clb_bytes_retain(bytes);
  prefetch->then = clb_bytes_retain(then);
  if (status == CLB_OK)
    status = clb__fetch_queue(bytes, &prefetch->follower);
  if (status != CLB_OK) {
    if (prefetch->done != NULL)
      (void)clReleaseEvent(prefetch->done);
    clb__bytes_drop(&prefetch->port);
    clb_bytes_release(prefetch->then);
    clb_bytes_release(bytes);
    free(prefetch);
  }
  return status;
}

clb_status clb_bytes_prefetch(clb_bytes *bytes, cl_event *done) {
  clb_bytes *then = NULL;
  cl_event event = NULL;
  clb_status status;

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_prefetch: bytes is NULL");
  if (done != NULL && !clb__bytes_on_device(bytes))
    return clb__bytes_blame(
        bytes,
        clb__fail(CLB_UNSUPPORTED, "prefetch: only contents of a device have "
                                   "an event"),
        0, bytes->length);
  if (bytes->length == 0 || atomic_load(&bytes->data) != NULL) {
    status = done_already(bytes, done);
  } else {
    status = clb_bytes_clone(bytes, &then);
    if (status != CLB_OK)
      return status;
    status = use_pool(bytes);
    if (status == CLB_OK && done != NULL)
      status = make_done(bytes, &event);
    if (status == CLB_OK)
      status = start(bytes, then, event);
    clb_bytes_release(then);
    if (status != CLB_OK && event != NULL) {
      (void)clSetUserEventStatus(event, CL_OUT_OF_RESOURCES);
      (void)clReleaseEvent(event);
    }
    if (status == CLB_OK && done != NULL)
      *done = event;
  }
  return status == CLB_OK
             ? CLB_OK
             : clb__bytes_blame(bytes, status, 0, bytes->length);
}

clb_status clb_bytes_wait(clb_bytes *bytes, uint64_t timeout_ns) {
  clb_status status;
  clb__error failure = {.status = CLB_OK};

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_wait: bytes is NULL");
  status = clb__fetch_wait(bytes, timeout_ns);
  if (status != CLB_OK)
    return status;
  pthread_mutex_lock(clb__lock(bytes));
  if (bytes->failure != NULL && atomic_load(&bytes->data) == NULL)
    failure = *bytes->failure;
  pthread_mutex_unlock(clb__lock(bytes));
  return clb__error_restore(&failure);
}
