/*
 * access.c - looking at the contents: read, copy_into, stream.
 *
 * Of threads that want a handle's contents together one brings them and the
 * others sleep; if it fails, each makes its own try.
 */
#include "config.h"

#include "bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct clb__copy {
  atomic_size_t refs;
  clb_context *context; /* whose host_bytes count it; NULL: nobody's */
  size_t size;
  unsigned char *data;
};

struct clb__fetch {
  pthread_cond_t done;
  unsigned waiters;
  bool over;
};

/* --- The host copy ---------------------------------------------------------- */

clb__copy *clb__copy_retain(clb__copy *copy) {
  if (copy != NULL)
    atomic_fetch_add_explicit(&copy->refs, 1, memory_order_relaxed);
  return copy;
}

void clb__copy_release(clb__copy *copy) {
  if (copy == NULL ||
      atomic_fetch_sub_explicit(&copy->refs, 1, memory_order_release) != 1)
    return;
  atomic_thread_fence(memory_order_acquire);
  if (copy->context != NULL) {
    clb__context_unhold(copy->context, copy->size);
    clb_context_release(copy->context);
  }
  free(copy->data);
  free(copy);
}

static clb_status copy_make(const clb_bytes *bytes, clb__copy **out) {
  clb_context *context = clb__source_is_device(&bytes->source)
                             ? bytes->source.u.device.context
                             : NULL;
  clb__copy *copy = malloc(sizeof *copy);
  clb_status status;
  void *data;

  if (copy == NULL || posix_memalign(&data, 64, bytes->length) != 0) {
    free(copy);
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu bytes",
                     bytes->length);
  }
  /* Counted once it is there: host_peak is of what was held. */
  status = context != NULL ? clb__context_hold(context, bytes->length) : CLB_OK;
  if (status != CLB_OK) {
    free(data);
    free(copy);
    return status;
  }
  atomic_init(&copy->refs, 1);
  copy->context = clb_context_retain(context);
  copy->size = bytes->length;
  copy->data = data;
  *out = copy;
  return CLB_OK;
}

/* --- One transfer ----------------------------------------------------------- */

clb_status clb__bytes_choose(const clb_bytes *bytes, size_t start, size_t end,
                             clb__plan *plan) {
  const clb__source *source = &bytes->source;
  size_t chunk = source->ops->chunk;
  clb__facts facts;
  clb__form form;
  clb_status status = source->ops->facts(source, CLB__GET, &facts);

  if (status != CLB_OK)
    return status;
  if (chunk == 0)
    chunk = source->u.device.context->chunk_size;
  clb__bytes_form(bytes, &form);
  return clb__plan_choose(plan, &facts, &form, bytes->window + start,
                          bytes->window + end, chunk, CLB__GET);
}

double clb__seconds(void) {
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void clb__bytes_log(const clb_bytes *bytes, clb_context *context,
                    const char *what, const clb__plan *plan, double since) {
  char words[320], line[CLB__MESSAGE_SIZE];

  if (!clb__context_logs(context))
    return;
  clb__plan_text(plan, words, sizeof words);
  (void)snprintf(line, sizeof line, "%.100s%s%s%s: %zu bytes in %.3f ms",
                 bytes->label != NULL ? bytes->label : "",
                 bytes->label != NULL ? ": " : "", what, words,
                 plan->end - plan->start, (clb__seconds() - since) * 1e3);
  clb__context_log(context, line);
}

clb_status clb__access_begin(clb__access *access, clb_bytes *bytes,
                             size_t start, size_t end) {
  clb_status status;

  access->bytes = bytes;
  access->port = (clb__port){.source = &bytes->source, .direction = CLB__GET};
  access->link = 0;
  access->since = clb__seconds();
  status = clb__bytes_choose(bytes, start, end, &access->plan);
  if (status == CLB_OK)
    status = bytes->source.ops->open(&access->port);
  return clb__bytes_blame(bytes, status, start, end);
}

clb_status clb__access_part(clb__access *access, size_t start, size_t end,
                            const clb__target *target) {
  clb_bytes *bytes = access->bytes;
  clb__plan part = access->plan;
  uint64_t link = 0;
  clb_status status;

  part.start = bytes->window + start;
  part.end = bytes->window + end;
  status = clb__transfer_get(&access->port, &part, target, &link);
  access->link += link;
  return clb__bytes_blame(bytes, status, start, end);
}

clb_status clb__access_end(clb__access *access) {
  const clb__plan *plan = &access->plan;
  clb_bytes *bytes = access->bytes;
  clb_status status = bytes->source.ops->close(&access->port);

  if (status == CLB_OK && clb__source_is_device(&bytes->source)) {
    clb_context *context = bytes->source.u.device.context;
    clb__context_count(context, plan->kind, plan->end - plan->start,
                       access->link);
    clb__bytes_log(bytes, context, "", plan, access->since);
  }
  return clb__bytes_blame(bytes, status, plan->start - bytes->window,
                          plan->end - bytes->window);
}

clb_status clb__bytes_get(clb_bytes *bytes, size_t start, size_t end,
                          const clb__target *target) {
  clb__access access;
  clb_status status = clb__access_begin(&access, bytes, start, end);

  if (status == CLB_OK)
    status = clb__access_part(&access, start, end, target);
  return status == CLB_OK ? clb__access_end(&access) : status;
}

/* --- First access ----------------------------------------------------------- */

/* Becomes the one who brings *what, or finds that it is there. */
static clb_status claim(clb_bytes *bytes, _Atomic(unsigned char *) *what,
                        bool *mine) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__fetch *fetch = malloc(sizeof *fetch);

  *mine = false;
  if (fetch == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for an access");
  pthread_mutex_lock(lock);
  while (atomic_load(what) == NULL && bytes->fetch != NULL) {
    clb__fetch *other = bytes->fetch;
    other->waiters++;
    while (!other->over)
      pthread_cond_wait(&other->done, lock);
    if (--other->waiters == 0) {
      pthread_cond_destroy(&other->done);
      free(other);
    }
  }
  *mine = atomic_load(what) == NULL;
  if (*mine) {
    pthread_cond_init(&fetch->done, NULL);
    fetch->waiters = 0;
    fetch->over = false;
    bytes->fetch = fetch;
  }
  pthread_mutex_unlock(lock);
  if (!*mine)
    free(fetch);
  return CLB_OK;
}

/* Lets the others go on; with the lock held. */
static void settle(clb_bytes *bytes) {
  clb__fetch *fetch = bytes->fetch;

  bytes->fetch = NULL;
  fetch->over = true;
  if (fetch->waiters > 0) {
    pthread_cond_broadcast(&fetch->done);
  } else {
    pthread_cond_destroy(&fetch->done);
    free(fetch);
  }
}

static clb_status materialise(clb_bytes *bytes) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__copy *copy = NULL;
  bool mine;
  clb_status status = claim(bytes, &bytes->data, &mine);

  if (status != CLB_OK || !mine)
    return status;
  status = copy_make(bytes, &copy);
  if (status != CLB_OK) {
    (void)clb__bytes_blame(bytes, status, 0, bytes->length);
  } else {
    clb__target target = {.memory = copy->data};
    status = clb__bytes_get(bytes, 0, bytes->length, &target);
  }
  pthread_mutex_lock(lock);
  if (status == CLB_OK) {
    bytes->copy = copy;
    atomic_store(&bytes->data, copy->data);
  }
  settle(bytes);
  pthread_mutex_unlock(lock);
  if (status != CLB_OK)
    clb__copy_release(copy);
  return status;
}

static clb_status map(clb_bytes *bytes) {
  pthread_mutex_t *lock = clb__lock(bytes);
  clb__parked *unmap = NULL;
  void *mapped = NULL;
  clb__form form;
  uint64_t first;
  bool mine;
  clb_status status;

  clb__bytes_form(bytes, &form);
  if (!clb__form_contiguous(&form))
    return CLB_WOULD_COPY;
  status = claim(bytes, &bytes->mapped, &mine);
  if (status != CLB_OK || !mine)
    return status;
  first = form.origin + bytes->window;
  status = clb__source_map(&bytes->source, first, bytes->length, &mapped,
                           &unmap);
  pthread_mutex_lock(lock);
  if (status == CLB_OK) {
    bytes->unmap = unmap;
    atomic_store(&bytes->mapped, mapped);
  }
  settle(bytes);
  pthread_mutex_unlock(lock);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  clb__context_count(bytes->source.u.device.context, CLB_PLAN_MAP,
                     bytes->length, 0);
  return CLB_OK;
}

clb_status clb_bytes_read(clb_bytes *bytes, clb_access access,
                          const void **data) {
  clb_place place;
  clb_status status;

  if (bytes == NULL || data == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "%s is NULL",
                     bytes == NULL ? "bytes" : "data");
  if (access != CLB_COPY && access != CLB_NO_COPY && access != CLB_MAP)
    return clb__fail(CLB_INVALID_ARGUMENT, "no such access: %d", (int)access);
  if (bytes->length == 0) {
    *data = clb__nothing;
    return CLB_OK;
  }
  if (access == CLB_MAP && clb__source_is_device(&bytes->source)) {
    status = map(bytes);
    if (status != CLB_OK)
      return status;
    atomic_store(&bytes->place, CLB_PLACE_MAPPED);
    *data = atomic_load(&bytes->mapped);
    return CLB_OK;
  }
  if (atomic_load(&bytes->data) == NULL) {
    if (access != CLB_COPY)
      return CLB_WOULD_COPY;
    status = materialise(bytes);
    if (status != CLB_OK)
      return status;
  }
  place = bytes->copy != NULL ? CLB_PLACE_HEAP
                              : (clb_place)bytes->source.place;
  atomic_store(&bytes->place, (unsigned char)place);
  *data = atomic_load(&bytes->data);
  return CLB_OK;
}

clb_status clb_bytes_copy_into(clb_bytes *bytes, size_t start, void *dst,
                               size_t length) {
  clb__target target = {.memory = dst};
  const unsigned char *data;
  clb_status status;
  size_t end;

  if (bytes == NULL || (dst == NULL && length > 0))
    return clb__fail(CLB_INVALID_ARGUMENT, "%s is NULL",
                     bytes == NULL ? "bytes" : "dst");
  if (clb__add_size(start, length, &end)) {
    status = clb__fail(CLB_OUT_OF_RANGE, "%zu bytes from %zu on overflow",
                       length, start);
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  }
  status = clb__bytes_range(bytes, start, end);
  if (status != CLB_OK || length == 0)
    return status;
  data = atomic_load(&bytes->data);
  if (data == NULL)
    return clb__bytes_get(bytes, start, end, &target);
  memcpy(dst, data + start, length);
  return CLB_OK;
}

/* Out of the host copy, in the same pieces as from elsewhere. */
static clb_status stream_host(clb_bytes *bytes, const unsigned char *data,
                              size_t start, size_t end,
                              const clb__target *target) {
  size_t chunk = clb__source_is_device(&bytes->source)
                     ? bytes->source.u.device.context->chunk_size
                     : bytes->source.ops->chunk;
  size_t at, piece;

  for (at = start; at < end; at += piece) {
    piece = end - at < chunk ? end - at : chunk;
    if (target->sink(data + at, piece, target->user) != 0) {
      clb_status status = clb__fail(CLB_CANCELLED, "stopped by the sink");
      return clb__bytes_blame(bytes, status, start, end);
    }
  }
  return CLB_OK;
}

clb_status clb_bytes_stream(clb_bytes *bytes, size_t start, size_t end,
                            clb_sink sink, void *user) {
  clb__target target = {.sink = sink, .user = user};
  const unsigned char *data;
  clb_status status;

  if (bytes == NULL || sink == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "%s is NULL",
                     bytes == NULL ? "bytes" : "sink");
  status = clb__bytes_range(bytes, start, end);
  if (status != CLB_OK || start == end)
    return status;
  clb_bytes_retain(bytes); /* the sink may release the program's last one */
  data = atomic_load(&bytes->data);
  status = data != NULL ? stream_host(bytes, data, start, end, &target)
                        : clb__bytes_get(bytes, start, end, &target);
  clb_bytes_release(bytes);
  return status;
}
