/*
 * safetensors_plan.c - checks and orders the tensors of a save.
 *
 * Owns what a save refuses before it writes.  The bytes are those that the
 * format's own writer makes of the same tensors.
 */
#include "config.h"

#include "safetensors_plan.h"

#include "checked.h"
#include "error.h"
#include "options.h"
#include "safetensors_header.h"
#include "safetensors_text.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- Arguments ------------------------------------------------------------ */

static clb_status check_lists(const char *call, const clb_tensor *tensors,
                              size_t count, const clb_save_options *options) {
  if (tensors == NULL && count > 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%s: count is %zu, and tensors is NULL", call, count);
  if (options->metadata == NULL && options->metadata_count > 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%s: metadata_count is %zu, and metadata is NULL", call,
                     options->metadata_count);
#ifndef HAVE_XXHASH
  if (options->verify != 0)
    return clb__fail(CLB_UNSUPPORTED,
                     "%s: verify needs xxHash, which this library was built "
                     "without", call);
#endif
  if (options->io > CLB_FILE_MAPPED)
    return clb__fail(CLB_INVALID_ARGUMENT, "%s: no such io: %u", call,
                     (unsigned)options->io);
  return CLB_OK;
}

clb_status clb__save_options_read(const char *call, const clb_tensor *tensors,
                                  size_t count, const clb_save_options *from,
                                  clb_save_options *options) {
  clb_status status = CLB_OK;

#ifdef WORDS_BIGENDIAN
  return clb__fail(CLB_UNSUPPORTED,
                   "safetensors files are little-endian, this host is not");
#endif
  *options = (clb_save_options)CLB_SAVE_OPTIONS_INIT;
  if (from != NULL)
    status = clb__options_read(from, options, sizeof *options,
                               "CLB_SAVE_OPTIONS_INIT");
  return status == CLB_OK ? check_lists(call, tensors, count, options) : status;
}

/* --- One tensor ----------------------------------------------------------- */

static clb_status check_name(const clb_tensor *tensor, size_t index) {
  if (tensor->name == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "tensor %zu: its name is NULL",
                     index);
  if (clb__utf8_span(tensor->name, strlen(tensor->name)) !=
      strlen(tensor->name))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor %zu: its name \"%.100s\" is not UTF-8", index,
                     tensor->name);
  if (strcmp(tensor->name, CLB__METADATA_KEY) == 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor %zu: the name \"" CLB__METADATA_KEY
                     "\" is the format's own",
                     index);
  return CLB_OK;
}

static clb_status find_shape(const clb_tensor *tensor, clb__planned *out) {
  clb_layout layout;
  clb_status status;

  if (tensor->shape != NULL) {
    out->ndim = tensor->ndim;
    out->shape = tensor->shape;
  } else {
    status = clb_bytes_layout(tensor->bytes, &layout);
    if (status != CLB_OK)
      return clb__fail_prefix(status, "tensor \"%.100s\"", tensor->name);
    out->ndim = layout.ndim;
    out->shape = layout.shape;
  }
  if (out->ndim > CLB__RANK_MAX)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor \"%.100s\": %zu dimensions, at most %d are "
                     "allowed",
                     tensor->name, out->ndim, CLB__RANK_MAX);
  return CLB_OK;
}

static clb_status check_length(const clb__planned *planned) {
  const char *name = planned->tensor->name;
  const char *which = planned->tensor->shape != NULL
                          ? "shape"
                          : "shape is NULL, and the handle's own shape";
  uint64_t length;
  char shape[128];

  clb__shape_text(shape, sizeof shape, planned->ndim, planned->shape);
  if (!clb__dtype_length(planned->dtype, planned->ndim, planned->shape,
                         &length))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor \"%.100s\": %s %s of %s overflows or is no "
                     "whole number of bytes",
                     name, which, shape, planned->dtype->name);
  if (length != planned->length)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor \"%.100s\": %s %s of %s has %" PRIu64
                     " bytes, the handle has %zu",
                     name, which, shape, planned->dtype->name, length,
                     planned->length);
  return CLB_OK;
}

static clb_status plan_tensor(const clb_tensor *tensor, size_t index,
                              clb__planned *out) {
  clb_status status = check_name(tensor, index);

  if (status != CLB_OK)
    return status;
  if (tensor->bytes == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "tensor \"%.100s\": bytes is NULL",
                     tensor->name);
  if (tensor->dtype == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "tensor \"%.100s\": dtype is NULL",
                     tensor->name);
  out->tensor = tensor;
  out->length = clb_bytes_length(tensor->bytes);
  out->dtype = clb__dtype_find(tensor->dtype, strlen(tensor->dtype));
  if (out->dtype == NULL) {
    char names[256];
    clb__dtype_names(names, sizeof names);
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "tensor \"%.100s\": the format has no dtype \"%.40s\"; it "
                     "has %s",
                     tensor->name, tensor->dtype, names);
  }
  status = find_shape(tensor, out);
  return status == CLB_OK ? check_length(out) : status;
}

/* --- All of them ---------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
  const clb__planned *x = a, *y = b;
  return strcmp(x->tensor->name, y->tensor->name);
}

/* The widest type first, so that every tensor is aligned to its elements. */
static int compare_places(const void *a, const void *b) {
  const clb__planned *x = a, *y = b;

  if (x->dtype != y->dtype)
    return x->dtype > y->dtype ? -1 : 1;
  return compare_names(a, b);
}

static clb_status plan_tensors(const clb_tensor *tensors, size_t count,
                               clb__file_plan *plan) {
  clb_status status = CLB_OK;

  plan->tensors = calloc(count == 0 ? 1 : count, sizeof *plan->tensors);
  if (plan->tensors == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory to plan %zu tensors", count);
  plan->count = count;
  for (size_t i = 0; i < count && status == CLB_OK; i++) {
    status = plan_tensor(&tensors[i], i, &plan->tensors[i]);
    if (status == CLB_OK &&
        clb__add_u64(plan->data_length, plan->tensors[i].length,
                     &plan->data_length))
      status = clb__fail(CLB_INVALID_ARGUMENT,
                         "tensor \"%.100s\": the sum of all lengths overflows",
                         tensors[i].name);
  }
  if (status != CLB_OK)
    return status;
  qsort(plan->tensors, count, sizeof *plan->tensors, compare_names);
  for (size_t i = 1; i < count; i++)
    if (compare_names(&plan->tensors[i - 1], &plan->tensors[i]) == 0)
      return clb__fail(CLB_INVALID_ARGUMENT,
                       "tensor \"%.100s\" is given twice",
                       plan->tensors[i].tensor->name);
  qsort(plan->tensors, count, sizeof *plan->tensors, compare_places);
  return CLB_OK;
}

/* --- Metadata ------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b) {
  const clb_pair *const *x = a, *const *y = b;
  return strcmp((*x)->key, (*y)->key);
}

static clb_status check_pair(const clb_pair *pair, size_t index) {
  if (pair->key == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "metadata %zu: its key is NULL",
                     index);
  if (clb__utf8_span(pair->key, strlen(pair->key)) != strlen(pair->key))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "metadata %zu: its key \"%.100s\" is not UTF-8", index,
                     pair->key);
  if (pair->value == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "metadata \"%.100s\": its value is NULL", pair->key);
  if (clb__utf8_span(pair->value, strlen(pair->value)) != strlen(pair->value))
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "metadata \"%.100s\": its value is not UTF-8", pair->key);
  return CLB_OK;
}

static clb_status check_metadata(const clb_pair *pairs, size_t count) {
  const clb_pair **sorted;
  clb_status status = CLB_OK;

  for (size_t i = 0; i < count && status == CLB_OK; i++)
    status = check_pair(&pairs[i], i);
  if (count < 2 || status != CLB_OK)
    return status;
  sorted = calloc(count, sizeof *sorted);
  if (sorted == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory to check %zu pairs", count);
  for (size_t i = 0; i < count; i++)
    sorted[i] = &pairs[i];
  qsort(sorted, count, sizeof *sorted, compare_keys);
  for (size_t i = 1; i < count && status == CLB_OK; i++)
    if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
      status = clb__fail(CLB_INVALID_ARGUMENT,
                         "metadata \"%.100s\" is given twice", sorted[i]->key);
  free(sorted);
  return status;
}

clb_status clb__file_plan_make(const clb_tensor *tensors, size_t count,
                               const clb_save_options *options,
                               clb__file_plan *plan) {
  clb_status status =
      check_metadata(options->metadata, options->metadata_count);

  if (status == CLB_OK)
    status = plan_tensors(tensors, count, plan);
  if (status == CLB_OK)
    status = clb__header_encode(plan, options);
  return status;
}

clb_status clb__tensors_check(const clb_tensor *tensors, size_t count,
                              const clb_save_options *options,
                              uint64_t *data_length) {
  clb__file_plan plan = {.count = 0};
  clb_status status =
      check_metadata(options->metadata, options->metadata_count);

  if (status == CLB_OK)
    status = plan_tensors(tensors, count, &plan);
  *data_length = plan.data_length;
  clb__file_plan_free(&plan);
  return status;
}

void clb__file_plan_free(clb__file_plan *plan) {
  free(plan->tensors);
  free(plan->head);
}
