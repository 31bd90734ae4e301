/*
 * See saves.h.  Knows the public headers alone.
 */
#include "config.h"

#include "saves.h"

/* --- Models --------------------------------------------------------------- */

clb_tensor *model_add(struct model *model, const char *name, const char *dtype,
                      size_t ndim, const size_t *shape, const void *data,
                      size_t length)
{
  clb_tensor *tensor = &model->tensors[model->count++];

  ck_assert_uint_le(model->count, MODEL_MOST);
  tensor->name = name;
  tensor->dtype = dtype;
  tensor->ndim = ndim;
  tensor->shape = shape;
  ck_ok(clb_bytes_from_copy(data, length, &tensor->bytes));
  return tensor;
}

clb_tensor *model_add_row(struct model *model, const char *name,
                          const char *dtype, const size_t *extent,
                          const void *data, size_t length)
{
  return model_add(model, name, dtype, 1, extent, data, length);
}

void model_give_back(struct model *model)
{
  for (size_t i = 0; i < model->count; i++)
    clb_bytes_release(model->tensors[i].bytes);
}

void ck_saved(const struct model *model, const clb_save_options *options,
              const char *header, const void *data, size_t length)
{
  struct text expected = st_file(header, data, length);
  struct gathered sunk = {0};
  clb_safetensors *file;

  ck_ok(clb_safetensors_save("out", model->tensors, model->count, options));
  ck_file("out", expected.data, expected.length);
  ck_assert_uint_eq(files_in("."), 1);
  ck_ok(clb_safetensors_write(gather_sink, &sunk, model->tensors, model->count,
                              options));
  ck_assert_uint_eq(sunk.length, expected.length);
  ck_bytes(sunk.data, expected.data, expected.length);
  ck_ok(clb_safetensors_open("out", &file));
  ck_assert_uint_eq(clb_safetensors_count(file), model->count);
  for (size_t i = 0; i < model->count; i++) {
    const clb_tensor *saved = &model->tensors[i];
    clb_tensor found;

    ck_ok(clb_safetensors_find(file, saved->name, &found));
    ck_assert_str_eq(found.name, saved->name);
    ck_assert_str_eq(found.dtype, saved->dtype);
    ck_assert_uint_eq(clb_bytes_length(found.bytes),
                      clb_bytes_length(saved->bytes));
  }
  clb_safetensors_close(file);
  free(sunk.data);
  free(expected.data);
}

/* --- Files of one value --------------------------------------------------- */

clb_status save_length(const char *path, int value, size_t length,
                       const clb_save_options *options)
{
  unsigned char *data = fixture_malloc(length);
  clb_tensor tensor = {"x", "U8", 1, &length, NULL};
  clb_status status;

  memset(data, value, length);
  ck_ok(clb_bytes_from_copy(data, length, &tensor.bytes));
  free(data);
  status = clb_safetensors_save(path, &tensor, 1, options);
  clb_bytes_release(tensor.bytes);
  return status;
}

clb_status save_value(const char *path, int value)
{
  return save_length(path, value, SAVE_LARGE, NULL);
}

int saved_value(const char *path)
{
  clb_safetensors *file;
  clb_tensor tensor;
  const void *data;
  const unsigned char *bytes;
  int value;

  ck_ok(clb_safetensors_open(path, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 1);
  ck_ok(clb_safetensors_find(file, "x", &tensor));
  ck_ok(clb_bytes_read(tensor.bytes, CLB_COPY, &data));
  bytes = data;
  ck_assert_msg(memcmp(bytes, bytes + 1, clb_bytes_length(tensor.bytes) - 1) ==
                  0, "%s is a mixture", path);
  value = bytes[0];
  clb_safetensors_close(file);
  return value;
}
