/*
 * safetensors_dtype.c - the element types of the format and their sizes.
 *
 * Owns the table; knows no tensor and no file.
 */
#include "config.h"

#include "safetensors_dtype.h"

#include "checked.h"

#include <stdio.h>
#include <string.h>

/* The order decides how a file is laid down: safetensors 0.8 sorts by it,
 * descending, and the position in the enum counts, not the size. */
static const clb__dtype dtypes[] = {
    {"BOOL", 8},        {"F4", 4},          {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8},     {"F8_E4M3", 8},     {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},        {"F16", 16},        {"BF16", 16},
    {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},        {"F64", 64},        {"I64", 64},
    {"U64", 64},
};

const clb__dtype *clb__dtype_find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (strlen(dtypes[i].name) == length &&
        memcmp(dtypes[i].name, name, length) == 0)
      return &dtypes[i];
  return NULL;
}

void clb__dtype_names(char *text, size_t size) {
  size_t used = 0;

  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0] && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s",
                             i == 0 ? "" : ", ", dtypes[i].name);
}

bool clb__dtype_length(const clb__dtype *dtype, size_t ndim,
                       const size_t *shape, uint64_t *length) {
  uint64_t bits = 1;

  for (size_t d = 0; d < ndim; d++)
    if (clb__mul_u64(bits, shape[d], &bits))
      return false;
  if (clb__mul_u64(bits, dtype->bits, &bits) || bits % 8 != 0)
    return false;
  *length = bits / 8;
  return true;
}

void clb__shape_text(char *text, size_t size, size_t ndim,
                     const size_t *shape) {
  size_t used = 1;

  (void)snprintf(text, size, "[");
  for (size_t d = 0; d < ndim; d++) {
    /* Room for the longest number, the dots and the bracket. */
    if (size - used < 32) {
      (void)snprintf(text + used, size - used, ", ...");
      used += 5;
      break;
    }
    used += (size_t)snprintf(text + used, size - used, d == 0 ? "%zu" : ", %zu",
                             shape[d]);
  }
  (void)snprintf(text + used, size - used, "]");
}
