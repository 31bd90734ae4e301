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
#include "safetensors_keep.h"
#include "safetensors_plan.h"
#include "safetensors_shards.h"
#include "savefile.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

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

static clb_status stream_file(transfer *t, const clb__file_plan *plan) {
  if (t->sink(plan->head, plan->head_length, t->user) != 0) {
    t->stopped = "the sink";
    return stopped(t);
  }
  return stream_tensors(t, plan);
}

/* At least once, also where there is nothing to stream. */
static clb_status tell_end(transfer *t) {
  return !t->told && tell_progress(t) != 0 ? stopped(t) : CLB_OK;
}

/* --- To a sink ------------------------------------------------------------ */

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
  status = prepare("clb_safetensors_write", tensors, count, options, &known);
  if (status == CLB_OK)
    status = clb__file_plan_make(tensors, count, &known, &plan);
  t.total = plan.data_length;
  if (status == CLB_OK)
    status = stream_file(&t, &plan);
  if (status == CLB_OK)
    status = tell_end(&t);
  clb__file_plan_free(&plan);
  return status;
}

/* --- Files ---------------------------------------------------------------- */

/* A save to files.  The index, where there is one, is made first and so is the
 * lock of the set; all take their room on the disk before the first is
 * written. */
typedef struct job {
  const clb__shard_set *set;
  transfer t;
  bool durable;
  clb__kept kept;       /* whether an old set was */
  bool withdrawn;       /* the old index was removed */
  clb__old_set old;
  clb__savefile *files; /* the index's, if any, then the shards' */
  size_t made, done;    /* of files; done: committed */
  clb__savefile *now;   /* what is written */
  int err; /* a stream that a sink stopped only says that it did: the cause */
} job;

static int to_file(const void *data, size_t length, void *user) {
  job *j = user;

  j->err = clb__savefile_write(j->now, data, length);
  return j->err;
}

static clb_status create_file(job *j, const char *path, uint64_t size) {
  clb_status status =
      clb__savefile_create(path, size, j->durable, &j->files[j->made]);

  if (status == CLB_OK)
    j->made++;
  return status;
}

static clb_status create_files(job *j) {
  const clb__shard_set *set = j->set;
  clb_status status = CLB_OK;

  j->files = calloc(set->count + 1, sizeof *j->files);
  if (j->files == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu files", set->count);
  if (set->index_path != NULL)
    status = create_file(j, set->index_path, set->index_length);
  if (set->index_path != NULL && status == CLB_OK)
    clb__savefile_tidy(&j->files[0]);
  for (size_t s = 0; s < set->count && status == CLB_OK; s++) {
    const clb__shard *shard = &set->shards[s];
    uint64_t size = UINT64_MAX; /* refused, as too large a sum is */
    (void)clb__add_u64(shard->plan.data_length, shard->plan.head_length, &size);
    status = create_file(j, shard->path, size);
  }
  return status;
}

static clb_status write_failed(const job *j) {
  return clb__fail_errno(CLB_IO_ERROR, j->err,
                         "%s: cannot write, at %" PRIu64 " of %" PRIu64
                         " bytes of tensors",
                         j->now->given, j->t.done, j->t.total);
}

static clb_status write_files(job *j) {
  const clb__shard_set *set = j->set;
  clb_status status = CLB_OK;

  j->now = j->files;
  if (set->index_path != NULL) {
    if (to_file(set->index, set->index_length, j) != 0)
      return write_failed(j);
    status = clb__savefile_seal(j->now++, j->durable);
  }
  for (size_t s = 0; s < set->count && status == CLB_OK; s++, j->now++) {
    status = stream_file(&j->t, &set->shards[s].plan);
    if (j->err != 0)
      return write_failed(j);
    if (status == CLB_OK && s + 1 == set->count)
      status = tell_end(&j->t);
    if (status == CLB_OK)
      status = clb__savefile_seal(j->now, j->durable);
  }
  return status;
}

/* An index must never name old and new shards together.  Where shards replace
 * those that the old index names, it is made to name other names of the old
 * files; if that cannot be, it goes before the first is replaced. */
static clb_status spare_old_set(job *j) {
  bool overwrites = false;
  clb_status status;

  if (j->set->index_path == NULL)
    return CLB_OK;
  j->kept = clb__old_set_keep(j->set, &j->files[0], j->durable, &j->old);
  for (size_t i = 1; i < j->made; i++)
    overwrites = overwrites || j->files[i].replaces;
  if (j->kept != CLB__NOT_KEPT || !overwrites)
    return CLB_OK;
  j->withdrawn = true;
  status = clb__savefile_withdraw(&j->files[0], j->durable);
  if (status == CLB_OK)
    clb__old_set_forget(j->set, &j->old);
  return status;
}

static clb_status commit_files(job *j) {
  size_t shards = j->set->index_path == NULL ? 0 : 1;
  clb_status status = spare_old_set(j);

  for (size_t i = shards; i < j->made && status == CLB_OK; i++) {
    j->done++;
    status = clb__savefile_commit(&j->files[i], j->durable);
  }
  if (status == CLB_OK && shards > 0) {
    j->done++;
    status = clb__savefile_commit(&j->files[0], j->durable);
    if (status == CLB_OK)
      clb__old_set_forget(j->set, &j->old);
    return status;
  }
  return status == CLB_OK || !j->withdrawn
             ? status
             : clb__fail_prefix(status, "%s is removed, as its shards are being "
                                "replaced", j->set->index_path);
}

/* Those that were not committed, or tried to be. */
static void discard_files(job *j) {
  size_t shards = j->set->index_path == NULL ? 0 : 1;

  for (size_t i = shards + j->done; i < j->made; i++)
    clb__savefile_discard(&j->files[i]);
  if (shards > 0 && j->made > 0 && j->done < j->set->count + 1)
    clb__savefile_discard(&j->files[0]);
  free(j->files);
  clb__old_set_free(&j->old);
}

static clb_status save_set(const char *path, const clb__shard_set *set,
                           const clb_save_options *options) {
  job j = {.set = set, .durable = options->durable != 0};
  clb_status status;

  j.t = (transfer){.sink = to_file,
                   .user = &j,
                   .options = options,
                   .path = path,
                   .total = set->data_length};
  status = create_files(&j);
  if (status == CLB_OK)
    status = write_files(&j);
  if (status == CLB_OK)
    status = commit_files(&j);
  discard_files(&j);
  return status;
}

clb_status clb_safetensors_save(const char *path, const clb_tensor *tensors,
                                size_t count, const clb_save_options *options) {
  clb_save_options known;
  clb__shard_set set = {.count = 0};
  clb_status status;

  if (path == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_save: path is NULL");
  status = prepare("clb_safetensors_save", tensors, count, options, &known);
  if (status == CLB_OK)
    status = clb__shard_set_make(path, tensors, count, &known, &set);
  if (status == CLB_OK)
    status = save_set(path, &set, &known);
  clb__shard_set_free(&set);
  return status;
}
