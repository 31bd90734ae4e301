/*
 * buffer.c - what a kernel can use of a handle.
 */
#include "config.h"

#include "bytes.h"

static clb_status unsupported(const clb_bytes *bytes, const char *why) {
  return clb__bytes_blame(bytes, clb__fail(CLB_UNSUPPORTED, "buffer: %s", why),
                          0, bytes->length);
}

/* The sub-buffer of the region, made once; NULL where the driver finds it
 * misaligned. */
static clb_status sub_buffer(clb_bytes *bytes, size_t first, cl_mem *out) {
  cl_buffer_region region = {first, bytes->length};
  cl_mem made;
  cl_int err;

  pthread_mutex_lock(clb__lock(bytes));
  *out = bytes->kernels;
  pthread_mutex_unlock(clb__lock(bytes));
  if (*out != NULL)
    return CLB_OK;
  made = clCreateSubBuffer(bytes->source.u.device.mem, 0,
                           CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
  if (err == CL_MISALIGNED_SUB_BUFFER_OFFSET)
    return CLB_OK;
  if (err != CL_SUCCESS)
    return clb__fail_cl(err, "clCreateSubBuffer");
  pthread_mutex_lock(clb__lock(bytes));
  if (bytes->kernels == NULL) {
    bytes->kernels = made;
    made = NULL;
  }
  *out = bytes->kernels;
  pthread_mutex_unlock(clb__lock(bytes));
  if (made != NULL) /* another thread's came first */
    (void)clReleaseMemObject(made);
  return CLB_OK;
}

clb_status clb_bytes_buffer(clb_bytes *bytes, cl_mem *buffer, size_t *offset) {
  cl_mem root, sub = NULL;
  size_t size = 0;
  uint64_t first;
  clb_status status = CLB_OK;
  cl_int err;

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
  if (!clb__region_flat(&bytes->at, &first) && bytes->length > 0)
    return unsupported(bytes, "the contents are not contiguous");
  root = bytes->source.u.device.mem;
  err = clGetMemObjectInfo(root, CL_MEM_SIZE, sizeof size, &size, NULL);
  if (err != CL_SUCCESS)
    return clb__bytes_blame(bytes, clb__fail_cl(err, "clGetMemObjectInfo"), 0,
                            bytes->length);
  if (bytes->length > 0 && bytes->length < size &&
      first % bytes->source.u.device.context->sub_alignment == 0)
    status = sub_buffer(bytes, (size_t)first, &sub);
  if (status == CLB_OK) {
    err = clRetainMemObject(sub != NULL ? sub : root);
    if (err != CL_SUCCESS)
      status = clb__fail_cl(err, "clRetainMemObject");
  }
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  *buffer = sub != NULL ? sub : root;
  *offset = sub != NULL ? 0 : (size_t)first;
  return CLB_OK;
}
