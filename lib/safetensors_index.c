/*
 * safetensors_index.c - the text of an index, read event by event.
 *
 * Owns what the text may say; what the files have is the opener's.  Of the
 * object only "weight_map" is looked at: other writers put figures of their
 * own beside it, and none of them says more than the files do.
 */
#include "config.h"

#include "safetensors_index.h"

#include "checked.h"
#include "error.h"
#include "json_read.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAP_KEY "weight_map"

typedef enum place { BEFORE, TOP, MAP, IGNORED } place;

typedef struct decoder {
  clb__index *index;
  clb__json_reader in;
  place place;
  unsigned depth;    /* of what is ignored */
  bool map_key;      /* the value that comes is the map */
  bool map_seen;
  const char *name;  /* of the tensor that is being read, or NULL */
  const char *shard; /* of the one before: most are in the same file */
} decoder;

static int refuse(decoder *d, const char *what) {
  size_t at = yajl_get_bytes_consumed(d->in.json);

  if (d->name == NULL)
    d->in.status = clb__fail(CLB_FORMAT_ERROR, "%s, before byte %zu of the "
                             "index", what, at);
  else
    d->in.status = clb__fail(CLB_FORMAT_ERROR,
                             "tensor \"%.100s\": %s, before byte %zu of the "
                             "index", d->name, what, at);
  return 0;
}

static const char *keep_string(decoder *d, const char *text, size_t length) {
  const char *copy = NULL;

  if (memchr(text, '\0', length) != NULL)
    (void)refuse(d, "U+0000 in a string");
  else if ((copy = clb__arena_string(&d->index->arena, text, length)) == NULL)
    (void)clb__json_no_memory(&d->in);
  return copy;
}

static int add_entry(decoder *d, const char *shard) {
  clb__index *index = d->index;

  if (index->count == index->room) {
    size_t more, bytes;
    void *grown = NULL;

    if (!clb__add_size(index->room, index->room / 2 + 64, &more) &&
        !clb__mul_size(more, sizeof *index->entries, &bytes))
      grown = realloc(index->entries, bytes);
    if (grown == NULL)
      return clb__json_no_memory(&d->in);
    index->entries = grown;
    index->room = more;
  }
  index->entries[index->count++] = (clb__index_entry){d->name, shard};
  d->name = NULL;
  return 1;
}

/* A name in the index's own directory. */
static bool plain_name(const char *text, size_t length) {
  return length > 0 && memchr(text, '/', length) == NULL &&
         !(length == 1 && text[0] == '.') &&
         !(length == 2 && text[0] == '.' && text[1] == '.');
}

/* --- Events --------------------------------------------------------------- */

static bool ignored(const decoder *d) {
  return d->place == IGNORED || (d->place == TOP && !d->map_key);
}

static int on_scalar(void *context) {
  decoder *d = context;

  if (ignored(d))
    return 1;
  return refuse(d, d->place == MAP ? "its file is not a string"
                                   : "\"" MAP_KEY "\" is not an object");
}

static int on_boolean(void *context, int value) {
  (void)value;
  return on_scalar(context);
}

static int on_number(void *context, const char *text, size_t length) {
  (void)text;
  (void)length;
  return on_scalar(context);
}

static int on_string(void *context, const unsigned char *string,
                     size_t length) {
  decoder *d = context;
  const char *text = (const char *)string;

  if (d->place != MAP)
    return on_scalar(d);
  if (!plain_name(text, length))
    return refuse(d, "its file is not one beside the index");
  if (d->shard == NULL || strlen(d->shard) != length ||
      memcmp(d->shard, text, length) != 0) {
    d->shard = keep_string(d, text, length);
    if (d->shard == NULL)
      return 0;
  }
  return add_entry(d, d->shard);
}

static int on_key(void *context, const unsigned char *string, size_t length) {
  decoder *d = context;
  const char *text = (const char *)string;

  if (d->place == MAP)
    return (d->name = keep_string(d, text, length)) != NULL;
  if (d->place == TOP)
    d->map_key =
        length == strlen(MAP_KEY) && memcmp(text, MAP_KEY, length) == 0;
  return 1;
}

static int start_ignored(decoder *d) {
  if (d->depth == CLB__JSON_DEPTH_MAX - 1)
    return refuse(d, "nested too deeply");
  d->place = IGNORED;
  d->depth++;
  return 1;
}

static int end_ignored(decoder *d) {
  if (--d->depth == 0)
    d->place = TOP;
  return 1;
}

static int on_start_map(void *context) {
  decoder *d = context;

  if (ignored(d))
    return start_ignored(d);
  if (d->place == MAP)
    return on_scalar(d);
  if (d->place == BEFORE) {
    d->place = TOP;
    return 1;
  }
  if (d->map_seen)
    return refuse(d, "\"" MAP_KEY "\" is given twice");
  d->map_seen = true;
  d->place = MAP;
  return 1;
}

static int on_end_map(void *context) {
  decoder *d = context;

  if (d->place == IGNORED)
    return end_ignored(d);
  if (d->place == TOP)
    d->in.end = yajl_get_bytes_consumed(d->in.json);
  d->place = TOP;
  d->map_key = false;
  return 1;
}

static int on_start_array(void *context) {
  decoder *d = context;
  return ignored(d) ? start_ignored(d) : on_scalar(d);
}

static int on_end_array(void *context) {
  return end_ignored(context);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_scalar,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

/* --- The whole ------------------------------------------------------------ */

static int compare_entries(const void *a, const void *b) {
  const clb__index_entry *x = a, *y = b;
  int order = x->shard == y->shard ? 0 : strcmp(x->shard, y->shard);
  return order != 0 ? order : strcmp(x->name, y->name);
}

clb_status clb__index_decode(const char *text, size_t length,
                             clb__index *index) {
  decoder d = {.index = index, .in = {.what = "index"}, .place = BEFORE};
  clb_status status = clb__json_read(&d.in, &callbacks, &d, text, length);

  if (status != CLB_OK)
    return status;
  if (!d.map_seen)
    return clb__fail(CLB_FORMAT_ERROR, "the index has no \"" MAP_KEY "\"");
  if (index->count > 0)
    qsort(index->entries, index->count, sizeof *index->entries,
          compare_entries);
  for (size_t i = 1; i < index->count; i++)
    if (compare_entries(&index->entries[i - 1], &index->entries[i]) == 0)
      return clb__fail(CLB_FORMAT_ERROR,
                       "tensor \"%.100s\" is given twice in the index",
                       index->entries[i].name);
  return CLB_OK;
}

void clb__index_free(clb__index *index) {
  free(index->entries);
  clb__arena_free(&index->arena);
}
