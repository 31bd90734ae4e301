/*
 * See model.h.
 */
#include "config.h"

#include "model.h"

size_t model_host_bytes;

/* --- Regions ------------------------------------------------------------- */

/* The next index of a shape, the last dimension fastest. */
static void step_index(size_t ndim, const size_t *shape, size_t *index)
{
  for (size_t d = ndim; d-- > 0;) {
    if (++index[d] < shape[d])
      return;
    index[d] = 0;
  }
}

bool model_walk(const clb_layout *layout, size_t size,
                struct model_region *region, size_t *length)
{
  size_t index[MODEL_DIMS] = {0};
  size_t total = walk_length(layout);

  region->windowed = false;
  region->certain = true;
  *length = total;
  for (size_t at = 0; at < total; at += layout->elem_size) {
    ptrdiff_t first = (ptrdiff_t)layout->offset;

    for (size_t d = 0; d < layout->ndim; d++)
      first += (ptrdiff_t)index[d] * layout->strides[d];
    if (first < 0 || (size_t)first + layout->elem_size > size)
      return false;
    for (size_t b = 0; b < layout->elem_size; b++)
      region->at[at + b] = (uint16_t)((size_t)first + b);
    step_index(layout->ndim, layout->shape, index);
  }
  return true;
}

bool model_in_a_row(const struct model_region *region, size_t length)
{
  for (size_t i = 1; i < length; i++)
    if (region->at[i] != region->at[0] + i)
      return false;
  return true;
}

/* The stride of a dimension can only be the distance of its first two. */
bool model_sayable(const struct model_region *region,
                   const struct model_shape *shape)
{
  size_t length = model_shape_length(shape), inner = shape->elem_size;
  size_t index[MODEL_DIMS] = {0};
  int strides[MODEL_DIMS] = {0};

  if (length == 0)
    return true;
  for (size_t d = shape->ndim; d-- > 0;) {
    if (shape->shape[d] > 1)
      strides[d] = region->at[inner] - region->at[0];
    inner *= shape->shape[d];
  }
  for (size_t at = 0; at < length; at += shape->elem_size) {
    int first = region->at[0];

    for (size_t d = 0; d < shape->ndim; d++)
      first += (int)index[d] * strides[d];
    for (size_t b = 0; b < shape->elem_size; b++)
      if (region->at[at + b] != first + (int)b)
        return false;
    step_index(shape->ndim, shape->shape, index);
  }
  return true;
}

size_t model_shape_length(const struct model_shape *shape)
{
  size_t length = shape->elem_size;

  for (size_t d = 0; d < shape->ndim; d++)
    length *= shape->shape[d];
  return length;
}

void model_shape_bytes(struct model_shape *shape, size_t length)
{
  shape->ndim = 1;
  shape->shape[0] = length;
  shape->elem_size = 1;
}

/* --- What a handle has --------------------------------------------------- */

static bool on_host_store(const struct model_handle *h)
{
  return h->store->kind == MODEL_FOREIGN || h->store->kind == MODEL_COPIED;
}

void model_bytes(const struct model_handle *h, unsigned char *out)
{
  if (h->copy != NULL)
    memcpy(out, h->copy->data + h->copy_at, h->length);
  else
    for (size_t i = 0; i < h->length; i++)
      out[i] = h->base != NULL ? h->base->data[h->in_base.at[i]]
                               : h->store->data[h->source.at[i]];
}

bool model_on_host(const struct model_handle *h)
{
  return h->length > 0 &&
         (h->copy != NULL ||
          (h->base == NULL && on_host_store(h) &&
           model_in_a_row(&h->source, h->length)));
}

bool model_alone(const struct model_handle *h)
{
  return (h->copy != NULL ? h->copy->refs : h->store->handles) == 1;
}

bool model_haunted(const struct model_handle *h)
{
  return h->copy != NULL ? h->copy->haunted : h->store->haunted;
}

bool model_asks_device(const struct model_handle *h)
{
  return h->length > 0 && h->store->kind == MODEL_DEVICE && h->copy == NULL &&
         h->base == NULL;
}

clb_place model_place(const struct model_handle *h)
{
  static const clb_place waiting[] = {
      [MODEL_DEVICE] = CLB_PLACE_DEVICE,
      [MODEL_FILE] = CLB_PLACE_FILE,
      [MODEL_FOREIGN] = CLB_PLACE_FOREIGN,
      [MODEL_COPIED] = CLB_PLACE_HEAP,
  };

  if (!h->lazy_place)
    return h->place;
  return h->copy != NULL ? CLB_PLACE_HEAP : waiting[h->store->kind];
}

/* --- Copies -------------------------------------------------------------- */

static struct model_copy *copy_of(const struct model_handle *h)
{
  struct model_copy *copy = fixture_malloc(sizeof *copy);

  copy->refs = 1;
  copy->haunted = false;
  copy->counted = h->store->kind == MODEL_DEVICE;
  copy->size = h->length;
  model_bytes(h, copy->data);
  if (copy->counted)
    model_host_bytes += copy->size;
  return copy;
}

static void release_copy(struct model_copy *copy)
{
  if (copy == NULL || --copy->refs > 0)
    return;
  if (copy->counted)
    model_host_bytes -= copy->size;
  free(copy);
}

void model_separate(struct model_handle *h)
{
  struct model_copy *own = copy_of(h);

  release_copy(h->copy);
  h->copy = own;
  h->copy_at = 0;
}

void model_bring(struct model_handle *h)
{
  if (h->length > 0 && !model_on_host(h))
    model_separate(h);
}

void model_end_mapping(struct model_handle *h)
{
  h->mapped = NULL;
  h->map_pointer = NULL;
}

void model_end_base(struct model_handle *h)
{
  release_copy(h->base);
  h->base = NULL;
}

void model_forget(struct model_handle *h)
{
  model_end_mapping(h);
  model_end_base(h);
  release_copy(h->copy);
  h->copy = NULL;
  h->lazy_place = true;
  h->pointer = NULL;
}

void model_drop(struct model_handle *h)
{
  if (h->prefetched) {
    h->store->haunted = true;
    if (h->copy != NULL)
      h->copy->haunted = true;
    if (h->base != NULL)
      h->base->haunted = true;
  }
  model_forget(h);
  h->store->handles--;
}

/* --- Handles of handles -------------------------------------------------- */

/* A handle on the parent's store, with nothing on the host yet. */
static void derive(const struct model_handle *from, size_t length,
                   struct model_handle *to)
{
  memset(to, 0, sizeof *to);
  to->refs = 1;
  to->length = length;
  to->store = from->store;
  to->store->handles++;
  to->edited = from->edited;
  to->lazy_place = true;
  memcpy(to->label, from->label, sizeof to->label);
}

/* What the parent has on the host, as a region of a copy, whose reference is
 * the caller's; NULL if nothing. */
static struct model_copy *host_region(const struct model_handle *from,
                                      struct model_region *region)
{
  if (from->length == 0 || (from->copy == NULL && from->base == NULL))
    return NULL;
  if (from->copy == NULL) {
    *region = from->in_base;
    from->base->refs++;
    return from->base;
  }
  region->windowed = false;
  region->certain = true;
  for (size_t i = 0; i < from->length; i++)
    region->at[i] = (uint16_t)(from->copy_at + i);
  from->copy->refs++;
  return from->copy;
}

/* In a copy of its own, where the region cannot be changed as the source's. */
static void repack(const struct model_handle *from, struct model_copy **copy,
                   struct model_region *region)
{
  release_copy(*copy);
  *copy = copy_of(from);
  region->windowed = false;
  for (size_t i = 0; i < from->length; i++)
    region->at[i] = (uint16_t)i;
}

/* The host region becomes the handle's. */
static void adopt(struct model_handle *to, struct model_copy *copy,
                  const struct model_region *region)
{
  if (copy == NULL)
    return;
  if (to->length == 0) {
    release_copy(copy);
    return;
  }
  to->lazy_place = false;
  to->place = CLB_PLACE_HEAP;
  if (model_in_a_row(region, to->length)) {
    to->copy = copy;
    to->copy_at = region->at[0];
  } else {
    to->base = copy;
    to->in_base = *region;
  }
}

static void range(const struct model_region *from, size_t start, size_t length,
                  struct model_region *to)
{
  memmove(to->at, from->at + start, length * sizeof *to->at);
  to->windowed = !model_in_a_row(to, length);
  to->certain = from->certain || !to->windowed;
}

void model_view(const struct model_handle *from, size_t start, size_t end,
                struct model_handle *to)
{
  struct model_region host;
  struct model_copy *copy = host_region(from, &host);

  derive(from, end - start, to);
  model_shape_bytes(&to->shape, to->length);
  range(&from->source, start, to->length, &to->source);
  if (copy != NULL)
    range(&host, start, to->length, &host);
  adopt(to, copy, &host);
}

void model_clone(const struct model_handle *from, struct model_handle *to)
{
  struct model_region host;
  struct model_copy *copy = host_region(from, &host);

  derive(from, from->length, to);
  to->shape = from->shape;
  to->source = from->source;
  adopt(to, copy, &host);
}

void model_reshape(const struct model_handle *from,
                   const struct model_shape *shape, struct model_handle *to)
{
  struct model_region host;
  struct model_copy *copy = host_region(from, &host);

  derive(from, from->length, to);
  to->shape = *shape;
  to->source = from->source;
  to->source.windowed = false;
  if (copy != NULL && (host.windowed || !model_sayable(&host, shape)))
    repack(from, &copy, &host);
  adopt(to, copy, &host);
}

static void slice(const struct model_handle *from, const size_t *start,
                  const ptrdiff_t *step, const struct model_shape *shape,
                  const struct model_region *region, struct model_region *to)
{
  size_t length = model_shape_length(shape), elem = shape->elem_size;
  size_t index[MODEL_DIMS] = {0};
  struct model_region result = {.certain = region->certain};

  for (size_t at = 0; at < length; at += elem) {
    size_t element = 0;

    for (size_t d = 0; d < shape->ndim; d++)
      element = element * from->shape.shape[d] +
                (size_t)((ptrdiff_t)start[d] + (ptrdiff_t)index[d] * step[d]);
    memcpy(result.at + at, region->at + element * elem,
           elem * sizeof *result.at);
    step_index(shape->ndim, shape->shape, index);
  }
  *to = result;
}

void model_slice(const struct model_handle *from, const size_t *start,
                 const size_t *count, const ptrdiff_t *step,
                 struct model_handle *to)
{
  struct model_region host;
  struct model_copy *copy = host_region(from, &host);
  struct model_shape shape = from->shape;

  for (size_t d = 0; d < shape.ndim; d++)
    shape.shape[d] = count[d];
  derive(from, model_shape_length(&shape), to);
  to->shape = shape;
  slice(from, start, step, &shape, &from->source, &to->source);
  if (copy != NULL && host.windowed)
    repack(from, &copy, &host);
  if (copy != NULL)
    slice(from, start, step, &shape, &host, &host);
  adopt(to, copy, &host);
}
