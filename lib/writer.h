/*
 * writer.h - writes parcels to a file, by several threads and in the way that
 * is fastest there.
 */
#ifndef CLB_WRITER_H
#define CLB_WRITER_H

#include <clbytes/safetensors.h>

#include "pipeline.h"
#include "savefile.h"

typedef struct clb__writer clb__writer;

/* What goes with the writing of a parcel, in the thread that writes it; either
 * may be NULL.  after returns 0, or an errno that fails the write. */
typedef struct clb__writer_hooks {
  void (*before)(void *user, const clb__parcel *parcel);
  int (*after)(void *user, clb__writer *writer, const clb__parcel *parcel);
  void *user;
} clb__writer_hooks;

/*
 *   file     made for size bytes; must stay
 *   parcels  that there will be: one needs no thread
 *   hooks    copied
 * CLB_UNSUPPORTED  io is not CLB_FILE_AUTO, and the file system refuses it
 * CLB_IO_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__writer_open(clb__savefile *file, uint64_t size,
                            size_t parcels, clb_file_io io, bool durable,
                            const clb__writer_hooks *hooks, clb__writer **out);

/* Takes a parcel over, until it comes back. */
void clb__writer_put(clb__writer *writer, clb__parcel *parcel);

/* A parcel that is written, or whose write failed.  NULL: with wait, all that
 * were put have come back; else none just now. */
clb__parcel *clb__writer_take(clb__writer *writer, bool wait);

/* How it went so far: the first failure. */
clb_status clb__writer_status(clb__writer *writer);

/* Writes bytes through the page cache, past all parcels; 0, or errno.  For a
 * hook. */
int clb__writer_copy(clb__writer *writer, const void *data, size_t length,
                     uint64_t at);

/* Every parcel that was put must have been taken. */
void clb__writer_close(clb__writer *writer);

#endif
