/*
 * copy.c - host copies: counted storage that handles share.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>

clb_status clb__copy_make(const clb_bytes *bytes, clb__copy **out) {
  clb_context *context =
      clb__bytes_on_device(bytes) ? bytes->source.u.device.context : NULL;
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

clb__copy *clb__copy_retain(clb__copy *copy) {
  if (copy != NULL)
    atomic_fetch_add_explicit(&copy->refs, 1, memory_order_relaxed);
  return copy;
}

void clb__copy_release(clb__copy *copy) {
  if (copy == NULL || !clb__refs_last(&copy->refs))
    return;
  if (copy->context != NULL) {
    clb__context_unhold(copy->context, copy->size);
    clb_context_release(copy->context);
  }
  free(copy->data);
  free(copy);
}

bool clb__copy_shared(const clb__copy *copy) {
  return atomic_load_explicit(&((clb__copy *)copy)->refs,
                              memory_order_acquire) != 1;
}
