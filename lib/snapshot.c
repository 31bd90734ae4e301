/*
 * snapshot.c - the device's present contents, kept on the device.
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

clb_status clb_bytes_snapshot(clb_bytes *bytes) {
  clb__source source;
  clb__form form;
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
  (void)clb__fetch_wait(bytes, UINT64_MAX); /* a prefetch reads the old one */
  clb__region_form(&bytes->at, &form);
  status = clb__source_snapshot(&bytes->source, &form, &source, &copied);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  rebase(&bytes->at, &copied);
  bytes->source.ops->release(&bytes->source);
  bytes->source = source;
  if (bytes->kernels != NULL) /* of the old buffer */
    (void)clReleaseMemObject(bytes->kernels);
  bytes->kernels = NULL;
  return CLB_OK;
}
