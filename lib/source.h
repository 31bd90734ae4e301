/*
 * source.h - what contents can come from: device buffer, file region, host
 * memory.
 *
 * A source is a small value inside a handle; retaining it is what keeps the
 * storage alive.  A port is one access to a source, from open to close: the
 * transfer moves bytes through it and knows nothing of what is behind.
 */
#ifndef CLB_SOURCE_H
#define CLB_SOURCE_H

#include "context.h"

typedef struct clb__source clb__source;
typedef struct clb__source_ops clb__source_ops;
typedef struct clb__file clb__file; /* source_file.c */

/* Host memory that sources share; made and ended by source_host.c. */
typedef struct clb__host {
  atomic_size_t refs;
  pthread_mutex_t lock;
  bool pooled;
  unsigned char *data;
  void (*release)(void *data, void *user);
  void *user;
} clb__host;

enum {
  CLB__HOST_CANNOT_READ = 1, /* CL_MEM_HOST_WRITE_ONLY, _NO_ACCESS */
  CLB__HOST_CANNOT_WRITE = 2, /* CL_MEM_HOST_READ_ONLY, _NO_ACCESS */
  CLB__KERNEL_CANNOT_READ = 4,  /* CL_MEM_WRITE_ONLY */
  CLB__KERNEL_CANNOT_WRITE = 8, /* CL_MEM_READ_ONLY */
  CLB__SNAPSHOT = 16 /* after: copies that are ordered on the program's queue */
};

struct clb__source {
  const clb__source_ops *ops;
  union {
    struct {
      clb_context *context;
      cl_mem mem;         /* a root buffer: sub-buffers are for kernels */
      clb__events *after; /* NULL: what is on the program's queue */
    } device;
    clb__file *file;
    clb__host *host;
  } u;
  unsigned short flags; /* CLB__HOST_*, CLB__KERNEL_*, CLB__SNAPSHOT */
  unsigned short place; /* clb_place of contents that are still there */
};

typedef struct clb__port {
  const clb__source *source;
  const struct clb__source_ops *ops; /* of what was ordered apart */
  clb__direction direction;
  bool ordered;
  bool quick;      /* device: by a command on the program's own queue, which is
                      in-order; no marker is needed */
  bool passed;     /* device: what was enqueued before has been waited for */
  bool watching;   /* device: the program's queue may wait for this access */
  cl_event marker; /* device: of what is ordered; NULL: the list's events */
  size_t size;     /* device: of the buffer */
  void *mapped;    /* device: between map and unmap */
} clb__port;

struct clb__source_ops {
  size_t chunk;    /* most bytes of a piece; 0: the context's chunk_size */

  /* One more reference for a copy of the source, and one less.  Retaining a
   * device source can fail. */
  clb_status (*retain)(const clb__source *source);
  void (*release)(clb__source *source);

  /* Guards the state of the handles on it; held for moments. */
  pthread_mutex_t *(*lock)(const clb__source *source);

  /* Whether what the source is of has joined the pool; it leaves at its end. */
  bool *(*pooled)(const clb__source *source);

  /* guess: without trying anything out. */
  clb_status (*facts)(const clb__source *source, clb__direction direction,
                      bool guess, clb__facts *facts);

  /* Notes what has to have ended before an access, and waits for it; what is
   * ordered is awaited or dropped.  close checks, after a transfer that
   * succeeded, that the contents were not changed meanwhile. */
  clb_status (*order)(clb__port *port);
  clb_status (*await)(clb__port *port);
  bool (*ready)(const clb__port *port); /* await() would not wait */
  void (*drop)(clb__port *port);
  clb_status (*close)(clb__port *port);

  /* Blocks for a transfer, as clb__staging_take and _give; bare, one for
   * events alone. */
  clb__block *(*take)(clb__port *port, bool bare, bool must);
  void (*give)(clb__port *port, clb__block *block);

  /* Starts a move of a plan between the source and data; it is of a block,
   * whose scratch it may use from byte at on.  flush lets those that were
   * started run, wait waits for all of the block's. */
  clb_status (*start)(clb__port *port, const clb__plan *plan,
                      clb__block *block, size_t at, unsigned char *data,
                      const clb__move *move);
  clb_status (*flush)(clb__port *port, clb__block *block);
  clb_status (*wait)(clb__port *port, clb__block *block);
  /* start() has moved the bytes when it returns, to any memory, and needs no
   * block. */
  bool direct;

  /* Whether start() may be given this memory of the caller's, with a block for
   * its events; NULL: never. */
  bool (*reaches)(const clb__port *port, const void *memory, size_t length);

  /* Threads that may copy beside the caller's; NULL: none. */
  unsigned (*helpers)(const clb__port *port);

  /* Addresses the source's bytes where they are; with CLB_PLAN_MAP alone. */
  clb_status (*map)(clb__port *port, uint64_t first, size_t bytes,
                    unsigned char **data);
  clb_status (*unmap)(clb__port *port);
};

extern const clb__source_ops clb__device_ops, clb__file_ops, clb__host_ops;

static inline clb_status clb__port_open(clb__port *port) {
  clb_status status = port->source->ops->order(port);

  return status == CLB_OK ? port->source->ops->await(port) : status;
}

/* Chooses a plan for logical bytes [start, end) of a form in a source. */
enum {
  CLB__COMMIT = 1,      /* it is about to run: a kernel that it needs is built */
  CLB__MAY_BE_QUICK = 2, /* the port may be */
  CLB__INTO_BLOCK = 4, /* it goes into a block whatever it is, with others: a
                          command is as good as a mapping where it copies as it
                          is, and better where it is small */
  CLB__GUESS = 8 /* the device must not be touched */
};
clb_status clb__source_plan(const clb__source *source, clb__direction direction,
                            const clb__form *form, size_t start, size_t end,
                            unsigned flags, clb__plan *plan);

static inline bool clb__source_is_device(const clb__source *source) {
  return source->ops == &clb__device_ops;
}

/* A source on a buffer.  Gives the root's offset of the buffer's first byte,
 * and the buffer's size.  Takes a reference on the root. */
clb_status clb__source_buffer(clb_context *context, cl_mem buffer,
                              clb__source *source, uint64_t *origin,
                              uint64_t *size);

/* The device's present contents of a form: a source on a new buffer.  *copied
 * is the region of the old one that the new one holds, packed. */
clb_status clb__source_snapshot(const clb__source *source,
                                const clb__form *form, clb__source *out,
                                clb__move *copied);

/* Maps a device region for CLB_MAP; CLB_WOULD_COPY where that moves bytes.  The
 * mapping is ended by clb__park, which never waits and cannot fail: what it
 * needs, a reference on the buffer too, is in *node. */
clb_status clb__source_map(const clb__source *source, uint64_t first,
                           size_t bytes, void **data, clb__parked **node);

clb_status clb__source_file(const char *path, uint64_t offset, uint64_t length,
                            clb__source *out);

/* place: CLB_PLACE_FOREIGN, or _HEAP for the library's own. */
clb_status clb__source_host(void *data, clb_place place, clb__source *out);

/* A source on memory that outlives it, in a host of the caller's; it is neither
 * retained nor released. */
clb__source clb__source_lent(clb__host *host, void *data);

/* Whether other handles are on the same host memory. */
bool clb__source_host_shared(const clb__source *source);

/* Sets what is called at the end of a source that nobody shares yet. */
void clb__source_host_release(clb__source *source,
                              void (*release)(void *, void *), void *user);

/* Where the bytes of a host source are; NULL for another. */
unsigned char *clb__source_address(const clb__source *source);

#endif
