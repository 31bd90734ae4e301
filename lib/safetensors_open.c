/*
 * safetensors_open.c - opens files: the header now, tensors as lazy handles.
 *
 * Owns the open file.  Everything is read through one handle on the whole
 * file, of which the tensors are views: one descriptor, and header and data
 * are of the same file whatever its name becomes.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "error.h"
#include "safetensors_header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX 8 /* bytes before the header: its length */
#define TRIES 100

struct clb_safetensors {
  clb__header header;
};

/* --- The file ------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
         a->st_size == b->st_size;
}

static clb_status look(const char *path, struct stat *st) {
  if (stat(path, st) != 0)
    return clb__fail_errno(CLB_IO_ERROR, errno, "%s", path);
  if (!S_ISREG(st->st_mode))
    return clb__fail(CLB_INVALID_ARGUMENT, "%s: not a regular file", path);
  return CLB_OK;
}

/* A handle on the whole of a file.  Its size must be known before, and another
 * process may rename a new file to path meanwhile: then once more. */
static clb_status open_whole(const char *path, clb_bytes **out) {
  struct stat before, after;
  clb_status status = look(path, &before);

  for (int i = 0; i < TRIES && status == CLB_OK; i++) {
    clb_bytes *bytes = NULL;
    clb_status opened =
        clb_bytes_from_file(path, 0, (uint64_t)before.st_size, &bytes);
    if (opened != CLB_OK && opened != CLB_OUT_OF_RANGE)
      return opened;
    status = look(path, &after);
    if (status == CLB_OK && same_file(&before, &after)) {
      *out = bytes;
      return opened;
    }
    clb_bytes_release(bytes);
    before = after;
  }
  return status != CLB_OK
             ? status
             : clb__fail(CLB_IO_ERROR, "%s: replaced again and again", path);
}

/* --- The header ----------------------------------------------------------- */

/* The header's length, from the file's first bytes. */
static clb_status read_prefix(clb_bytes *whole, size_t *out) {
  size_t size = clb_bytes_length(whole);
  unsigned char prefix[PREFIX];
  uint64_t length = 0;
  clb_status status;

  if (size < PREFIX)
    return clb__fail(CLB_FORMAT_ERROR, "%zu bytes are too few for a header",
                     size);
  status = clb_bytes_copy_into(whole, 0, prefix, PREFIX);
  if (status != CLB_OK)
    return status;
  for (size_t i = 0; i < PREFIX; i++)
    length |= (uint64_t)prefix[i] << 8 * i;
  if (length > CLB__HEADER_MAX)
    return clb__fail(CLB_FORMAT_ERROR,
                     "a header of %" PRIu64 " bytes, at most %zu are allowed",
                     length, CLB__HEADER_MAX);
  if (length > size - PREFIX)
    return clb__fail(CLB_FORMAT_ERROR,
                     "a header of %" PRIu64
                     " bytes reaches past the file's %zu bytes",
                     length, size);
  *out = (size_t)length;
  return CLB_OK;
}

static clb_status read_header(clb_bytes *whole, size_t length,
                              clb__header *header) {
  char *text = malloc(length == 0 ? 1 : length);
  clb_status status;

  if (text == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a header of %zu bytes",
                     length);
  status = clb_bytes_copy_into(whole, PREFIX, text, length);
  if (status == CLB_OK)
    status = clb__header_decode(text, length, header);
  free(text);
  if (status == CLB_OK)
    status =
        clb__header_check(header, clb_bytes_length(whole) - PREFIX - length);
  return status;
}

static clb_status make_handles(clb_bytes *whole, size_t data,
                               clb__header *header) {
  for (size_t i = 0; i < header->count; i++) {
    clb__entry *entry = &header->entries[i];
    clb_status status = clb_bytes_view(whole, data + (size_t)entry->begin,
                                       data + (size_t)entry->end,
                                       &entry->tensor.bytes);
    if (status == CLB_OK)
      status = clb_bytes_set_label(entry->tensor.bytes, entry->tensor.name);
    if (status != CLB_OK)
      return clb__fail_prefix(status, "tensor \"%.100s\"", entry->tensor.name);
  }
  return CLB_OK;
}

/* --- Opening and asking --------------------------------------------------- */

clb_status clb_safetensors_open(const char *path, clb_safetensors **out) {
  clb_safetensors *file = NULL;
  clb_bytes *whole = NULL;
  size_t length = 0;
  clb_status status;

  if (path == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_safetensors_open: %s is NULL",
                     path == NULL ? "path" : "out");
#ifdef WORDS_BIGENDIAN
  return clb__fail(CLB_UNSUPPORTED,
                   "safetensors files are little-endian, this host is not");
#endif
  status = open_whole(path, &whole);
  if (status != CLB_OK)
    return status;
  file = calloc(1, sizeof *file);
  if (file == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory for an open file");
  if (status == CLB_OK)
    status = read_prefix(whole, &length);
  if (status == CLB_OK)
    status = read_header(whole, length, &file->header);
  if (status == CLB_OK)
    status = make_handles(whole, PREFIX + length, &file->header);
  clb_bytes_release(whole);
  if (status != CLB_OK) {
    clb_safetensors_close(file);
    return clb__fail_prefix(status, "%s", path);
  }
  *out = file;
  return CLB_OK;
}

size_t clb_safetensors_count(const clb_safetensors *file) {
  return file == NULL ? 0 : file->header.count;
}

clb_status clb_safetensors_tensor(const clb_safetensors *file, size_t index,
                                  clb_tensor *out) {
  if (file == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_safetensors_tensor: %s is NULL",
                     file == NULL ? "file" : "out");
  if (index >= file->header.count)
    return clb__fail(CLB_OUT_OF_RANGE, "tensor %zu of %zu", index,
                     file->header.count);
  *out = file->header.entries[index].tensor;
  return CLB_OK;
}

clb_status clb_safetensors_find(const clb_safetensors *file, const char *name,
                                clb_tensor *out) {
  const clb__entry *entry;

  if (file == NULL || name == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_safetensors_find: %s is NULL",
                     file == NULL ? "file" : name == NULL ? "name" : "out");
  entry = clb__header_find(&file->header, name);
  if (entry == NULL)
    return CLB_NOT_FOUND;
  *out = entry->tensor;
  return CLB_OK;
}

size_t clb_safetensors_metadata_count(const clb_safetensors *file) {
  return file == NULL ? 0 : file->header.pair_count;
}

clb_status clb_safetensors_metadata_at(const clb_safetensors *file,
                                       size_t index, clb_pair *out) {
  if (file == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_metadata_at: %s is NULL",
                     file == NULL ? "file" : "out");
  if (index >= file->header.pair_count)
    return clb__fail(CLB_OUT_OF_RANGE, "metadata pair %zu of %zu", index,
                     file->header.pair_count);
  *out = file->header.pairs[index];
  return CLB_OK;
}

void clb_safetensors_close(clb_safetensors *file) {
  if (file == NULL)
    return;
  clb__header_free(&file->header);
  free(file);
}
