/*
 * source_host.c - contents in host memory: the caller's, or a copy of it.
 *
 * Every plan is CLB_PLAN_MAP: the bytes are addressed where they are.
 */
#include "config.h"

#include "pool.h"
#include "source.h"

#include <stdlib.h>

clb_status clb__source_host(void *data, clb_place place, clb__source *out) {
  clb__host *host = malloc(sizeof *host);

  if (host == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "host memory: no memory for a handle");
  atomic_init(&host->refs, 1);
  pthread_mutex_init(&host->lock, NULL);
  host->data = data;
  host->pooled = false;
  host->release = NULL;
  out->ops = &clb__host_ops;
  out->u.host = host;
  out->flags = 0;
  out->place = (unsigned short)place;
  return CLB_OK;
}

void clb__source_host_release(clb__source *source,
                              void (*release)(void *, void *), void *user) {
  source->u.host->release = release;
  source->u.host->user = user;
}

clb__source clb__source_lent(clb__host *host, void *data) {
  host->data = data;
  return (clb__source){.ops = &clb__host_ops,
                       .u.host = host,
                       .place = CLB_PLACE_HEAP};
}

bool clb__source_host_shared(const clb__source *source) {
  return atomic_load_explicit(&source->u.host->refs, memory_order_acquire) != 1;
}

unsigned char *clb__source_address(const clb__source *source) {
  return source->ops == &clb__host_ops ? source->u.host->data : NULL;
}

static clb_status host_retain(const clb__source *source) {
  atomic_fetch_add_explicit(&source->u.host->refs, 1, memory_order_relaxed);
  return CLB_OK;
}

static void host_release(clb__source *source) {
  clb__host *host = source->u.host;

  if (!clb__refs_last(&host->refs))
    return;
  if (host->release != NULL)
    host->release(host->data, host->user);
  if (host->pooled)
    clb__pool_leave();
  pthread_mutex_destroy(&host->lock);
  free(host);
}

static pthread_mutex_t *host_lock(const clb__source *source) {
  return &source->u.host->lock;
}

static bool *host_pooled(const clb__source *source) {
  return &source->u.host->pooled;
}

static clb_status host_facts(const clb__source *source,
                             clb__direction direction, bool guess,
                             clb__facts *facts) {
  (void)source;
  (void)direction;
  (void)guess;
  *facts = (clb__facts){.asked = CLB_PLAN_MAP, .plans = CLB_PLAN_MAP};
  return CLB_OK;
}

static clb_status nothing(clb__port *port) {
  (void)port;
  return CLB_OK;
}

static bool host_ready(const clb__port *port) {
  (void)port;
  return true;
}

static void drop_nothing(clb__port *port) {
  (void)port;
}

static clb_status host_map(clb__port *port, uint64_t first, size_t bytes,
                           unsigned char **data) {
  (void)bytes;
  *data = port->source->u.host->data + first;
  return CLB_OK;
}

const clb__source_ops clb__host_ops = {
    .chunk = (size_t)1 << 20,
    .retain = host_retain,
    .release = host_release,
    .lock = host_lock,
    .pooled = host_pooled,
    .facts = host_facts,
    .order = nothing,
    .await = nothing,
    .ready = host_ready,
    .drop = drop_nothing,
    .close = nothing,
    .map = host_map,
    .unmap = nothing,
};
