/*
 * JSON on standard output.  A failure is kept until the end: nothing needs to
 * be checked on the way.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <yajl/yajl_gen.h>

struct tool_json {
  yajl_gen generator;
  yajl_gen_status status; /* the first that was not ok */
};

void tool_json_start(struct tool_json *json);
void tool_json_map(struct tool_json *json);
void tool_json_end_map(struct tool_json *json);
void tool_json_array(struct tool_json *json);
void tool_json_end_array(struct tool_json *json);

/* A string, or the key of what follows. */
void tool_json_string(struct tool_json *json, const char *text);
void tool_json_size(struct tool_json *json, uint64_t number);
void tool_json_double(struct tool_json *json, double number);
void tool_json_bool(struct tool_json *json, bool value);
void tool_json_null(struct tool_json *json);

/* Ends the document; the command's exit code. */
int tool_json_finish(struct tool_json *json);

#endif
