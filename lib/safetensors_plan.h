/*
 * safetensors_plan.h - a file to be written: the order of its tensors and its
 * header, made from lengths alone.
 */
#ifndef CLB_SAFETENSORS_PLAN_H
#define CLB_SAFETENSORS_PLAN_H

#include <clbytes/safetensors.h>

#include "safetensors_dtype.h"

/* A tensor of the caller's that was found right. */
typedef struct clb__planned {
  const clb_tensor *tensor;
  const clb__dtype *dtype;
  size_t ndim;
  const size_t *shape; /* the caller's, else the handle's */
  size_t length;       /* bytes */
} clb__planned;

/* Start from zeros. */
typedef struct clb__file_plan {
  clb__planned *tensors; /* in the order of the file */
  size_t count;
  char *head; /* the header's length, its text, its padding */
  size_t head_length;
  uint64_t data_length;
} clb__file_plan;

/*
 * Takes what a function of saves was called with: the caller's options, or NULL,
 * become whole ones.
 * CLB_INVALID_ARGUMENT, CLB_UNSUPPORTED
 */
clb_status clb__save_options_read(const char *call, const clb_tensor *tensors,
                                  size_t count, const clb_save_options *from,
                                  clb_save_options *options);

/*
 * Checks all that can be checked before anything is written, and plans.
 * Whatever it returns, plan is to be freed.
 *   options  whole, not NULL; its metadata alone is used
 * CLB_INVALID_ARGUMENT, CLB_OUT_OF_MEMORY
 */
clb_status clb__file_plan_make(const clb_tensor *tensors, size_t count,
                               const clb_save_options *options,
                               clb__file_plan *plan);

/* The same checks alone; *data_length: of all tensors. */
clb_status clb__tensors_check(const clb_tensor *tensors, size_t count,
                              const clb_save_options *options,
                              uint64_t *data_length);
void clb__file_plan_free(clb__file_plan *plan);

#endif
