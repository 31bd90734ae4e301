/* JSON on standard output, by yajl.  Owns the document's look; whether the
 * bytes reached standard output is main()'s to find. */
#include "config.h"

#include "json.h"

#include "escape.h"
#include "report.h"
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* yajl escapes C0 alone.  DEL, C1 and the marks that reorder text occur in
 * strings alone, where \uXXXX says the same; line ends are the document's own.
 * yajl passes strings on in runs that end at ASCII characters, so a character
 * never comes in two pieces. */
static void print_escaped(void *user, const char *text, size_t length)
{
  const char *end = text + length;

  (void)user;
  while (text < end) {
    const char *line = memchr(text, '\n', (size_t)(end - text));
    size_t piece = (size_t)((line == NULL ? end : line) - text);

    tool_escape(stdout, text, piece);
    text += piece;
    if (line != NULL) {
      fputc('\n', stdout);
      text++;
    }
  }
}

static void keep(struct tool_json *json, yajl_gen_status status)
{
  if (json->status == yajl_gen_status_ok)
    json->status = status;
}

void tool_json_start(struct tool_json *json)
{
  json->status = yajl_gen_status_ok;
  json->generator = yajl_gen_alloc(NULL);
  if (json->generator == NULL) {
    json->status = yajl_gen_in_error_state;
    return;
  }
  yajl_gen_config(json->generator, yajl_gen_beautify, 1);
  yajl_gen_config(json->generator, yajl_gen_indent_string, "  ");
  yajl_gen_config(json->generator, yajl_gen_validate_utf8, 1);
  yajl_gen_config(json->generator, yajl_gen_print_callback, print_escaped,
                  NULL);
}

void tool_json_map(struct tool_json *json)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_map_open(json->generator));
}

void tool_json_end_map(struct tool_json *json)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_map_close(json->generator));
}

void tool_json_array(struct tool_json *json)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_array_open(json->generator));
}

void tool_json_end_array(struct tool_json *json)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_array_close(json->generator));
}

void tool_json_string(struct tool_json *json, const char *text)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_string(json->generator, (const unsigned char *)text,
                               strlen(text)));
}

static void number_text(struct tool_json *json, const char *text)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_number(json->generator, text, strlen(text)));
}

void tool_json_size(struct tool_json *json, uint64_t number)
{
  char text[32];

  snprintf(text, sizeof(text), "%" PRIu64, number);
  number_text(json, text);
}

void tool_json_double(struct tool_json *json, double number)
{
  char text[64];

  snprintf(text, sizeof(text), "%.6g", number);
  number_text(json, text);
}

void tool_json_bool(struct tool_json *json, bool value)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_bool(json->generator, value));
}

void tool_json_null(struct tool_json *json)
{
  if (json->status == yajl_gen_status_ok)
    keep(json, yajl_gen_null(json->generator));
}

int tool_json_finish(struct tool_json *json)
{
  if (json->generator != NULL)
    yajl_gen_free(json->generator);
  if (json->status == yajl_gen_status_ok)
    return TOOL_OK;
  tool_error("cannot write JSON: %s",
             json->status == yajl_gen_invalid_string ? "text is not UTF-8"
                                                     : "out of memory");
  return TOOL_FAILED;
}
