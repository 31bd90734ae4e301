/*
 * safetensors_check.h - hashes of what a save writes, and what they are for:
 * reading the file again, and looking whether tensors changed meanwhile.
 */
#ifndef CLB_SAFETENSORS_CHECK_H
#define CLB_SAFETENSORS_CHECK_H

#include "safetensors_run.h"
#include "savefile.h"

/* What a tensor has of a parcel, where it went in the file, and its hash. */
typedef struct clb__hash {
  uint64_t at, value;
  const char *name; /* of the tensor; NULL: the header */
  size_t span;      /* that it is of, or CLB__NO_SPAN: it came by with another's */
  size_t length;
} clb__hash;
#define CLB__NO_SPAN SIZE_MAX

typedef struct clb__check clb__check;

/* Whether tensors of the run want to be looked at again: CLBYTES_DEBUG=torn. */
bool clb__check_torn_wanted(const clb__run *run);

/*
 * CLB_UNSUPPORTED  there are no hashes here
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__check_make(const clb__run *run, clb__check **out);
void clb__check_free(clb__check *check);

/* Hashes a parcel that is about to be written; any thread. */
void clb__check_add(clb__check *check, const clb__parcel *parcel);

/*
 * Reads the whole file again, past the page cache where that can be.
 * CLB_IO_ERROR  also: what is there is not what was written; the message names
 *               the tensor
 */
clb_status clb__check_file(clb__check *check, const clb__savefile *file);

/*
 * Reads parts of the tensors again from where they are.
 * CLB_DEVICE_ERROR  one has changed; the message names it
 */
clb_status clb__check_torn(clb__check *check, const clb__savefile *file);

#endif
