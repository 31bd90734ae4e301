/*
 * snapshot.c - the device's present contents, kept on the device.
 *
 * Accesses that are under way go on with the source that they began with.
 */
#include "config.h"

#include "bytes.h"

/* The region in the packed copy of a part of its source. */
static void rebase(clb__region *at, const clb__move *copied) {
  unsigned d;

  if (copied->height == 1 && copied->depth == 1) {
    at->origin -= copied->origin;
    return;
  }
  at->origin = 0;
  for (d = 0; d < at->ndim; d++) {
    size_t n = at->shape[d], far = clb__abs_stride(at->strides[d]);
    ptrdiff_t packed;
    if (n == 1) { /* its stride says nothing */
      at->strides[d] = 0;
      continue;
    }
    packed = clb__move_stride(copied, (ptrdiff_t)far);
    if (at->strides[d] < 0)
      at->origin += (uint64_t)(n - 1) * (uint64_t)packed;
    at->strides[d] = at->strides[d] < 0 ? -packed : packed;
  }
}

/* Gives the handle the copy of what it was on; *source becomes what is not
 * needed.  Where another thread's snapshot came first, that is the copy: what
 * the handle is on since then does not change. */
static void change_source(clb_bytes *bytes, const clb__source *old,
                          const clb__move *copied, clb__source *source) {
  clb__source *own = &bytes->source;
  cl_mem kernels = NULL;

  pthread_mutex_lock(clb__lock(bytes));
  if (own->u.device.mem == old->u.device.mem) {
    clb__source made = *source;
    *source = *own;
    own->u.device.mem = made.u.device.mem;
    own->u.device.after = made.u.device.after;
    own->flags = made.flags;
    rebase(&bytes->at, copied);
    kernels = bytes->kernels; /* of the old buffer */
    bytes->kernels = NULL;
  }
  pthread_mutex_unlock(clb__lock(bytes));
  if (kernels != NULL)
    (void)clReleaseMemObject(kernels);
}

clb_status clb_bytes_snapshot(clb_bytes *bytes) {
  clb__source source;
  clb__origin from;
  clb__move copied;
  clb_status status;

  if (bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_snapshot: bytes is NULL");
  if (bytes->edited)
    return clb__bytes_blame(
        bytes,
        clb__fail(CLB_UNSUPPORTED,
                  "snapshot: the handle was written to, and the device does "
                  "not have that"),
        0, bytes->length);
  if (!clb__bytes_on_device(bytes) || bytes->length == 0)
    return CLB_OK;
  status = clb__origin_of_source(bytes, &from);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  status = clb__source_snapshot(&from.source, &from.form, &source, &copied);
  if (status == CLB_OK) {
    change_source(bytes, &from.source, &copied, &source);
    source.ops->release(&source);
  }
  clb__origin_end(&from);
  return clb__bytes_blame(bytes, status, 0, bytes->length);
}
