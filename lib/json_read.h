/*
 * json_read.h - a JSON object, read event by event.
 */
#ifndef CLB_JSON_READ_H
#define CLB_JSON_READ_H

#include <clbytes.h>

#include <yajl/yajl_parse.h>

#include "json_memory.h"

/* Nested values, as many as the format's own reader takes. */
#define CLB__JSON_DEPTH_MAX 127

/* Start from zeros and what; the callbacks set status and end. */
typedef struct clb__json_reader {
  const char *what;  /* "header": what is read, for messages */
  clb_status status; /* of the callbacks' first refusal */
  size_t end;        /* of the whole object; 0: not yet */
  yajl_handle json;
  clb__json_memory memory;
} clb__json_reader;

/*
 * Reads a text that is one object, in UTF-8, with what JSON allows alone.  No
 * tree is built.
 *   context  the callbacks', which return 0 after they have set status
 * CLB_FORMAT_ERROR, CLB_OUT_OF_MEMORY, and what the callbacks refuse with
 */
clb_status clb__json_read(clb__json_reader *reader,
                          const yajl_callbacks *callbacks, void *context,
                          const char *text, size_t length);

/* The reader's status after there was no memory; 0, which stops yajl. */
int clb__json_no_memory(clb__json_reader *reader);

#endif
