/*
 * safetensors_index_text.c - the text of an index that is to be written.
 *
 * Owns how an index looks: as Python's json writes it with an indent of two,
 * sorted keys and ASCII alone, which is what the libraries of the format do.
 */
#include "config.h"

#include "safetensors_index.h"

#include "error.h"
#include "json_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The order of the bytes is that of the characters, which Python sorts by. */
static int compare_names(const void *a, const void *b) {
  const clb__index_entry *x = a, *y = b;
  return strcmp(x->name, y->name);
}

/* The character at text, which is UTF-8, and its bytes. */
static uint32_t character(const char *text, size_t *bytes) {
  const unsigned char *c = (const unsigned char *)text;
  uint32_t value = c[0];

  *bytes = value < 0x80 ? 1 : value < 0xe0 ? 2 : value < 0xf0 ? 3 : 4;
  if (*bytes > 1)
    value &= 0x7fu >> *bytes;
  for (size_t i = 1; i < *bytes; i++)
    value = value << 6 | (c[i] & 0x3fu);
  return value;
}

static void put_string(FILE *out, const char *string) {
  char escaped[CLB__JSON_ESCAPE_MAX];
  size_t bytes;

  (void)fputc('"', out);
  for (; *string != '\0'; string += bytes) {
    uint32_t value = character(string, &bytes);
    if (value >= 0x10000)
      (void)fprintf(out, "\\u%04x\\u%04x",
                    0xd800 + (unsigned)((value - 0x10000) >> 10),
                    0xdc00 + (unsigned)((value - 0x10000) & 0x3ff));
    else if (value >= 0x7f)
      (void)fprintf(out, "\\u%04x", (unsigned)value);
    else
      (void)fwrite(escaped, 1,
                   clb__json_escape((unsigned char)value, escaped), out);
  }
  (void)fputc('"', out);
}

static void put_index(FILE *out, const clb__index_entry *entries, size_t count,
                      const uint64_t *total) {
  if (total == NULL)
    (void)fputs("{\n  \"metadata\": {},\n", out);
  else
    (void)fprintf(out,
                  "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64
                  "\n  },\n",
                  *total);
  (void)fputs("  \"weight_map\": {", out);
  for (size_t i = 0; i < count; i++) {
    (void)fputs(i == 0 ? "\n    " : ",\n    ", out);
    put_string(out, entries[i].name);
    (void)fputs(": ", out);
    put_string(out, entries[i].shard);
  }
  (void)fputs("\n  }\n}\n", out);
}

clb_status clb__index_encode(clb__index_entry *entries, size_t count,
                             const uint64_t *total, char **text,
                             size_t *length) {
  FILE *out;
  bool failed;

  *text = NULL;
  qsort(entries, count, sizeof *entries, compare_names);
  out = open_memstream(text, length);
  failed = out == NULL;
  if (out != NULL) {
    put_index(out, entries, count, total);
    failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
  }
  if (failed)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for an index of %zu tensors",
                     count);
  if (*length > CLB__INDEX_MAX)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "an index of %zu bytes, at most %zu are allowed", *length,
                     CLB__INDEX_MAX);
  return CLB_OK;
}
