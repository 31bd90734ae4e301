/*
 * safetensors_decode.c - the text of a header, read event by event.
 *
 * Owns what the text may say; what the tensors are together is the check's.
 * No tree is built: a hostile header's would take twenty times its size.
 */
#include "config.h"

#include "safetensors_header.h"

#include "checked.h"
#include "error.h"
#include "json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum place {
  BEFORE, TOP, METADATA, ENTRY, SHAPE, OFFSETS, IGNORED
} place;

/* The keys of an entry, a bit each. */
enum {
  NO_KEY = 0, DTYPE_KEY = 1, SHAPE_KEY = 2, OFFSETS_KEY = 4, OTHER_KEY = 8
};

typedef struct decoder {
  clb__header *header;
  clb__json_reader in;
  place place;
  unsigned depth;       /* of what is ignored */
  bool metadata_seen;
  const char *name;     /* of the tensor or pair that is being read, or NULL */
  unsigned key, seen;   /* of the entry */
  clb__entry entry;
  uint64_t numbers[CLB__RANK_MAX];
  size_t number_count;
} decoder;

/* The shape of rank 0 is not NULL, which a save would take for "not given". */
static const size_t no_extents[1];

/* --- Refusing: 0 is what stops yajl --------------------------------------- */

static int refuse(decoder *d, clb_status status, const char *what) {
  size_t at = yajl_get_bytes_consumed(d->in.json);

  if (d->name == NULL)
    d->in.status =
        clb__fail(status, "%s, before byte %zu of the header", what, at);
  else if (d->place == METADATA)
    d->in.status = clb__fail(status,
                             "metadata \"%.100s\": %s, before byte %zu of the "
                             "header",
                             d->name, what, at);
  else
    d->in.status = clb__fail(status,
                             "tensor \"%.100s\": %s, before byte %zu of the "
                             "header",
                             d->name, what, at);
  return 0;
}

static int no_memory(decoder *d) {
  return clb__json_no_memory(&d->in);
}

static int unknown_dtype(decoder *d, const char *text, size_t length) {
  char what[64];

  (void)snprintf(what, sizeof what, "unknown dtype \"%.*s\"",
                 length < 40 ? (int)length : 40, text);
  return refuse(d, CLB_FORMAT_ERROR, what);
}

/* A value of a kind that does not belong where it stands. */
static int misplaced(decoder *d) {
  switch (d->place) {
  case BEFORE:
    return refuse(d, CLB_FORMAT_ERROR, "the header is not an object");
  case TOP:
    return refuse(d, CLB_FORMAT_ERROR, "not an object");
  case METADATA:
    return refuse(d, CLB_FORMAT_ERROR, "not a string");
  case SHAPE:
    return refuse(d, CLB_FORMAT_ERROR, "an extent that is no whole number");
  case OFFSETS:
    return refuse(d, CLB_FORMAT_ERROR, "an offset that is no whole number");
  case ENTRY:
  case IGNORED:
    break;
  }
  return refuse(d, CLB_FORMAT_ERROR,
                d->key == DTYPE_KEY   ? "dtype is not a string"
                : d->key == SHAPE_KEY ? "shape is not an array"
                                      : "data_offsets is not an array");
}

/* --- Growing -------------------------------------------------------------- */

static bool grow(void **array, size_t *room, size_t elem_size) {
  size_t more, bytes;
  void *grown;

  if (clb__add_size(*room, *room / 2 + 64, &more) ||
      clb__mul_size(more, elem_size, &bytes))
    return false;
  grown = realloc(*array, bytes);
  if (grown == NULL)
    return false;
  *array = grown;
  *room = more;
  return true;
}

static bool add_pair(clb__header *header, const char *key) {
  void *pairs = header->pairs;

  if (header->pair_count == header->pair_room) {
    if (!grow(&pairs, &header->pair_room, sizeof *header->pairs))
      return false;
    header->pairs = pairs;
  }
  header->pairs[header->pair_count++] = (clb_pair){key, NULL};
  return true;
}

static bool add_entry(clb__header *header, const clb__entry *entry) {
  void *entries = header->entries;

  if (header->count == header->room) {
    if (!grow(&entries, &header->room, sizeof *header->entries))
      return false;
    header->entries = entries;
  }
  header->entries[header->count++] = *entry;
  return true;
}

/* --- The parts of an entry ------------------------------------------------ */

static int end_shape(decoder *d) {
  size_t *shape;

  d->place = ENTRY;
  d->entry.tensor.ndim = d->number_count;
  d->entry.tensor.shape = no_extents;
  if (d->number_count == 0)
    return 1;
  shape = clb__arena_alloc(&d->header->arena, d->number_count * sizeof *shape,
                           sizeof *shape);
  if (shape == NULL)
    return no_memory(d);
  for (size_t i = 0; i < d->number_count; i++) {
    if (d->numbers[i] > SIZE_MAX)
      return refuse(d, CLB_OUT_OF_RANGE, "an extent is above SIZE_MAX");
    shape[i] = (size_t)d->numbers[i];
  }
  d->entry.tensor.shape = shape;
  return 1;
}

static int end_offsets(decoder *d) {
  d->place = ENTRY;
  if (d->number_count != 2)
    return refuse(d, CLB_FORMAT_ERROR, "data_offsets are not two numbers");
  d->entry.begin = d->numbers[0];
  d->entry.end = d->numbers[1];
  return 1;
}

static int end_entry(decoder *d) {
  static const struct {
    unsigned key;
    const char *missing;
  } needed[] = {{DTYPE_KEY, "dtype is missing"},
                {SHAPE_KEY, "shape is missing"},
                {OFFSETS_KEY, "data_offsets are missing"}};

  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (!(d->seen & needed[i].key))
      return refuse(d, CLB_FORMAT_ERROR, needed[i].missing);
  d->place = TOP;
  d->name = NULL;
  return add_entry(d->header, &d->entry) ? 1 : no_memory(d);
}

static int entry_key(decoder *d, const char *text, size_t length) {
  static const struct {
    unsigned key;
    const char *name, *again;
  } known[] = {{DTYPE_KEY, "dtype", "dtype is given twice"},
               {SHAPE_KEY, "shape", "shape is given twice"},
               {OFFSETS_KEY, "data_offsets", "data_offsets are given twice"}};

  d->key = OTHER_KEY;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].name) != length ||
        memcmp(known[i].name, text, length) != 0)
      continue;
    if (d->seen & known[i].key)
      return refuse(d, CLB_FORMAT_ERROR, known[i].again);
    d->key = known[i].key;
    d->seen |= d->key;
  }
  return 1;
}

/* Anything but digits (a sign, a fraction, an exponent) is no whole number,
 * even where it stands for one. */
static int add_number(decoder *d, const char *text, size_t length) {
  uint64_t number = 0;

  if (d->number_count == CLB__RANK_MAX)
    return refuse(d, CLB_FORMAT_ERROR,
                  d->place == SHAPE ? "more than 64 dimensions"
                                    : "data_offsets are not two numbers");
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9')
      return misplaced(d);
    if (clb__mul_u64(number, 10, &number) ||
        clb__add_u64(number, (uint64_t)(text[i] - '0'), &number))
      return refuse(d, CLB_FORMAT_ERROR, "a number does not fit 64 bits");
  }
  d->numbers[d->number_count++] = number;
  return 1;
}

/* --- Events --------------------------------------------------------------- */

/* True where the value that comes belongs to a key that is ignored. */
static bool ignored(const decoder *d) {
  return d->place == IGNORED || (d->place == ENTRY && d->key == OTHER_KEY);
}

static int start_ignored(decoder *d) {
  /* Around what is ignored are two objects: the header and the entry. */
  if (d->depth == CLB__JSON_DEPTH_MAX - 2)
    return refuse(d, CLB_FORMAT_ERROR, "nested too deeply");
  d->place = IGNORED;
  d->depth++;
  return 1;
}

static int end_ignored(decoder *d) {
  if (--d->depth == 0)
    d->place = ENTRY;
  return 1;
}

static int on_scalar(void *context) {
  decoder *d = context;
  return ignored(d) ? 1 : misplaced(d);
}

static int on_boolean(void *context, int value) {
  (void)value;
  return on_scalar(context);
}

static int on_number(void *context, const char *text, size_t length) {
  decoder *d = context;

  if (d->place == SHAPE || d->place == OFFSETS)
    return add_number(d, text, length);
  return on_scalar(d);
}

/* A copy, or NULL after a refusal: our strings end at the first NUL. */
static const char *keep_string(decoder *d, const char *text, size_t length) {
  const char *copy = NULL;

  if (memchr(text, '\0', length) != NULL)
    (void)refuse(d, CLB_FORMAT_ERROR, "U+0000 in a string");
  else if ((copy = clb__arena_string(&d->header->arena, text, length)) == NULL)
    (void)no_memory(d);
  return copy;
}

static int on_string(void *context, const unsigned char *string,
                     size_t length) {
  decoder *d = context;
  const char *text = (const char *)string, *value;

  if (ignored(d))
    return 1;
  if (d->place == METADATA) {
    if ((value = keep_string(d, text, length)) == NULL)
      return 0;
    d->header->pairs[d->header->pair_count - 1].value = value;
    return 1;
  }
  if (d->place == ENTRY && d->key == DTYPE_KEY) {
    const clb__dtype *dtype = clb__dtype_find(text, length);
    if (dtype == NULL)
      return unknown_dtype(d, text, length);
    d->entry.tensor.dtype = dtype->name;
    return 1;
  }
  return misplaced(d);
}

static int on_key(void *context, const unsigned char *string, size_t length) {
  decoder *d = context;
  const char *text = (const char *)string;

  if (d->place == ENTRY)
    return entry_key(d, text, length);
  if (d->place == IGNORED)
    return 1;
  /* What is refused below is not of the tensor or pair before. */
  d->name = NULL;
  if ((d->name = keep_string(d, text, length)) == NULL)
    return 0;
  if (d->place == METADATA)
    return add_pair(d->header, d->name) ? 1 : no_memory(d);
  return 1;
}

static int on_start_map(void *context) {
  decoder *d = context;

  if (ignored(d))
    return start_ignored(d);
  if (d->place == BEFORE) {
    d->place = TOP;
    return 1;
  }
  if (d->place != TOP)
    return misplaced(d);
  if (strcmp(d->name, CLB__METADATA_KEY) == 0) {
    if (d->metadata_seen)
      return refuse(d, CLB_FORMAT_ERROR, "given twice");
    d->metadata_seen = true;
    d->place = METADATA;
  } else {
    d->place = ENTRY;
    d->entry = (clb__entry){{d->name, NULL, 0, NULL, NULL}, 0, 0};
    d->key = d->seen = NO_KEY;
  }
  return 1;
}

static int on_end_map(void *context) {
  decoder *d = context;

  if (d->place == IGNORED)
    return end_ignored(d);
  if (d->place == ENTRY)
    return end_entry(d);
  if (d->place == TOP)
    d->in.end = yajl_get_bytes_consumed(d->in.json);
  d->place = TOP;
  d->name = NULL;
  return 1;
}

static int on_start_array(void *context) {
  decoder *d = context;

  if (ignored(d))
    return start_ignored(d);
  if (d->place != ENTRY || !(d->key & (SHAPE_KEY | OFFSETS_KEY)))
    return misplaced(d);
  d->place = d->key == SHAPE_KEY ? SHAPE : OFFSETS;
  d->number_count = 0;
  return 1;
}

static int on_end_array(void *context) {
  decoder *d = context;

  if (d->place == IGNORED)
    return end_ignored(d);
  return d->place == SHAPE ? end_shape(d) : end_offsets(d);
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

clb_status clb__header_decode(const char *text, size_t length,
                              clb__header *header) {
  decoder d = {.header = header, .in = {.what = "header"}, .place = BEFORE};

  return clb__json_read(&d.in, &callbacks, &d, text, length);
}
