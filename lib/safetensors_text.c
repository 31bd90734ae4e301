/*
 * safetensors_text.c - the text of a header that is to be written.
 *
 * Owns how a header looks.  It is written out by hand, not by yajl_gen, since
 * it must be the format's own writer's byte for byte: yajl has other escapes,
 * and takes the lack of memory badly.
 */
#include "config.h"

#include "safetensors_text.h"

#include "checked.h"
#include "error.h"
#include "json_text.h"
#include "safetensors_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX 8 /* bytes before the text: its length */
#define ALIGN 8  /* of the data's start */

/* Text that grows; the first failure stays, and nothing is added after it. */
typedef struct text {
  char *data;
  size_t length, room;
  clb_status status;
} text;

static void add(text *t, const char *data, size_t length) {
  char *grown;

  if (t->status != CLB_OK)
    return;
  if (length > PREFIX + CLB__HEADER_MAX - t->length) {
    t->status = clb__fail(CLB_INVALID_ARGUMENT,
                          "the header is longer than the format's %zu bytes",
                          CLB__HEADER_MAX);
    return;
  }
  if (length > t->room - t->length) {
    size_t room = t->length + length + t->length / 2 + 256;
    grown = realloc(t->data, room);
    if (grown == NULL) {
      t->status = clb__fail(CLB_OUT_OF_MEMORY,
                            "no memory for a header of %zu bytes", room);
      return;
    }
    t->data = grown;
    t->room = room;
  }
  memcpy(t->data + t->length, data, length);
  t->length += length;
}

static void add_text(text *t, const char *string) {
  add(t, string, strlen(string));
}

static void add_number(text *t, uint64_t number) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, number);

  add(t, digits, (size_t)length);
}

static void add_string(text *t, const char *string) {
  char out[CLB__JSON_ESCAPE_MAX];
  const char *run = string; /* what needs no escape */

  add(t, "\"", 1);
  for (; *string != '\0'; string++) {
    size_t length = clb__json_escape((unsigned char)*string, out);
    if (length == 1)
      continue;
    add(t, run, (size_t)(string - run));
    add(t, out, length);
    run = string + 1;
  }
  add(t, run, (size_t)(string - run));
  add(t, "\"", 1);
}

static void add_metadata(text *t, const clb_pair *pairs, size_t count) {
  add_string(t, CLB__METADATA_KEY);
  add_text(t, ":{");
  for (size_t i = 0; i < count; i++) {
    if (i > 0)
      add_text(t, ",");
    add_string(t, pairs[i].key);
    add_text(t, ":");
    add_string(t, pairs[i].value);
  }
  add_text(t, "}");
}

static void add_tensor(text *t, const clb__planned *planned, uint64_t begin) {
  add_string(t, planned->tensor->name);
  add_text(t, ":{\"dtype\":");
  add_string(t, planned->dtype->name);
  add_text(t, ",\"shape\":[");
  for (size_t d = 0; d < planned->ndim; d++) {
    if (d > 0)
      add_text(t, ",");
    add_number(t, planned->shape[d]);
  }
  add_text(t, "],\"data_offsets\":[");
  add_number(t, begin);
  add_text(t, ",");
  add_number(t, begin + planned->length);
  add_text(t, "]}");
}

clb_status clb__header_encode(clb__file_plan *plan,
                              const clb_save_options *options) {
  text t = {NULL, 0, 0, CLB_OK};
  uint64_t begin = 0;
  size_t length;

  add(&t, "\0\0\0\0\0\0\0", PREFIX);
  add_text(&t, "{");
  if (options->metadata_count > 0)
    add_metadata(&t, options->metadata, options->metadata_count);
  for (size_t i = 0; i < plan->count; i++) {
    if (i > 0 || options->metadata_count > 0)
      add_text(&t, ",");
    add_tensor(&t, &plan->tensors[i], begin);
    begin += plan->tensors[i].length;
  }
  add_text(&t, "}");
  add(&t, "       ", (ALIGN - t.length % ALIGN) % ALIGN);
  if (t.status != CLB_OK) {
    free(t.data);
    return t.status;
  }
  length = t.length - PREFIX;
  for (size_t i = 0; i < PREFIX; i++)
    t.data[i] = (char)(unsigned char)((uint64_t)length >> 8 * i);
  plan->head = t.data;
  plan->head_length = t.length;
  return CLB_OK;
}
