/*
 * buffer.c - what a kernel can use of a handle.
 */
#include "config.h"

#include "bytes.h"

static clb_status unsupported(const clb_bytes *bytes, const char *why) {
  return clb__bytes_blame(bytes, clb__fail(CLB_UNSUPPORTED, "buffer: %s", why),
                          0, bytes->length);
}

/* Keeps a sub-buffer for the next one who asks, where the handle is on that
 * source still, or finds that another thread's is there: *made is then that.
 * Gives a reference in *made for the caller. */
static cl_int share(clb_bytes *bytes, const clb__source *source, cl_mem *made) {
  cl_mem mine = *made, old = NULL;
  cl_int err = CL_SUCCESS;

  pthread_mutex_lock(clb__lock(bytes));
  if (bytes->source.u.device.mem == source->u.device.mem) {
    cl_mem kept = bytes->kernels != NULL ? bytes->kernels : mine;
    if (kept != NULL)
      err = clRetainMemObject(kept);
    if (err == CL_SUCCESS) {
      old = kept != mine ? mine : NULL;
      *made = bytes->kernels = kept;
    }
  }
  pthread_mutex_unlock(clb__lock(bytes));
  if (err != CL_SUCCESS)
    old = mine;
  if (old != NULL)
    (void)clReleaseMemObject(old);
  return err;
}

/* The sub-buffer of the region, made once; NULL where the driver finds it
 * misaligned. */
static clb_status sub_buffer(clb_bytes *bytes, const clb__source *source,
                             size_t first, cl_mem *out) {
  cl_buffer_region region = {first, bytes->length};
  cl_mem sub = NULL;
  cl_int err = share(bytes, source, &sub);

  if (err == CL_SUCCESS && sub == NULL) {
    sub = clCreateSubBuffer(source->u.device.mem, 0,
                            CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
    if (err == CL_MISALIGNED_SUB_BUFFER_OFFSET) {
      *out = NULL;
      return CLB_OK;
    }
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clCreateSubBuffer");
    err = share(bytes, source, &sub);
  }
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clRetainMemObject");
  *out = sub;
  return CLB_OK;
}

/* The sub-buffer, or the root; a reference for the caller. */
static clb_status find_buffer(clb_bytes *bytes, const clb__origin *from,
                              cl_mem *buffer, size_t *offset) {
  cl_mem root = from->source.u.device.mem, sub = NULL;
  size_t size = 0;
  uint64_t first;
  clb_status status;
  cl_int err;

  if (!clb__origin_flat(from, &first) && bytes->length > 0)
    return clb__fail(CLB_UNSUPPORTED,
                     "buffer: the contents are not contiguous");
  err = clGetMemObjectInfo(root, CL_MEM_SIZE, sizeof size, &size, NULL);
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clGetMemObjectInfo");
  if (bytes->length > 0 && bytes->length < size &&
      first % from->source.u.device.context->sub_alignment == 0) {
    status = sub_buffer(bytes, &from->source, (size_t)first, &sub);
    if (status != CLB_OK)
      return status;
  }
  if (sub == NULL) {
    err = clRetainMemObject(root);
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clRetainMemObject");
  }
  *buffer = sub != NULL ? sub : root;
  *offset = sub != NULL ? 0 : (size_t)first;
  return CLB_OK;
}

clb_status clb_bytes_buffer(clb_bytes *bytes, cl_mem *buffer, size_t *offset) {
  clb__origin from;
  clb_status status;

  if (bytes == NULL || buffer == NULL || offset == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_bytes_buffer: %s is NULL",
                     bytes == NULL    ? "bytes"
                     : buffer == NULL ? "buffer"
                                      : "offset");
  if (!clb__bytes_on_device(bytes))
    return unsupported(bytes, "the contents are not on a device");
  if (bytes->edited)
    return unsupported(bytes, "the handle was written to, and the device does "
                              "not have that");
  status = clb__origin_of_source(bytes, &from);
  if (status == CLB_OK) {
    status = find_buffer(bytes, &from, buffer, offset);
    clb__origin_end(&from);
  }
  return clb__bytes_blame(bytes, status, 0, bytes->length);
}
