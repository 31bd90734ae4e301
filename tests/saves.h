/*
 * What the tests of saves share: models of host memory that are given back
 * together, and files of one tensor whose every byte is the same, which show
 * whether they are whole.
 */
#ifndef CLBYTES_TESTS_SAVES_H
#define CLBYTES_TESTS_SAVES_H

#include <clbytes/safetensors.h>

#include "files.h"

/* --- Models --------------------------------------------------------------- */

enum { MODEL_MOST = 32 };

/* Start from {0}. */
struct model {
  clb_tensor tensors[MODEL_MOST];
  size_t count;
};

/* A tensor of a copy of these bytes; name, dtype and shape are borrowed. */
clb_tensor *model_add(struct model *model, const char *name, const char *dtype,
                      size_t ndim, const size_t *shape, const void *data,
                      size_t length);
/* The same with one dimension. */
clb_tensor *model_add_row(struct model *model, const char *name,
                          const char *dtype, const size_t *extent,
                          const void *data, size_t length);
void model_give_back(struct model *model);

/* A save as "out" and a write both give just this file, which opens. */
void ck_saved(const struct model *model, const clb_save_options *options,
              const char *header, const void *data, size_t length);

/* --- Files of one value --------------------------------------------------- */

/* Large enough for many pieces and for more than a small disk. */
enum { SAVE_LARGE = (2 << 20) + 7 };

/* The scratch file's name, in the directory of its target. */
#define SCRATCH(name) "." name ".clbytes-tmp"

/* Saves one tensor of length bytes of this value. */
clb_status save_length(const char *path, int value, size_t length,
                       const clb_save_options *options);
/* SAVE_LARGE of them. */
clb_status save_value(const char *path, int value);

/* The value that every byte of the saved tensor has; the file is whole. */
int saved_value(const char *path);

#endif
