/*
 * safetensors_keep.c - an old set, kept readable while its files are replaced.
 *
 * Owns the old files' other names.  Several files cannot take their names at
 * once, but an index can: so the files that are about to be replaced get a
 * second name, and the old index is replaced by one that names those.  From
 * then on the old set does not depend on the names that change.  Where a path is
 * a symbolic link, or there are no second names, that cannot be.
 */
#include "config.h"

#include "safetensors_keep.h"

#include "error.h"
#include "safetensors_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".clbytes-old"

struct clb__old_file {
  bool there;
  dev_t device;
  ino_t number;
};

static const char *shard_name(const clb__shard_set *set, size_t s) {
  const char *slash = strrchr(set->shards[s].path, '/');
  return slash == NULL ? set->shards[s].path : slash + 1;
}

/* DIRECTORY/.NAME.clbytes-old; NULL: no memory. */
static char *other_path(const clb__shard_set *set, size_t s) {
  const char *path = set->shards[s].path, *name = shard_name(set, s);
  size_t size = strlen(path) + 1 + sizeof SUFFIX;
  char *other = malloc(size);

  if (other != NULL)
    (void)snprintf(other, size, "%.*s.%s" SUFFIX, (int)(name - path), path,
                   name);
  return other;
}

static bool is_file(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* --- The old index -------------------------------------------------------- */

static bool read_old(const char *path, clb__index *index) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long length = -1;
  bool good = false;

  if (file == NULL)
    return false;
  if (fseek(file, 0, SEEK_END) == 0)
    length = ftell(file);
  if (length >= 0 && (unsigned long)length <= CLB__INDEX_MAX)
    text = malloc((size_t)length + 1);
  rewind(file);
  if (text != NULL && fread(text, 1, (size_t)length, file) == (size_t)length)
    good = clb__index_decode(text, (size_t)length, index) == CLB_OK;
  free(text);
  (void)fclose(file);
  return good;
}

/* The first entry, by shard, that is not before a shard. */
static size_t first_of(const clb__index *index, const char *shard) {
  size_t low = 0, high = index->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(index->entries[middle].shard, shard) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool names(const clb__index *index, const char *shard) {
  size_t first = first_of(index, shard);
  return first < index->count &&
         strcmp(index->entries[first].shard, shard) == 0;
}

/* --- Keeping -------------------------------------------------------------- */

/* Gives one file its second name; the entries that name the file get it in
 * others, a place for each entry. */
static bool keep_one(const clb__shard_set *set, size_t s, clb__index *index,
                     const char **others) {
  const char *path = set->shards[s].path, *name = shard_name(set, s);
  char *other = other_path(set, s), *kept = NULL;
  const char *other_name = other == NULL ? NULL : other + (name - path);

  if (other != NULL && !names(index, other_name) && is_file(path)) {
    (void)unlink(other);
    if (link(path, other) == 0)
      kept = clb__arena_string(&index->arena, other_name, strlen(other_name));
  }
  for (size_t i = first_of(index, name);
       kept != NULL && i < index->count &&
       strcmp(index->entries[i].shard, name) == 0;
       i++)
    others[i] = kept;
  free(other);
  return kept != NULL;
}

static bool keep_all(const clb__shard_set *set, clb__index *index,
                     const clb__savefile *index_file, bool durable) {
  const char **others = calloc(index->count + 1, sizeof *others);
  char *text = NULL;
  size_t length;
  bool kept = others != NULL;

  for (size_t s = 0; s < set->count && kept; s++)
    if (names(index, shard_name(set, s)))
      kept = keep_one(set, s, index, others);
  for (size_t i = 0; i < index->count && kept; i++)
    if (others[i] != NULL)
      index->entries[i].shard = others[i];
  kept = kept &&
         clb__index_encode(index->entries, index->count, NULL, &text,
                           &length) == CLB_OK &&
         clb__savefile_interpose(index_file, text, length, durable) == CLB_OK;
  free(text);
  free(others);
  return kept;
}

static bool any_named(const clb__shard_set *set, const clb__index *index) {
  for (size_t s = 0; s < set->count; s++)
    if (names(index, shard_name(set, s)))
      return true;
  return false;
}

/* What has the second names now, be it from here or from a killed save. */
static void note_files(const clb__shard_set *set, clb__old_set *old) {
  old->files = calloc(set->count, sizeof *old->files);
  for (size_t s = 0; s < set->count && old->files != NULL; s++) {
    char *other = other_path(set, s);
    struct stat st;
    if (other != NULL && lstat(other, &st) == 0)
      old->files[s] = (struct clb__old_file){true, st.st_dev, st.st_ino};
    free(other);
  }
}

clb__kept clb__old_set_keep(const clb__shard_set *set,
                            const clb__savefile *index_file, bool durable,
                            clb__old_set *old) {
  clb__index index = {.count = 0};
  clb__kept kept = CLB__NOT_KEPT;
  clb__error error;

  clb__error_keep(&error);
  if (!index_file->replaces) {
    kept = CLB__NOT_NAMED;
  } else if (is_file(set->index_path) && read_old(set->index_path, &index)) {
    if (!any_named(set, &index))
      kept = CLB__NOT_NAMED;
    else if (keep_all(set, &index, index_file, durable))
      kept = CLB__KEPT;
  }
  note_files(set, old);
  clb__index_free(&index);
  clb__error_put_back(&error);
  return kept;
}

void clb__old_set_forget(const clb__shard_set *set, const clb__old_set *old) {
  for (size_t s = 0; s < set->count && old->files != NULL; s++) {
    char *other = old->files[s].there ? other_path(set, s) : NULL;
    struct stat st;
    if (other != NULL && lstat(other, &st) == 0 &&
        st.st_dev == old->files[s].device && st.st_ino == old->files[s].number)
      (void)unlink(other);
    free(other);
  }
}

void clb__old_set_free(clb__old_set *old) {
  free(old->files);
}
