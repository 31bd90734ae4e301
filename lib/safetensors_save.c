/*
 * safetensors_save.c - saves tensors to a file or a sink.
 *
 * Owns the order of a save: check and plan, then stream, then publish.  What a
 * header looks like and how a file gets its name stand elsewhere.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "checked.h"
#include "error.h"
#include "options.h"
#include "safetensors_plan.h"
#include "savefile.h"

#include <inttypes.h>
#include <stdbool.h>

/* A save on its way; the user of the streams' sink. */
typedef struct transfer {
  clb_sink sink; /* the caller's, or into the file */
  void *user;
  const clb_save_options *options;
  const char *path; /* of a file; else NULL */
  uint64_t done, total; /* tensor bytes */
  bool told;            /* progress was */
  const char *stopped;  /* by whom; NULL: by nobody */
} transfer;

/* --- Streaming ------------------------------------------------------------ */

static int tell_progress(transfer *t) {
  const clb_save_options *options = t->options;

  t->told = true;
  if (options->progress == NULL ||
      options->progress(t->done, t->total, options->user) == 0)
    return 0;
  t->stopped = "progress";
  return 1;
}

static int pass_on(const void *data, size_t length, void *user) {
  transfer *t = user;

  if (t->sink(data, length, t->user) != 0) {
    t->stopped = "the sink";
    return 1;
  }
  t->done += length;
  return tell_progress(t);
}

static clb_status stopped(const transfer *t) {
  return clb__fail(CLB_CANCELLED,
                   "%s%s%s stopped the save at %" PRIu64 " of %" PRIu64
                   " bytes",
                   t->path == NULL ? "" : t->path, t->path == NULL ? "" : ": ",
                   t->stopped, t->done, t->total);
}

static clb_status stream_tensors(transfer *t, const clb__file_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    const clb__planned *planned = &plan->tensors[i];
    clb_status status = clb_bytes_stream(planned->tensor->bytes, 0,
                                         planned->length, pass_on, t);
    if (t->stopped != NULL)
      return stopped(t);
    if (status != CLB_OK)
      return clb__fail_prefix(status, "tensor \"%.100s\"",
                              planned->tensor->name);
  }
  return CLB_OK;
}

static clb_status stream_all(transfer *t, const clb__file_plan *plan) {
  clb_status status;

  t->total = plan->data_length;
  if (t->sink(plan->head, plan->head_length, t->user) != 0) {
    t->stopped = "the sink";
    return stopped(t);
  }
  status = stream_tensors(t, plan);
  if (status == CLB_OK && !t->told && tell_progress(t) != 0)
    status = stopped(t);
  return status;
}

/* --- The two kinds -------------------------------------------------------- */

static clb_status check_lists(const char *call, const clb_tensor *tensors,
                              size_t count, const clb_save_options *options) {
  if (tensors == NULL && count > 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%s: count is %zu, and tensors is NULL", call, count);
  if (options->metadata == NULL && options->metadata_count > 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%s: metadata_count is %zu, and metadata is NULL", call,
                     options->metadata_count);
  return CLB_OK;
}

static clb_status prepare(const char *call, const clb_tensor *tensors,
                          size_t count, const clb_save_options *from,
                          clb_save_options *options, clb__file_plan *plan) {
  clb_status status = CLB_OK;

#ifdef WORDS_BIGENDIAN
  return clb__fail(CLB_UNSUPPORTED,
                   "safetensors files are little-endian, this host is not");
#endif
  *options = (clb_save_options)CLB_SAVE_OPTIONS_INIT;
  if (from != NULL)
    status = clb__options_read(from, options, sizeof *options,
                               "CLB_SAVE_OPTIONS_INIT");
  if (status == CLB_OK)
    status = check_lists(call, tensors, count, options);
  if (status == CLB_OK)
    status = clb__file_plan_make(tensors, count, options, plan);
  return status;
}

clb_status clb_safetensors_write(clb_sink sink, void *user,
                                 const clb_tensor *tensors, size_t count,
                                 const clb_save_options *options) {
  clb_save_options known;
  clb__file_plan plan = {NULL, 0, NULL, 0, 0};
  transfer t = {.sink = sink, .user = user, .options = &known};
  clb_status status;

  if (sink == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_write: sink is NULL");
  status = prepare("clb_safetensors_write", tensors, count, options, &known,
                   &plan);
  if (status == CLB_OK)
    status = stream_all(&t, &plan);
  clb__file_plan_free(&plan);
  return status;
}

/* The file as a sink; a stream that a sink stopped only says that it did, so
 * the cause waits here. */
typedef struct file_sink {
  clb__savefile file;
  int err;
} file_sink;

static int to_file(const void *data, size_t length, void *user) {
  file_sink *to = user;

  to->err = clb__savefile_write(&to->file, data, length);
  return to->err;
}

static clb_status save_plan(const char *path, const clb__file_plan *plan,
                            const clb_save_options *options) {
  file_sink to = {.err = 0};
  transfer t = {.sink = to_file,
                .user = &to,
                .options = options,
                .path = path};
  bool durable = options->durable != 0;
  uint64_t size = UINT64_MAX; /* refused, as too large a sum is */
  clb_status status;

  (void)clb__add_u64(plan->data_length, plan->head_length, &size);
  status = clb__savefile_create(path, size, durable, &to.file);
  if (status != CLB_OK)
    return status;
  status = stream_all(&t, plan);
  if (status == CLB_OK)
    return clb__savefile_commit(&to.file, durable);
  if (to.err != 0)
    status = clb__fail_errno(CLB_IO_ERROR, to.err,
                             "%s: cannot write, at %" PRIu64 " of %" PRIu64
                             " bytes of tensors",
                             path, t.done, t.total);
  clb__savefile_discard(&to.file);
  return status;
}

clb_status clb_safetensors_save(const char *path, const clb_tensor *tensors,
                                size_t count, const clb_save_options *options) {
  clb_save_options known;
  clb__file_plan plan = {NULL, 0, NULL, 0, 0};
  clb_status status;

  if (path == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_save: path is NULL");
  status = prepare("clb_safetensors_save", tensors, count, options, &known,
                   &plan);
  if (status == CLB_OK)
    status = save_plan(path, &plan, &known);
  clb__file_plan_free(&plan);
  return status;
}
