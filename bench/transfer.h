/*
 * One layout at a time, and the ways to move it: the library's, and what raw
 * OpenCL and numpy have beside them.
 */
#ifndef BENCH_TRANSFER_H
#define BENCH_TRANSFER_H

#include "contents.h"
#include "numpy.h"

/* How a layout is moved.  Each moves as many bytes. */
enum bench_way {
  BENCH_STREAM,   /* clb_bytes_stream() to a sink that does nothing */
  BENCH_COPY,     /* clb_bytes_copy_into() to warm pageable memory */
  BENCH_LINK,     /* plain reads into mapped pinned memory, then a wait */
  BENCH_RECT,     /* one blocking rectangle into that, or where rect_pageable is
                     set into warm pageable memory */
  BENCH_ROWS,     /* a plain read for each contiguous run, then a wait */
  BENCH_PAGEABLE, /* a blocking plain read into warm pageable memory */
  BENCH_MEMCPY,   /* from host memory to warm pageable memory */
  BENCH_NUMPY,    /* see numpy.h */
  BENCH_WAYS
};

/* Most runs that are read one by one. */
enum { BENCH_MOST_ROWS = 4096 };

struct bench_transfer {
  struct bench bench;
  bool shared; /* the device's memory is the host's */
  cl_mem buffer;
  size_t reach; /* of the buffer, bytes */
  uint32_t seed; /* of its contents */
  struct bench_pinned pinned;
  size_t pinned_bytes;
  unsigned char *ours, *raw; /* warm pageable memory */
  size_t pageable_bytes;     /* of each */
  struct bench_numpy numpy;
  /* The layout at hand: */
  struct bench_layout layout;
  size_t length;
  clb_bytes *handle;
  struct bench_runs runs;
  struct bench_rect rect;
  bool has_rect;
  bool rect_pageable;
};

/*
 * Makes what is needed to move layouts of at most bytes logical bytes and of
 * that reach; the device is there already.  Says what failed; to be given back
 * in either case.
 *   numpy  whether to look for it
 */
bool bench_transfer_make(struct bench_transfer *transfer, size_t bytes,
                         size_t reach, bool numpy);
void bench_transfer_free(struct bench_transfer *transfer);

/* Takes a layout to hand, and lets go of it. */
bool bench_transfer_take(struct bench_transfer *transfer,
                         const struct bench_layout *layout);
void bench_transfer_drop(struct bench_transfer *transfer);

/* Whether a way is there for the layout at hand; stands for a job that can then
 * be run. */
bool bench_transfer_job(struct bench_transfer *transfer, enum bench_way way,
                        struct bench_job *job);

/* Whether what the library moves is right: the warm memory that it copied to,
 * where that way was taken, and a stream. */
bool bench_transfer_check(struct bench_transfer *transfer, bool copied);

/* A clb_sink that does nothing. */
int bench_ignore(const void *data, size_t length, void *user);

#endif
