/* What a run gave, as JSON. */
#include "config.h"

#include "results.h"

#include "../tools/json.h"

static const struct {
  enum bench_way way;
  const char *rate, *name;
} ways[] = {
    {BENCH_LINK, "link_gbs", "link"},
    {BENCH_RECT, "rect_gbs", "rect"},
    {BENCH_PAGEABLE, "pageable_gbs", "pageable"},
    {BENCH_NUMPY, "numpy_gbs", "numpy"},
    {BENCH_STREAM, "stream_gbs", "stream"},
    {BENCH_COPY, "copy_gbs", "copy"},
    {BENCH_ROWS, "row_gbs", "row"},
    {BENCH_MEMCPY, "memcpy_gbs", "memcpy"},
};
enum { WAYS = sizeof(ways) / sizeof(*ways), FIRST_WAYS = 4 };

static void print_spread(struct tool_json *json, const struct bench_spread *is)
{
  tool_json_array(json);
  tool_json_double(json, is->least);
  tool_json_double(json, is->most);
  tool_json_end_array(json);
}

/* null where the way is not there. */
static void print_way(struct tool_json *json, const struct bench_row *row,
                      size_t i)
{
  tool_json_string(json, ways[i].rate);
  if (row->rounds[ways[i].way] > 0)
    tool_json_double(json, row->rate[ways[i].way].median);
  else
    tool_json_null(json);
}

/* Members of a row: an object of the ways that are there. */
static void print_spreads(struct tool_json *json, const struct bench_row *row)
{
  tool_json_string(json, "spread");
  tool_json_map(json);
  tool_json_string(json, "ours");
  print_spread(json, &row->rate[row->ours]);
  for (size_t i = 0; i < WAYS; i++)
    if (row->rounds[ways[i].way] > 0) {
      tool_json_string(json, ways[i].name);
      print_spread(json, &row->rate[ways[i].way]);
    }
  tool_json_end_map(json);
  tool_json_string(json, "times_as_fast_as");
  tool_json_map(json);
  for (size_t i = 0; i < WAYS; i++)
    if (row->rounds[ways[i].way] > 0) {
      tool_json_string(json, ways[i].name);
      tool_json_double(json, row->faster[ways[i].way].median);
    }
  tool_json_end_map(json);
}

static void print_row(struct tool_json *json, const struct bench_row *row)
{
  tool_json_map(json);
  tool_json_string(json, "layout");
  tool_json_string(json, row->layout);
  tool_json_string(json, "bytes");
  tool_json_size(json, row->bytes);
  tool_json_string(json, "ours_gbs");
  tool_json_double(json, row->rate[row->ours].median);
  for (size_t i = 0; i < FIRST_WAYS; i++)
    print_way(json, row, i);
  tool_json_string(json, "data_ok");
  tool_json_bool(json, row->data_ok);
  for (size_t i = FIRST_WAYS; i < WAYS; i++)
    print_way(json, row, i);
  tool_json_string(json, "plan");
  tool_json_string(json, row->plan);
  tool_json_string(json, "pinned_bytes");
  tool_json_size(json, row->pinned);
  tool_json_string(json, "rounds");
  tool_json_size(json, row->rounds[row->ours]);
  print_spreads(json, row);
  tool_json_end_map(json);
}

static void print_seconds(struct tool_json *json, const char *key,
                          const struct bench_spread *seconds, bool there)
{
  tool_json_string(json, key);
  if (there)
    tool_json_double(json, seconds->median);
  else
    tool_json_null(json);
}

static void print_pair(struct tool_json *json, const struct bench_pair *pair,
                       const char *key)
{
  bool raw = pair->raw_what != NULL;

  tool_json_map(json);
  tool_json_string(json, key);
  tool_json_string(json, pair->what);
  tool_json_string(json, "beside");
  if (raw)
    tool_json_string(json, pair->raw_what);
  else
    tool_json_null(json);
  tool_json_string(json, "bytes");
  tool_json_size(json, pair->bytes);
  print_seconds(json, "ours_seconds", &pair->ours, true);
  print_seconds(json, "raw_seconds", &pair->raw, raw);
  print_seconds(json, "ratio", &pair->ratio, raw);
  tool_json_string(json, "ours_spread");
  print_spread(json, &pair->ours);
  tool_json_string(json, "data_ok");
  tool_json_bool(json, pair->data_ok);
  tool_json_end_map(json);
}

static void print_linear(struct tool_json *json,
                         const struct bench_linear *linear)
{
  tool_json_string(json, "linear");
  tool_json_map(json);
  tool_json_string(json, "rows");
  tool_json_array(json);
  for (size_t i = 0; i < BENCH_LINEAR; i++) {
    tool_json_map(json);
    tool_json_string(json, "bytes");
    tool_json_size(json, linear->bytes[i]);
    print_seconds(json, "seconds", &linear->seconds[i], true);
    tool_json_end_map(json);
  }
  tool_json_end_array(json);
  tool_json_string(json, "apart");
  tool_json_double(json, linear->apart);
  tool_json_end_map(json);
}

static void print_pairs(struct tool_json *json, const char *name,
                        const char *key, const struct bench_pair *pairs,
                        size_t count)
{
  tool_json_string(json, name);
  tool_json_array(json);
  for (size_t i = 0; i < count; i++)
    print_pair(json, &pairs[i], key);
  tool_json_end_array(json);
}

int bench_json_print(const struct bench_results *results)
{
  struct tool_json json;

  tool_json_start(&json);
  tool_json_map(&json);
  tool_json_string(&json, "rows");
  tool_json_array(&json);
  for (size_t i = 0; i < results->row_count; i++)
    print_row(&json, &results->rows[i]);
  tool_json_end_array(&json);
  print_pairs(&json, "small", "what", results->small, results->small_count);
  print_pairs(&json, "upload", "layout", results->uploads,
              results->upload_count);
  if (results->has_linear)
    print_linear(&json, &results->linear);
  tool_json_string(&json, "pinned_bytes");
  tool_json_size(&json, results->pinned);
  tool_json_string(&json, "device");
  tool_json_string(&json, results->device);
  tool_json_string(&json, "platform");
  tool_json_string(&json, results->platform);
  tool_json_end_map(&json);
  return tool_json_finish(&json);
}
