/*
 * savefile.h - a file that takes its name only when it is whole.
 */
#ifndef CLB_SAVEFILE_H
#define CLB_SAVEFILE_H

#include <clbytes.h>

#include <stdbool.h>

/* Fields are the functions' own. */
typedef struct clb__savefile {
  const char *given; /* the caller's path, for messages; must stay */
  char *path;        /* of the target: symbolic links resolved */
  char *scratch;     /* the scratch file's name in the directory */
  int directory, fd;
  bool in_memory; /* the file system is */
  bool sealed;
  bool replaces; /* once it is sealed: there is a target */
} clb__savefile;

/*
 * Makes and locks the scratch file of a target, and finds room for size bytes
 * where the file system can tell.  Blocks while another saver of the target
 * works.
 *   durable  commit will sync
 *   out      to be committed or discarded; only after CLB_OK
 * CLB_INVALID_ARGUMENT  the target is no regular file
 * CLB_IO_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__savefile_create(const char *path, uint64_t size, bool durable,
                                clb__savefile *out);

/* Appends.  0, or errno: what the caller does with it may be far from here. */
int clb__savefile_write(clb__savefile *file, const void *data, size_t length);

/* Writes at a place; any thread. */
int clb__savefile_write_at(const clb__savefile *file, const void *data,
                           size_t length, uint64_t at);

/* Makes the file so long, where its room was not allocated; 0, or errno. */
int clb__savefile_extend(const clb__savefile *file, uint64_t size);

/* A second descriptor that reads and writes past the page cache; 0, or errno. */
int clb__savefile_reopen_direct(const clb__savefile *file, int *fd);

/*
 * Does all of commit that comes before the rename, so that of several files
 * each is whole before the first takes its name.  It stays to be committed or
 * discarded.
 * CLB_IO_ERROR, CLB_INVALID_ARGUMENT (the target is no regular file any more)
 */
clb_status clb__savefile_seal(clb__savefile *file, bool durable);

/*
 * Removes the target of a sealed file, which it will replace.
 * CLB_IO_ERROR
 */
clb_status clb__savefile_withdraw(const clb__savefile *file, bool durable);

/*
 * Gives other contents to the target of a sealed file, whole or not at all; the
 * file stays to be committed.
 * CLB_IO_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__savefile_interpose(const clb__savefile *file, const void *data,
                                   size_t length, bool durable);

/* Removes what a killed clb__savefile_interpose() left. */
void clb__savefile_tidy(const clb__savefile *file);

/*
 * Gives the file its name; durable as at creation.  Ends the savefile, whatever
 * it returns.  After a failure the old target is there, unless it was the
 * directory that could not be synced: then the new one is.
 * CLB_IO_ERROR
 */
clb_status clb__savefile_commit(clb__savefile *file, bool durable);

/* Removes the scratch file and ends the savefile. */
void clb__savefile_discard(clb__savefile *file);

#endif
