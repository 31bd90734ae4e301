/*
 * copy.c - host copies: counted storage that handles share.
 */
#include "config.h"

#include "bytes.h"

#include <stdlib.h>
#ifdef HAVE_SYS_MMAN_H
#include <sys/mman.h>
#endif

/* Fresh memory is slow to touch page by page; the larger a page, the fewer.
 * Only advice: any failure leaves small ones. */
#define HUGE_PAGE ((size_t)2 << 20)

static void *allocate(size_t length) {
  size_t alignment = length >= 2 * HUGE_PAGE ? HUGE_PAGE : 64;
  void *data;

  if (posix_memalign(&data, alignment, length) != 0)
    return NULL;
#ifdef MADV_HUGEPAGE
  if (alignment == HUGE_PAGE)
    (void)madvise(data, length / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  return data;
}

clb_status clb__copy_make(const clb_bytes *bytes, clb__copy **out) {
  clb_context *context =
      clb__bytes_on_device(bytes) ? bytes->source.u.device.context : NULL;
  clb__copy *copy = malloc(sizeof *copy);
  clb_status status;
  void *data;

  if (copy == NULL || (data = allocate(bytes->length)) == NULL) {
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
