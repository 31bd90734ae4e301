/* clbytes inspect: what is in a safetensors file, as a table or as JSON. */
#include "config.h"

#include "escape.h"
#include "json.h"
#include "report.h"
#include "tool.h"

#include <clbytes/safetensors.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Columns are as wide as their longest entry, but no wider: one name of many
 * megabytes must not widen every line. */
enum { WIDEST = 48 };

/* Where a set is opened by its index there is no one file with the data. */
static bool is_set(const char *path)
{
  static const char end[] = ".index.json";
  size_t length = strlen(path);

  return length >= sizeof(end) - 1 &&
         strcmp(path + length - (sizeof(end) - 1), end) == 0;
}

/* Bytes of a file that stand before its tensors: eight of length, and the
 * header that they tell the length of.  0: of a set. */
static clb_status data_start(const char *path, uint64_t *out)
{
  unsigned char length[8];
  clb_bytes *bytes = NULL;
  clb_status status;

  *out = 0;
  if (is_set(path))
    return CLB_OK;
  status = clb_bytes_from_file(path, 0, sizeof(length), &bytes);
  if (status == CLB_OK)
    status = clb_bytes_copy_into(bytes, 0, length, sizeof(length));
  clb_bytes_release(bytes);
  if (status != CLB_OK)
    return status;
  *out = sizeof(length);
  for (int i = 0; i < 8; i++)
    *out += (uint64_t)length[i] << (8 * i);
  return CLB_OK;
}

/* Writes "[2, 3]"; returns its width.  out NULL: counts alone. */
static size_t put_shape(FILE *out, const clb_tensor *tensor)
{
  size_t width = 2;

  if (out != NULL)
    fputc('[', out);
  for (size_t i = 0; i < tensor->ndim; i++) {
    const char *separator = i == 0 ? "" : ", ";

    width += (size_t)snprintf(NULL, 0, "%s%zu", separator, tensor->shape[i]);
    if (out != NULL)
      fprintf(out, "%s%zu", separator, tensor->shape[i]);
  }
  if (out != NULL)
    fputc(']', out);
  return width;
}

static void pad(size_t written, size_t width)
{
  for (; written < width; written++)
    putchar(' ');
}

static void widen(size_t *width, size_t wanted)
{
  if (wanted > *width)
    *width = wanted < WIDEST ? wanted : WIDEST;
}

struct widths {
  size_t name, dtype, shape;
};

/* offset 0: the tensor is of a set. */
static void print_line(const struct widths *widths, const clb_tensor *tensor,
                       uint64_t offset)
{
  pad(tool_escape_string(stdout, tensor->name), widths->name);
  printf("  %-*s  ", (int)widths->dtype, tensor->dtype);
  pad(put_shape(stdout, tensor), widths->shape);
  printf("  %14zu  ", clb_bytes_length(tensor->bytes));
  if (offset == 0)
    printf("%14s\n", "-");
  else
    printf("%14" PRIu64 "\n", offset);
}

static void print_metadata(const clb_safetensors *file)
{
  size_t count = clb_safetensors_metadata_count(file);
  clb_pair pair;

  printf("metadata:%s\n", count == 0 ? " none" : "");
  for (size_t i = 0; i < count; i++)
    if (clb_safetensors_metadata_at(file, i, &pair) == CLB_OK) {
      printf("  ");
      tool_escape_string(stdout, pair.key);
      printf(": ");
      tool_escape_string(stdout, pair.value);
      putchar('\n');
    }
}

static void print_table(const clb_safetensors *file, uint64_t start)
{
  struct widths widths = {4, 5, 5};
  size_t count = clb_safetensors_count(file);
  char text[TOOL_SIZE_TEXT];
  uint64_t bytes = 0;
  clb_tensor tensor;

  for (size_t i = 0; i < count; i++)
    if (clb_safetensors_tensor(file, i, &tensor) == CLB_OK) {
      widen(&widths.name, tool_escape_string(NULL, tensor.name));
      widen(&widths.dtype, tool_escape_string(NULL, tensor.dtype));
      widen(&widths.shape, put_shape(NULL, &tensor));
    }
  printf("%-*s  %-*s  %-*s  %14s  %14s\n", (int)widths.name, "name",
         (int)widths.dtype, "dtype", (int)widths.shape, "shape", "bytes",
         "offset");
  for (size_t i = 0; i < count; i++)
    if (clb_safetensors_tensor(file, i, &tensor) == CLB_OK) {
      print_line(&widths, &tensor, start == 0 ? 0 : start + bytes);
      bytes += clb_bytes_length(tensor.bytes);
    }
  printf("total: %zu tensor%s, %" PRIu64 " bytes (%s)\n", count,
         count == 1 ? "" : "s", bytes, tool_size_text(bytes, text));
  print_metadata(file);
}

static void print_tensor_json(struct tool_json *json, const clb_tensor *tensor,
                              uint64_t offset)
{
  tool_json_map(json);
  tool_json_string(json, "name");
  tool_json_string(json, tensor->name);
  tool_json_string(json, "dtype");
  tool_json_string(json, tensor->dtype);
  tool_json_string(json, "shape");
  tool_json_array(json);
  for (size_t i = 0; i < tensor->ndim; i++)
    tool_json_size(json, tensor->shape[i]);
  tool_json_end_array(json);
  tool_json_string(json, "offset");
  if (offset == 0)
    tool_json_null(json);
  else
    tool_json_size(json, offset);
  tool_json_string(json, "bytes");
  tool_json_size(json, clb_bytes_length(tensor->bytes));
  tool_json_end_map(json);
}

static int print_json(const clb_safetensors *file, uint64_t start)
{
  struct tool_json json;
  uint64_t bytes = 0;
  clb_tensor tensor;
  clb_pair pair;

  tool_json_start(&json);
  tool_json_map(&json);
  tool_json_string(&json, "metadata");
  tool_json_map(&json);
  for (size_t i = 0; i < clb_safetensors_metadata_count(file); i++)
    if (clb_safetensors_metadata_at(file, i, &pair) == CLB_OK) {
      tool_json_string(&json, pair.key);
      tool_json_string(&json, pair.value);
    }
  tool_json_end_map(&json);
  tool_json_string(&json, "tensors");
  tool_json_array(&json);
  for (size_t i = 0; i < clb_safetensors_count(file); i++)
    if (clb_safetensors_tensor(file, i, &tensor) == CLB_OK) {
      /* Data is in the order of the index, without holes. */
      print_tensor_json(&json, &tensor, start == 0 ? 0 : start + bytes);
      bytes += clb_bytes_length(tensor.bytes);
    }
  tool_json_end_array(&json);
  tool_json_end_map(&json);
  return tool_json_finish(&json);
}

int tool_cmd_inspect(const struct tool_options *options, char **operands)
{
  const char *path = operands[0];
  clb_safetensors *file = NULL;
  uint64_t start;
  int result = TOOL_OK;

  if (clb_safetensors_open(path, &file) != CLB_OK ||
      data_start(path, &start) != CLB_OK) {
    tool_library_error(path);
    result = TOOL_FAILED;
  } else if (options->json) {
    result = print_json(file, start);
  } else {
    print_table(file, start);
  }
  clb_safetensors_close(file);
  return result;
}
