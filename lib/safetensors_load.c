/*
 * safetensors_load.c - loads the tensors of a file into buffers.
 *
 * Owns the choice of tensors and the check of where they go; the bytes move by
 * clb_bytes_upload(), a tensor after the other.
 */
#include "config.h"

#include "bytes.h"
#include "options.h"
#include "safetensors_file.h"

#include <stdlib.h>
#include <string.h>

/* A tensor that is loaded. */
typedef struct item {
  clb__entry *entry;
  clb_bytes *part, *to;
} item;

typedef struct load {
  clb_context *context;
  clb_load_options options;
  clb_safetensors *file;
  item *items;
  size_t count;
  uint64_t done, total;
} load;

static clb_status choose(load *l, bool *wanted) {
  const clb__header *header = &l->file->header;
  const clb_load_options *o = &l->options;

  if (o->names == NULL && o->name_count > 0)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "clb_safetensors_load: name_count is %zu, and names is "
                     "NULL", o->name_count);
  for (size_t i = 0; i < header->count; i++)
    wanted[i] = o->names == NULL;
  for (size_t i = 0; i < o->name_count; i++) {
    const clb__entry *found = o->names[i] == NULL
                                  ? NULL
                                  : clb__header_find(header, o->names[i]);
    if (found == NULL)
      return clb__fail(CLB_NOT_FOUND, "no tensor \"%.100s\" in the file",
                       o->names[i] == NULL ? "" : o->names[i]);
    wanted[found - header->entries] = true;
  }
  for (size_t i = 0; i < header->count && o->prefix != NULL; i++)
    if (strncmp(header->entries[i].tensor.name, o->prefix,
                strlen(o->prefix)) != 0)
      wanted[i] = false;
  return CLB_OK;
}

/* The part of a tensor, with its shape in elements where those are bytes. */
static clb_status cut(const clb_placement *p, size_t elem_size,
                      clb_bytes **out) {
  const clb_tensor *t = p->tensor;
  clb_bytes *whole;
  clb_status status;

  if (elem_size == 0) {
    if (p->start != NULL || p->count != NULL || p->step != NULL)
      return clb__fail(CLB_UNSUPPORTED, "elements of %s are no whole bytes, "
                       "and cannot be sliced", t->dtype);
    return clb_bytes_clone(t->bytes, out);
  }
  status = clb_bytes_reshape(t->bytes, t->ndim, t->shape, elem_size, &whole);
  if (status != CLB_OK)
    return status;
  status = clb_bytes_slice(whole, p->start, p->count, p->step, out);
  clb_bytes_release(whole);
  return status == CLB_OUT_OF_RANGE ? CLB_INVALID_ARGUMENT : status;
}

static clb_status aim(load *l, const clb_placement *p, clb_bytes *part,
                      clb_bytes **to) {
  clb_layout layout = {part->at.ndim, part->at.shape, NULL,
                       part->at.elem_size, 0};
  cl_mem buffer = p->buffer;
  clb__form form;
  clb_status status;
  cl_int err;

  if (p->layout != NULL)
    layout = *p->layout;
  if (buffer == NULL) {
    buffer = clCreateBuffer(l->context->cl, CL_MEM_READ_WRITE,
                            part->length > 0 ? part->length : 1, NULL, &err);
    if (err != CL_SUCCESS)
      return clb__fail_cl(err, "clCreateBuffer");
  }
  status = clb_bytes_from_buffer(l->context, buffer, &layout, to);
  if (p->buffer == NULL)
    (void)clReleaseMemObject(buffer);
  if (status != CLB_OK)
    return status;
  if ((*to)->length != part->length)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "%zu bytes, but the layout has %zu", part->length,
                     (*to)->length);
  clb__region_form(&(*to)->at, &form);
  return part->length == 0 || clb__form_apart(&form)
             ? CLB_OK
             : clb__layout_overlaps(&layout);
}

static clb_status place_one(load *l, clb__entry *entry, clb_place_tensor place,
                            void *user) {
  const clb__dtype *dtype =
      clb__dtype_find(entry->tensor.dtype, strlen(entry->tensor.dtype));
  clb_placement p = {.tensor = &entry->tensor};
  item *one = &l->items[l->count];
  clb_status status;
  size_t *shape;

  if (place != NULL && place(&p, user) != 0)
    return clb__fail(CLB_CANCELLED, "place stopped the load");
  if (p.skip)
    return CLB_OK;
  one->entry = entry;
  l->count++;
  status = cut(&p, dtype->bits % 8 == 0 ? dtype->bits / 8 : 0, &one->part);
  if (status == CLB_OK)
    status = aim(l, &p, one->part, &one->to);
  if (status != CLB_OK)
    return status;
  l->total += one->part->length;
  if (dtype->bits % 8 == 0 && entry->tensor.ndim > 0) {
    shape = clb__arena_alloc(&l->file->header.arena,
                             entry->tensor.ndim * sizeof *shape,
                             sizeof *shape);
    if (shape == NULL)
      return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a shape");
    memcpy(shape, one->part->at.shape, entry->tensor.ndim * sizeof *shape);
    entry->tensor.shape = shape;
  }
  return clb_bytes_set_label(one->to, entry->tensor.name);
}

static clb_status move_one(load *l, const item *one) {
  clb__region *at = &one->to->at;
  clb_layout layout = {at->ndim, at->shape, at->strides, at->elem_size,
                       (size_t)at->origin};

  return one->part->length == 0
             ? CLB_OK
             : clb_bytes_upload(one->part, l->context,
                                one->to->source.u.device.mem, &layout);
}

static clb_status tell(load *l) {
  return l->options.progress == NULL ||
                 l->options.progress(l->done, l->total, l->options.user) == 0
             ? CLB_OK
             : clb__fail(CLB_CANCELLED, "progress stopped the load");
}

static clb_status run(load *l, clb_place_tensor place, void *user) {
  clb__header *header = &l->file->header;
  bool *wanted = calloc(header->count + 1, sizeof *wanted);
  clb_status status;

  l->items = calloc(header->count + 1, sizeof *l->items);
  status = wanted == NULL || l->items == NULL
               ? clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu tensors",
                           header->count)
               : choose(l, wanted);
  for (size_t i = 0; i < header->count && status == CLB_OK; i++)
    if (wanted[i])
      status = clb__fail_prefix(
          place_one(l, &header->entries[i], place, user), "tensor \"%.100s\"",
          header->entries[i].tensor.name);
  free(wanted);
  for (size_t i = 0; i < l->count && status == CLB_OK; i++) {
    status = clb__fail_prefix(move_one(l, &l->items[i]), "tensor \"%.100s\"",
                              l->items[i].entry->tensor.name);
    l->done += l->items[i].part->length;
    if (status == CLB_OK)
      status = tell(l);
  }
  return status == CLB_OK && l->count == 0 ? tell(l) : status;
}

/* The open file becomes the loaded one. */
static clb_status become(load *l) {
  clb__header *header = &l->file->header;

  for (size_t i = 0; i < header->count; i++) {
    clb_bytes_release(header->entries[i].tensor.bytes);
    header->entries[i].tensor.bytes = NULL;
  }
  for (size_t i = 0; i < l->count; i++) {
    header->entries[i] = *l->items[i].entry;
    header->entries[i].tensor.bytes = l->items[i].to;
    l->items[i].to = NULL;
  }
  header->count = l->count;
  free(header->by_name);
  header->by_name = NULL;
  return clb__header_index(header);
}

clb_status clb_safetensors_load(const char *path, clb_context *context,
                                clb_place_tensor place, void *user,
                                const clb_load_options *options,
                                clb_safetensors **out) {
  load l = {.context = context, .options = CLB_LOAD_OPTIONS_INIT};
  clb_status status = CLB_OK;
  clb__error cause;

  if (path == NULL || context == NULL || out == NULL)
    return clb__fail(CLB_INVALID_ARGUMENT, "clb_safetensors_load: %s is NULL",
                     path == NULL ? "path" : context == NULL ? "context"
                                                             : "out");
  *out = NULL;
  if (options != NULL)
    status = clb__options_read(options, &l.options, sizeof l.options,
                               "CLB_LOAD_OPTIONS_INIT");
  if (status == CLB_OK && l.options.io > CLB_FILE_BUFFERED)
    status = clb__fail(CLB_UNSUPPORTED,
                       "clb_safetensors_load: a load reads through the page "
                       "cache, not by io %u",
                       (unsigned)l.options.io);
  if (status == CLB_OK)
    status = clb_safetensors_open(path, &l.file);
  if (status != CLB_OK)
    return status;
  status = run(&l, place, user);
  if (status == CLB_OK)
    status = become(&l);
  clb__error_save(&cause, status);
  for (size_t i = 0; i < l.count; i++) {
    clb_bytes_release(l.items[i].part);
    clb_bytes_release(l.items[i].to);
  }
  free(l.items);
  if (status == CLB_OK) {
    *out = l.file;
    return CLB_OK;
  }
  clb_safetensors_close(l.file);
  return clb__error_restore(&cause);
}
