/*
 * What a save has to write, put together by the tests: the header with snprintf
 * and the order from a list here, so that nothing of the library says what is
 * right.  And all the ways in which it can be written.
 */
#ifndef CLBYTES_TESTS_COMPOSE_H
#define CLBYTES_TESTS_COMPOSE_H

#include <clbytes/safetensors.h>

#include "files.h"

/* A tensor and its logical bytes; the name, dtype and shape are borrowed unless
 * parts_add() made them. */
struct part {
  clb_tensor tensor;
  unsigned char *logical; /* malloc'ed */
  size_t length;
  char name[32];
};

/* Parts that grow; start from {0}. */
struct parts {
  struct part *all;
  size_t count, room;
};

/* Adds a part, by a copy of the name and of logical bytes; shape NULL: one
 * dimension of the handle's own.  The handle is the parts' now. */
struct part *parts_add(struct parts *parts, const char *name,
                       const char *dtype, clb_bytes *bytes,
                       const void *logical, size_t length);
/* Adds a tensor of fx.context's in a buffer whose bytes are these. */
struct part *parts_add_device(struct parts *parts, const char *name,
                              const char *dtype, cl_mem buffer,
                              const unsigned char *contents,
                              const clb_layout *layout);
void parts_free(struct parts *parts);

/* The tensors of all parts; free() them. */
clb_tensor *parts_tensors(const struct parts *parts);
/* The file; *head: the bytes before the first tensor's.  free(data). */
struct text parts_file(const struct parts *parts);
/* Where in the file a part begins. */
uint64_t parts_offset(const struct parts *parts, size_t index);

/* Saves as "out" in a folder by one way, and compares; 0 if the file system
 * does not take that way, as a try by the test shows, and the save has said so.
 */
int parts_save(const struct parts *parts, const char *folder, clb_file_io io,
               int durable);
/* By every way, here and in memory. */
void parts_save_all(const struct parts *parts);

/* Does a file of this folder take O_DIRECT? */
int takes_direct(const char *folder);
/* A folder in memory, made for the test, or NULL; to be removed by
 * remove_memory_folder(), once it is empty. */
const char *memory_folder(void);
void remove_memory_folder(void);

#endif
