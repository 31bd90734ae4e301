/*
 * Makes a safetensors file of a size, for trials with the clbytes command.
 * Tensors overlap in one block of memory, each beginning a little later, so
 * they differ and a large file takes little memory.
 */
#include "config.h"

#include "measure.h"

#include "../tools/parse_size.h"
#include "../tools/report.h"

#include <clbytes/safetensors.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENT = 4, SHIFT = 64, NAME = 32 };

struct model {
  size_t size, tensor; /* bytes in all, and of a tensor at most */
  size_t count;
  clb_tensor *tensors;
  char (*names)[NAME];
  size_t *shapes;
  unsigned char *block;
};

/* Bytes that look like weights to nobody, but differ everywhere. */
static void fill(unsigned char *block, size_t length)
{
  uint64_t state = 1;

  for (size_t i = 0; i < length; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    block[i] = (unsigned char)(state >> 56);
  }
}

static bool make_tensor(struct model *model, size_t index)
{
  size_t left = model->size - index * model->tensor;
  size_t length = left < model->tensor ? left : model->tensor;
  clb_tensor *tensor = &model->tensors[index];

  snprintf(model->names[index], NAME, "tensor.%06zu", index);
  model->shapes[index] = length / ELEMENT;
  *tensor = (clb_tensor){.name = model->names[index], .dtype = "F32",
                         .ndim = 1, .shape = &model->shapes[index]};
  return bench_ok(clb_bytes_from_host(model->block + index * SHIFT, length,
                                      NULL, NULL, &tensor->bytes),
                  "a handle");
}

static bool make(struct model *model)
{
  size_t length;

  model->size -= model->size % ELEMENT;
  model->tensor -= model->tensor % ELEMENT;
  if (model->size == 0 || model->tensor == 0) {
    tool_error("a tensor has %d bytes at least", (int)ELEMENT);
    return false;
  }
  model->count = (model->size - 1) / model->tensor + 1;
  length = model->tensor + (model->count - 1) * SHIFT;
  model->tensors = calloc(model->count, sizeof(*model->tensors));
  model->names = calloc(model->count, sizeof(*model->names));
  model->shapes = calloc(model->count, sizeof(*model->shapes));
  model->block = malloc(length);
  if (model->tensors == NULL || model->names == NULL ||
      model->shapes == NULL || model->block == NULL) {
    tool_error("out of memory");
    return false;
  }
  fill(model->block, length);
  for (size_t i = 0; i < model->count; i++)
    if (!make_tensor(model, i))
      return false;
  return true;
}

int main(int argc, char **argv)
{
  struct model model = {.tensor = (size_t)64 << 20};
  const struct bench_option options[] = {
      {.name = "tensor", .what = "bytes of each tensor",
       .size = &model.tensor}};
  int operand = bench_parse(argc, argv, "PATH SIZE", options, 1);
  const char *path = argv[operand];
  const char *wrong = tool_parse_size(argv[operand + 1], &model.size);
  bool done;

  if (wrong != NULL) {
    tool_error("SIZE: '%s' %s", argv[operand + 1], wrong);
    return TOOL_USAGE;
  }
  done = make(&model) &&
         bench_ok(clb_safetensors_save(path, model.tensors, model.count, NULL),
                  "a save");
  for (size_t i = 0; model.tensors != NULL && i < model.count; i++)
    clb_bytes_release(model.tensors[i].bytes);
  free(model.tensors);
  free(model.names);
  free(model.shapes);
  free(model.block);
  return done ? TOOL_OK : TOOL_FAILED;
}
