/*
 * safetensors_open.c - opens files: the header now, tensors as lazy handles.
 *
 * Owns the open file.  Everything is read through one handle on the whole
 * file, of which the tensors are views: one descriptor, and header and data
 * are of the same file whatever its name becomes.  A set is the files that its
 * index names, their headers made one.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "checked.h"
#include "error.h"
#include "safetensors_file.h"
#include "safetensors_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX 8 /* bytes before the header: its length */
#define TRIES 100

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

/* Reads a file into an empty header, its handles too. */
static clb_status read_file(const char *path, clb__header *header) {
  clb_bytes *whole = NULL;
  size_t length = 0;
  clb_status status = open_whole(path, &whole);

  if (status != CLB_OK)
    return status;
  status = read_prefix(whole, &length);
  if (status == CLB_OK)
    status = read_header(whole, length, header);
  if (status == CLB_OK)
    status = make_handles(whole, PREFIX + length, header);
  clb_bytes_release(whole);
  return clb__fail_prefix(status, "%s", path);
}

/* --- Sets ----------------------------------------------------------------- */

/* Whatever it returns, *held is to be released: while it is open, no other
 * file has its number. */
static clb_status read_index(const char *path, clb__index *index,
                             clb_bytes **held) {
  clb_status status = open_whole(path, held);
  clb_bytes *whole = *held;
  size_t length;
  char *text = NULL;

  if (status != CLB_OK)
    return status;
  length = clb_bytes_length(whole);
  if (length > CLB__INDEX_MAX)
    status = clb__fail(CLB_FORMAT_ERROR,
                       "an index of %zu bytes, at most %zu are allowed", length,
                       CLB__INDEX_MAX);
  else if ((text = malloc(length == 0 ? 1 : length)) == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory for an index of %zu bytes",
                       length);
  if (status == CLB_OK)
    status = clb_bytes_copy_into(whole, 0, text, length);
  if (status == CLB_OK)
    status = clb__index_decode(text, length, index);
  free(text);
  return clb__fail_prefix(status, "%s", path);
}

/* The entries are those of one shard; both lists are sorted by name. */
static clb_status check_shard(const clb__index_entry *entries, size_t count,
                              const clb__header *shard) {
  for (size_t i = 0; i < count || i < shard->count; i++) {
    const char *named = i < count ? entries[i].name : NULL;
    const char *there = i < shard->count ? shard->by_name[i]->tensor.name
                                         : NULL;
    int order = named == NULL   ? 1
                : there == NULL ? -1
                                : strcmp(named, there);
    if (order < 0)
      return clb__fail(CLB_FORMAT_ERROR,
                       "tensor \"%.100s\" is not in it, as the index says",
                       named);
    if (order > 0)
      return clb__fail(CLB_FORMAT_ERROR,
                       "tensor \"%.100s\" is in it, and the index does not "
                       "say so",
                       there);
  }
  return CLB_OK;
}

static bool append(void **array, size_t *count, size_t *room, size_t size,
                   const void *more, size_t more_count) {
  size_t total, wanted, bytes;
  void *grown;

  if (more_count == 0)
    return true;
  if (clb__add_size(*count, more_count, &total) ||
      clb__add_size(total, total / 2, &wanted) ||
      clb__mul_size(wanted, size, &bytes))
    return false;
  if (total > *room) {
    if ((grown = realloc(*array, bytes)) == NULL)
      return false;
    *array = grown;
    *room = wanted;
  }
  memcpy((char *)*array + *count * size, more, more_count * size);
  *count = total;
  return true;
}

/* Moves what a shard has to the end of the set's. */
static clb_status take_shard(clb_safetensors *file, clb__header *shard) {
  clb__header *all = &file->header;
  void *entries = all->entries, *pairs = all->pairs;
  bool taken = append(&entries, &all->count, &all->room, sizeof *all->entries,
                      shard->entries, shard->count);

  all->entries = entries;
  if (taken) {
    shard->count = 0; /* the handles are the set's now */
    taken = append(&pairs, &all->pair_count, &all->pair_room,
                   sizeof *all->pairs, shard->pairs, shard->pair_count);
    all->pairs = pairs;
  }
  file->arenas[file->arena_count++] = shard->arena;
  shard->arena = (clb__arena){NULL, 0, 0};
  return taken ? CLB_OK : clb__fail(CLB_OUT_OF_MEMORY, "no memory for the set");
}

static clb_status open_shard(const char *index_path,
                             const clb__index_entry *entries, size_t count,
                             clb_safetensors *file) {
  const char *slash = strrchr(index_path, '/'), *name = entries[0].shard;
  size_t kept = slash == NULL ? 0 : (size_t)(slash + 1 - index_path);
  char *path = malloc(kept + strlen(name) + 1);
  clb__header shard = {.count = 0};
  clb_status status;

  if (path == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for the path of %.100s",
                     name);
  memcpy(path, index_path, kept);
  strcpy(path + kept, name);
  status = read_file(path, &shard);
  if (status == CLB_OK)
    status = clb__fail_prefix(check_shard(entries, count, &shard), "%s", path);
  else if (status == CLB_INVALID_ARGUMENT)
    status = CLB_FORMAT_ERROR; /* the caller's path is right */
  if (status != CLB_OK)
    status = clb__fail_prefix(status, "shard of tensor \"%.100s\"",
                              entries[0].name);
  else
    status = take_shard(file, &shard);
  clb__header_free(&shard);
  free(path);
  return status;
}

/* The keys of equal pairs of several shards: the first shard's first. */
static int compare_pairs(const void *a, const void *b) {
  const clb_pair *const *x = a, *const *y = b;
  int order = strcmp((*x)->key, (*y)->key);
  return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* Every shard has the metadata; the set has a key once. */
static clb_status merge_pairs(clb__header *all) {
  clb_pair **sorted = calloc(all->pair_count + 1, sizeof *sorted);
  size_t kept = 0, first = 0;

  if (sorted == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu metadata pairs",
                     all->pair_count);
  for (size_t i = 0; i < all->pair_count; i++)
    sorted[i] = &all->pairs[i];
  qsort(sorted, all->pair_count, sizeof *sorted, compare_pairs);
  for (size_t i = 1; i < all->pair_count; i++)
    if (strcmp(sorted[i]->key, sorted[first]->key) == 0)
      sorted[i]->value = NULL;
    else
      first = i;
  for (size_t i = 0; i < all->pair_count; i++)
    if (all->pairs[i].value != NULL)
      all->pairs[kept++] = all->pairs[i];
  all->pair_count = kept;
  free(sorted);
  return CLB_OK;
}

/* Entries from first on that are in the same shard. */
static size_t shard_length(const clb__index *index, size_t first) {
  size_t i = first;

  while (i < index->count &&
         strcmp(index->entries[i].shard, index->entries[first].shard) == 0)
    i++;
  return i - first;
}

static clb_status open_shards(const char *path, const clb__index *index,
                              clb_safetensors *file) {
  clb_status status = CLB_OK;
  size_t shards = 0, length;

  for (size_t i = 0; i < index->count; i += shard_length(index, i))
    shards++;
  file->arenas = calloc(shards + 1, sizeof *file->arenas);
  if (file->arenas == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu shards", shards);
  for (size_t i = 0; i < index->count && status == CLB_OK; i += length) {
    length = shard_length(index, i);
    status = open_shard(path, &index->entries[i], length, file);
  }
  if (status == CLB_OK)
    status = clb__header_index(&file->header);
  if (status == CLB_OK)
    status = merge_pairs(&file->header);
  return clb__fail_prefix(status, "%s", path);
}

static void clear(clb_safetensors *file) {
  clb__header_free(&file->header);
  for (size_t i = 0; i < file->arena_count; i++)
    clb__arena_free(&file->arenas[i]);
  free(file->arenas);
  memset(file, 0, sizeof *file);
}

/* Who replaces a set takes its index away before and puts the new one there
 * after: files that were opened under one and the same index are of one set.
 * False: it was replaced meanwhile. */
static bool try_set(const char *path, clb_safetensors *file,
                    clb_status *status) {
  clb__index index = {.count = 0};
  clb_bytes *held = NULL;
  struct stat before, read, after;
  bool same = true;

  *status = look(path, &before);
  if (*status == CLB_OK)
    *status = read_index(path, &index, &held);
  if (*status == CLB_OK && stat(path, &read) == 0) {
    *status = open_shards(path, &index, file);
    same = stat(path, &after) == 0 && same_file(&before, &read) &&
           same_file(&read, &after);
  } else if (*status == CLB_OK) {
    same = false;
  }
  clb_bytes_release(held);
  clb__index_free(&index);
  return same;
}

static clb_status open_set(const char *path, clb_safetensors *file) {
  clb_status status;

  for (int i = 0; i < TRIES; i++) {
    if (try_set(path, file, &status))
      return status;
    clear(file);
  }
  return clb__fail(CLB_IO_ERROR, "%s: replaced again and again", path);
}

/* --- Opening and asking --------------------------------------------------- */

static bool is_index(const char *path) {
  size_t length = strlen(path), end = strlen(CLB__INDEX_SUFFIX);
  return length >= end && strcmp(path + length - end, CLB__INDEX_SUFFIX) == 0;
}

clb_status clb_safetensors_open(const char *path, clb_safetensors **out) {
  clb_safetensors *file = NULL;
  clb_status status;

  if (path == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_safetensors_open: %s is NULL",
                     path == NULL ? "path" : "out");
#ifdef WORDS_BIGENDIAN
  return clb__fail(CLB_UNSUPPORTED,
                   "safetensors files are little-endian, this host is not");
#endif
  file = calloc(1, sizeof *file);
  if (file == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "%s: no memory for an open file", path);
  status = is_index(path) ? open_set(path, file)
                          : read_file(path, &file->header);
  if (status != CLB_OK) {
    clb_safetensors_close(file);
    return status;
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
  clear(file);
  free(file);
}
