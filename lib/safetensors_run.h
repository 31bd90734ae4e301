/*
 * safetensors_run.h - a planned file as a run of bytes: its header, its tensors.
 */
#ifndef CLB_SAFETENSORS_RUN_H
#define CLB_SAFETENSORS_RUN_H

#include "pipeline.h"
#include "safetensors_plan.h"

/* Bytes [from, to) of a tensor that are also those of another, and are not in
 * the run but written there when they come by; both ends are at a page of the
 * file. */
typedef struct clb__tie {
  size_t span;      /* of the tensor that is in the run, whole */
  const char *name; /* the other's */
  uint64_t there;   /* where that begins in the file, */
  uint64_t here;    /* and the other */
  uint64_t from, to;
} clb__tie;

/* Start from zeros. */
typedef struct clb__run {
  clb__span *spans;
  size_t count;
  clb__tie *ties; /* in the order of their spans */
  size_t tie_count;
  uint64_t length; /* of the file */
  size_t head;     /* of it, before the first tensor */
  size_t *tensor;  /* of each span, which of the plan it is of; the header's is
                      none */
} clb__run;

/*
 * Whatever it returns, run is to be freed; it borrows from the plan.
 *   tie  tensors over the same region of a device are read once
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__run_make(const clb__file_plan *plan, bool tie, clb__run *run);
void clb__run_free(clb__run *run);

/* Bytes of tensors that are written with a parcel. */
uint64_t clb__run_payload(const clb__run *run, const clb__parcel *parcel);

/* Calls for each part of a parcel that is also another tensor's; stops at what
 * is not 0, and returns it. */
typedef int (*clb__tied)(void *user, const clb__tie *tie,
                         const unsigned char *data, size_t length, uint64_t at);
int clb__run_tied(const clb__run *run, const clb__parcel *parcel,
                  clb__tied tied, void *user);

#endif
