/*
 * json_read.c - a JSON object, read event by event.
 *
 * Owns what every text has to be, whatever it says: that is the callbacks'.
 */
#include "config.h"

#include "json_read.h"

#include "error.h"
#include "json_text.h"

#include <string.h>

int clb__json_no_memory(clb__json_reader *reader) {
  reader->status =
      clb__fail(CLB_OUT_OF_MEMORY, "no memory for the %s", reader->what);
  return 0;
}

static clb_status json_error(clb__json_reader *reader, const char *text,
                             size_t length, size_t at) {
  unsigned char *error =
      yajl_get_error(reader->json, 0, (const unsigned char *)text, length);
  int shown = error == NULL ? 0 : (int)strcspn((char *)error, "\n");

  return clb__fail(CLB_FORMAT_ERROR, "%.*s, before byte %zu of the %s", shown,
                   (char *)error, at, reader->what);
}

/* In a function of its own: after longjmp() only reader is looked at. */
static clb_status parse(clb__json_reader *reader,
                        const yajl_callbacks *callbacks, void *context,
                        const char *text, size_t length) {
  yajl_alloc_funcs funcs = clb__json_memory_funcs(&reader->memory);
  yajl_status status;
  size_t at;

  if (setjmp(reader->memory.failed) != 0) {
    (void)clb__json_no_memory(reader);
    return reader->status;
  }
  reader->json = yajl_alloc(callbacks, &funcs, context);
  status = yajl_parse(reader->json, (const unsigned char *)text, length);
  at = yajl_get_bytes_consumed(reader->json);
  if (status == yajl_status_ok)
    status = yajl_complete_parse(reader->json);
  if (status == yajl_status_error)
    return json_error(reader, text, length, at);
  /* yajl does not see a token that the end of the text cuts off. */
  for (size_t i = reader->end; i < length && reader->status == CLB_OK; i++)
    if (strchr(" \t\n\r", text[i]) == NULL || text[i] == '\0')
      reader->status = clb__fail(CLB_FORMAT_ERROR,
                                 "something after the object, at byte %zu of "
                                 "the %s", i, reader->what);
  return reader->status;
}

clb_status clb__json_read(clb__json_reader *reader,
                          const yajl_callbacks *callbacks, void *context,
                          const char *text, size_t length) {
  size_t at;
  const char *problem;
  clb_status status;

  if (length == 0 || text[0] != '{')
    return clb__fail(CLB_FORMAT_ERROR, "the %s does not begin with {",
                     reader->what);
  problem = clb__json_text_problem(text, length, &at);
  if (problem != NULL)
    return clb__fail(CLB_FORMAT_ERROR, "%s, at byte %zu of the %s", problem, at,
                     reader->what);
  status = parse(reader, callbacks, context, text, length);
  clb__json_memory_free(&reader->memory);
  return status;
}
