/* clbytes verify: whether two safetensors files hold the same tensors. */
#include "config.h"

#include "escape.h"
#include "progress.h"
#include "report.h"
#include "tool.h"

#include <clbytes/safetensors.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes compared at a time */

/* The two files, and what a comparison of contents needs. */
struct pair_of_files {
  const char *paths[2];
  clb_safetensors *files[2];
  unsigned char *piece;
  struct tool_progress progress;
  uint64_t done; /* bytes compared */
};

/* A comparison of one tensor's contents, on its way. */
struct comparison {
  struct pair_of_files *pair;
  clb_bytes *other;
  size_t at; /* of the next byte, then of the first that differs */
  bool differs;
  unsigned char values[2];
  clb_status status; /* of reading the other */
};

static void print_name(const char *name)
{
  putchar('"');
  tool_escape_string(stdout, name);
  putchar('"');
}

/* Says that the first tensor of one file that the other lacks is missing. */
static int compare_names(const struct pair_of_files *pair)
{
  for (int side = 0; side < 2; side++) {
    const clb_safetensors *file = pair->files[side];
    clb_tensor tensor, other;

    for (size_t i = 0; i < clb_safetensors_count(file); i++) {
      if (clb_safetensors_tensor(file, i, &tensor) == CLB_OK &&
          clb_safetensors_find(pair->files[!side], tensor.name, &other) ==
              CLB_OK)
        continue;
      printf("tensor ");
      print_name(tensor.name);
      printf(" is in ");
      tool_escape_string(stdout, pair->paths[side]);
      printf(" alone\n");
      return TOOL_DIFFERS;
    }
  }
  return TOOL_OK;
}

static void print_type(const clb_tensor *tensor)
{
  tool_escape_string(stdout, tensor->dtype);
  putchar('[');
  for (size_t i = 0; i < tensor->ndim; i++)
    printf("%s%zu", i == 0 ? "" : ", ", tensor->shape[i]);
  putchar(']');
}

static int compare_types(const struct pair_of_files *pair)
{
  clb_tensor a, b;

  for (size_t i = 0; i < clb_safetensors_count(pair->files[0]); i++) {
    if (clb_safetensors_tensor(pair->files[0], i, &a) != CLB_OK ||
        clb_safetensors_find(pair->files[1], a.name, &b) != CLB_OK)
      continue;
    if (strcmp(a.dtype, b.dtype) == 0 && a.ndim == b.ndim &&
        (a.ndim == 0 ||
         memcmp(a.shape, b.shape, a.ndim * sizeof(*a.shape)) == 0))
      continue;
    printf("tensor ");
    print_name(a.name);
    printf(" is ");
    print_type(&a);
    printf(" in ");
    tool_escape_string(stdout, pair->paths[0]);
    printf(", ");
    print_type(&b);
    printf(" in ");
    tool_escape_string(stdout, pair->paths[1]);
    putchar('\n');
    return TOOL_DIFFERS;
  }
  return TOOL_OK;
}

/* Takes what the one file has, and reads as much of the other. */
static int compare_piece(const void *data, size_t length, void *user)
{
  struct comparison *comparison = user;
  struct pair_of_files *pair = comparison->pair;
  const unsigned char *bytes = data;

  while (length > 0) {
    size_t count = length < PIECE ? length : PIECE;

    comparison->status = clb_bytes_copy_into(
        comparison->other, comparison->at, pair->piece, count);
    if (comparison->status != CLB_OK) {
      tool_progress_end(&pair->progress);
      tool_library_error(pair->paths[1]);
      return 1;
    }
    if (memcmp(bytes, pair->piece, count) != 0) {
      size_t i = 0;

      while (bytes[i] == pair->piece[i])
        i++;
      comparison->at += i;
      comparison->values[0] = bytes[i];
      comparison->values[1] = pair->piece[i];
      comparison->differs = true;
      return 1;
    }
    comparison->at += count;
    pair->done += count;
    bytes += count;
    length -= count;
  }
  tool_progress_update(&pair->progress, pair->done);
  return 0;
}

/* Says where: the byte, the element that it is in, and that element's place in
 * the tensor.  A tensor that differs has bytes, so no extent is 0. */
static void print_difference(const clb_tensor *tensor,
                             const struct comparison *comparison)
{
  size_t length = clb_bytes_length(tensor->bytes);
  size_t elements = 1;
  size_t element;

  for (size_t i = 0; i < tensor->ndim; i++)
    elements *= tensor->shape[i];
  /* In bits: elements may be narrower than a byte. */
  element = comparison->at * 8 / (length * 8 / elements);
  printf("tensor ");
  print_name(tensor->name);
  printf(" differs at byte %zu, element %zu", comparison->at, element);
  if (tensor->ndim > 1) {
    printf(" [");
    for (size_t i = 0, rest = element; i < tensor->ndim; i++) {
      elements /= tensor->shape[i];
      printf("%s%zu", i == 0 ? "" : ", ", rest / elements);
      rest %= elements;
    }
    putchar(']');
  }
  printf(": 0x%02x against 0x%02x\n", comparison->values[0],
         comparison->values[1]);
}

static int compare_contents(struct pair_of_files *pair)
{
  clb_tensor a, b;

  for (size_t i = 0; i < clb_safetensors_count(pair->files[0]); i++) {
    struct comparison comparison = {.pair = pair, .status = CLB_OK};
    clb_status status;

    if (clb_safetensors_tensor(pair->files[0], i, &a) != CLB_OK ||
        clb_safetensors_find(pair->files[1], a.name, &b) != CLB_OK)
      continue;
    comparison.other = b.bytes;
    status = clb_bytes_stream(a.bytes, 0, clb_bytes_length(a.bytes),
                              compare_piece, &comparison);
    if (comparison.differs) {
      tool_progress_end(&pair->progress);
      print_difference(&a, &comparison);
      return TOOL_DIFFERS;
    }
    if (comparison.status != CLB_OK)
      return TOOL_FAILED;
    if (status != CLB_OK) {
      tool_progress_end(&pair->progress);
      tool_library_error(pair->paths[0]);
      return TOOL_FAILED;
    }
  }
  return TOOL_OK;
}

static int compare_pairs(const void *a, const void *b)
{
  return strcmp(((const clb_pair *)a)->key, ((const clb_pair *)b)->key);
}

/* The metadata of a file, sorted by key: the format gives it no order.  NULL
 * without memory. */
static clb_pair *sorted_metadata(const clb_safetensors *file, size_t count)
{
  clb_pair *pairs = calloc(count + 1, sizeof(*pairs));

  if (pairs == NULL)
    return NULL;
  for (size_t i = 0; i < count; i++)
    clb_safetensors_metadata_at(file, i, &pairs[i]);
  qsort(pairs, count, sizeof(*pairs), compare_pairs);
  return pairs;
}

/* Metadata that differs is said, and no difference: two files that hold the
 * same tensors are the same to verify. */
static int note_metadata(const struct pair_of_files *pair)
{
  size_t counts[2] = {clb_safetensors_metadata_count(pair->files[0]),
                      clb_safetensors_metadata_count(pair->files[1])};
  clb_pair *a = sorted_metadata(pair->files[0], counts[0]);
  clb_pair *b = sorted_metadata(pair->files[1], counts[1]);
  const char *key = NULL;
  size_t i = 0;
  int result = TOOL_OK;

  if (a == NULL || b == NULL) {
    tool_error("out of memory");
    result = TOOL_FAILED;
    goto out;
  }
  while (i < counts[0] && i < counts[1] && strcmp(a[i].key, b[i].key) == 0 &&
         strcmp(a[i].value, b[i].value) == 0)
    i++;
  if (i < counts[0] && (i == counts[1] || strcmp(a[i].key, b[i].key) <= 0))
    key = a[i].key;
  else if (i < counts[1])
    key = b[i].key;
  if (key != NULL) {
    printf("note: metadata differs, first in ");
    print_name(key);
    putchar('\n');
  }
out:
  free(a);
  free(b);
  return result;
}

static uint64_t total_bytes(const clb_safetensors *file)
{
  uint64_t total = 0;
  clb_tensor tensor;

  for (size_t i = 0; i < clb_safetensors_count(file); i++)
    if (clb_safetensors_tensor(file, i, &tensor) == CLB_OK)
      total += clb_bytes_length(tensor.bytes);
  return total;
}

int tool_cmd_verify(const struct tool_options *options, char **operands)
{
  struct pair_of_files pair = {.paths = {operands[0], operands[1]}};
  int result = TOOL_FAILED;

  for (int side = 0; side < 2; side++)
    if (clb_safetensors_open(pair.paths[side], &pair.files[side]) != CLB_OK) {
      tool_library_error(pair.paths[side]);
      goto out;
    }
  pair.piece = malloc(PIECE);
  if (pair.piece == NULL) {
    tool_error("out of memory");
    goto out;
  }
  result = compare_names(&pair);
  if (result == TOOL_OK)
    result = compare_types(&pair);
  if (result == TOOL_OK) {
    tool_progress_start(&pair.progress, "verify", total_bytes(pair.files[0]),
                        options->quiet);
    result = compare_contents(&pair);
    tool_progress_end(&pair.progress);
  }
  if (result == TOOL_OK && !options->quiet)
    printf("equal: %zu tensors, %" PRIu64 " bytes\n",
           clb_safetensors_count(pair.files[0]), pair.done);
  if (result == TOOL_OK && !options->quiet)
    result = note_metadata(&pair);
out:
  free(pair.piece);
  clb_safetensors_close(pair.files[0]);
  clb_safetensors_close(pair.files[1]);
  return result;
}
