/*
 * device_source.h - what the files of device sources share.
 */
#ifndef CLB_DEVICE_SOURCE_H
#define CLB_DEVICE_SOURCE_H

#include "kernels.h"
#include "source.h"

/* Whether the host, or a kernel, may read (GET) or write (PUT) the buffer. */
static inline bool clb__host_may(const clb__source *source,
                                 clb__direction direction) {
  return !(source->flags & (direction == CLB__GET ? CLB__HOST_CANNOT_READ
                                                  : CLB__HOST_CANNOT_WRITE));
}

static inline bool clb__kernel_may(const clb__source *source,
                                   clb__direction direction) {
  return !(source->flags & (direction == CLB__GET ? CLB__KERNEL_CANNOT_READ
                                                  : CLB__KERNEL_CANNOT_WRITE));
}

/* Lets what was enqueued on a queue run. */
static inline clb_status clb__flush(cl_command_queue queue) {
  cl_int err = clFlush(queue);

  return err == CL_SUCCESS ? CLB_OK : clb__fail_cl(err, "clFlush");
}

/* The start() of a device source: a move as commands. */
clb_status clb__device_start(clb__port *port, const clb__plan *plan,
                             clb__block *block, size_t at, unsigned char *data,
                             const clb__move *move);

#endif
