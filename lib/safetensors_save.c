/*
 * safetensors_save.c - saves tensors to a file or a sink.
 *
 * Owns the order of a save: check and plan, then fill and write parcels, then
 * publish.  doc/saving.md says how; what a header looks like, how a parcel is
 * filled or written and how a file gets its name stand elsewhere.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "checked.h"
#include "error.h"
#include "safetensors_check.h"
#include "safetensors_keep.h"
#include "safetensors_plan.h"
#include "safetensors_run.h"
#include "safetensors_shards.h"
#include "savefile.h"
#include "writer.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* A save on its way. */
typedef struct transfer {
  const clb_save_options *options;
  const char *path;     /* of a file; else NULL */
  uint64_t done, total; /* tensor bytes */
  bool told;            /* progress was */
} transfer;

/* --- Progress --------------------------------------------------------------- */

static clb_status stopped(const transfer *t, const char *by) {
  return clb__fail(CLB_CANCELLED,
                   "%s%s%s stopped the save at %" PRIu64 " of %" PRIu64
                   " bytes",
                   t->path == NULL ? "" : t->path, t->path == NULL ? "" : ": ",
                   by, t->done, t->total);
}

static clb_status tell_progress(transfer *t) {
  const clb_save_options *options = t->options;

  t->told = true;
  return options->progress == NULL ||
                 options->progress(t->done, t->total, options->user) == 0
             ? CLB_OK
             : stopped(t, "progress");
}

/* At least once, also where there was nothing to move. */
static clb_status tell_end(transfer *t) {
  return t->told ? CLB_OK : tell_progress(t);
}

/* --- Parcels to a sink ------------------------------------------------------ */

static clb_status pass_on(transfer *t, const clb__run *run,
                          const clb__parcel *parcel, clb_sink sink,
                          void *user) {
  uint64_t payload = clb__run_payload(run, parcel);

  if (sink(parcel->data, parcel->length, user) != 0)
    return stopped(t, "the sink");
  t->done += payload;
  return payload > 0 ? tell_progress(t) : CLB_OK;
}

static clb_status stream_run(transfer *t, const clb__run *run, clb_sink sink,
                             void *user) {
  clb__pipeline *pipeline;
  clb__parcel *parcel;
  clb_status status =
      clb__pipeline_open(run->spans, run->count, true, &pipeline);

  if (status != CLB_OK)
    return status;
  do {
    status = clb__pipeline_next(pipeline, &parcel);
    if (parcel != NULL) {
      status = pass_on(t, run, parcel, sink, user);
      clb__pipeline_give(pipeline, parcel);
    }
  } while (status == CLB_OK && parcel != NULL);
  clb__pipeline_close(pipeline);
  return status;
}

/* --- Parcels to a file ------------------------------------------------------ */

/* What goes with the writing of a run. */
typedef struct beside {
  const clb__run *run;
  clb__check *check; /* NULL: nothing is checked */
} beside;

static void hash_parcel(void *user, const clb__parcel *parcel) {
  const beside *with = user;

  if (with->check != NULL)
    clb__check_add(with->check, parcel);
}

static int copy_tied(void *user, const clb__tie *tie,
                     const unsigned char *data, size_t length, uint64_t at) {
  (void)tie;
  return clb__writer_copy(user, data, length, at);
}

/* What is other tensors', too. */
static int write_tied(void *user, clb__writer *writer,
                      const clb__parcel *parcel) {
  const beside *with = user;

  return clb__run_tied(with->run, parcel, copy_tied, writer);
}

/* Gives parcels back that were written; with wait, one at least.  *idle: there
 * was none. */
static clb_status collect(transfer *t, const clb__run *run,
                          clb__pipeline *pipeline, clb__writer *writer,
                          bool wait, bool *idle) {
  clb_status status = CLB_OK;
  clb__parcel *parcel;

  *idle = true;
  while ((parcel = clb__writer_take(writer, wait && *idle)) != NULL) {
    uint64_t payload = clb__run_payload(run, parcel);
    *idle = false;
    clb__pipeline_give(pipeline, parcel);
    if (status == CLB_OK)
      status = clb__writer_status(writer);
    if (status == CLB_OK && payload > 0) {
      t->done += payload;
      status = tell_progress(t);
    }
  }
  return status;
}

static clb_status pump(transfer *t, const clb__run *run,
                       clb__pipeline *pipeline, clb__writer *writer) {
  clb__parcel *parcel;
  bool idle;
  clb_status status;

  do {
    status = collect(t, run, pipeline, writer, false, &idle);
    if (status == CLB_OK)
      status = clb__pipeline_next(pipeline, &parcel);
    if (status != CLB_OK)
      return status;
    if (parcel != NULL)
      clb__writer_put(writer, parcel);
    else /* all memory is with the writer, or all is done */
      status = collect(t, run, pipeline, writer, true, &idle);
  } while (status == CLB_OK &&
           (parcel != NULL || !idle || !clb__pipeline_over(pipeline)));
  return status;
}

/* Takes back what is still being written; the cause of it all stays. */
static void calm(clb__pipeline *pipeline, clb__writer *writer) {
  clb__parcel *parcel;

  while ((parcel = clb__writer_take(writer, true)) != NULL)
    clb__pipeline_give(pipeline, parcel);
}

static clb_status write_parcels(transfer *t, const clb__run *run,
                                clb__savefile *file, clb__check *check) {
  const clb_save_options *options = t->options;
  beside with = {run, check};
  const clb__writer_hooks hooks = {hash_parcel, write_tied, &with};
  clb__pipeline *pipeline;
  clb__writer *writer = NULL;
  clb_status status =
      clb__pipeline_open(run->spans, run->count, false, &pipeline);

  if (status != CLB_OK)
    return status;
  status = clb__writer_open(file, run->length, clb__pipeline_parcels(pipeline),
                            options->io, options->durable != 0, &hooks,
                            &writer);
  if (status == CLB_OK) {
    status = pump(t, run, pipeline, writer);
    calm(pipeline, writer);
    clb__writer_close(writer);
  }
  clb__pipeline_close(pipeline);
  return status;
}

static clb_status write_run(transfer *t, const clb__run *run,
                            clb__savefile *file) {
  bool verify = t->options->verify != 0, torn = clb__check_torn_wanted(run);
  clb__check *check = NULL;
  clb_status status = CLB_OK;

  if (verify || torn)
    status = clb__check_make(run, &check);
  if (status == CLB_OK)
    status = write_parcels(t, run, file, check);
  if (status == CLB_OK && torn)
    status = clb__check_torn(check, file);
  if (status == CLB_OK && verify)
    status = clb__check_file(check, file);
  clb__check_free(check);
  return status;
}

/* --- To a sink ------------------------------------------------------------ */

static clb_status write_plan(clb_sink sink, void *user,
                             const clb__file_plan *plan, transfer *t) {
  clb__run run = {.count = 0};
  clb_status status = clb__run_make(plan, false, &run);

  if (status == CLB_OK)
    status = stream_run(t, &run, sink, user);
  if (status == CLB_OK)
    status = tell_end(t);
  clb__run_free(&run);
  return status;
}

clb_status clb_safetensors_write(clb_sink sink, void *user,
                                 const clb_tensor *tensors, size_t count,
                                 const clb_save_options *options) {
  clb_save_options known;
  clb__file_plan plan = {NULL, 0, NULL, 0, 0};
  transfer t = {.options = &known};
  clb_status status;

  if (sink == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_write: sink is NULL");
  status = clb__save_options_read("clb_safetensors_write", tensors, count, options,
                                  &known);
  if (status == CLB_OK)
    status = clb__file_plan_make(tensors, count, &known, &plan);
  t.total = plan.data_length;
  if (status == CLB_OK)
    status = write_plan(sink, user, &plan, &t);
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
} job;

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

static clb_status write_index(const clb__shard_set *set, clb__savefile *file,
                              bool durable) {
  int err = clb__savefile_write(file, set->index, set->index_length);

  return err == 0 ? clb__savefile_seal(file, durable)
                  : clb__fail_errno(CLB_IO_ERROR, err, "%s: cannot write",
                                    file->given);
}

static clb_status write_shard(job *j, const clb__file_plan *plan, bool last,
                              clb__savefile *file) {
  clb__run run = {.count = 0};
  clb_status status = clb__run_make(plan, true, &run);

  if (status == CLB_OK)
    status = write_run(&j->t, &run, file);
  if (status == CLB_OK && last)
    status = tell_end(&j->t);
  if (status == CLB_OK)
    status = clb__savefile_seal(file, j->durable);
  clb__run_free(&run);
  return status;
}

static clb_status write_files(job *j) {
  const clb__shard_set *set = j->set;
  clb__savefile *file = j->files;
  clb_status status = CLB_OK;

  if (set->index_path != NULL)
    status = write_index(set, file++, j->durable);
  for (size_t s = 0; s < set->count && status == CLB_OK; s++)
    status = write_shard(j, &set->shards[s].plan, s + 1 == set->count, file++);
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

  j.t = (transfer){
      .options = options, .path = path, .total = set->data_length};
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
  status = clb__save_options_read("clb_safetensors_save", tensors, count, options,
                                  &known);
  if (status == CLB_OK)
    status = clb__shard_set_make(path, tensors, count, &known, &set);
  if (status == CLB_OK)
    status = save_set(path, &set, &known);
  clb__shard_set_free(&set);
  return status;
}
