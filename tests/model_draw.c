/*
 * Shapes and layouts drawn by chance.  See model.h.
 */
#include "config.h"

#include "model.h"

static size_t pick(uint64_t *state, size_t limit)
{
  return fixture_below(state, limit);
}

/* A divisor of n, often a small one. */
static size_t divisor(uint64_t *state, size_t n)
{
  for (int tries = 0; tries < 4; tries++) {
    size_t d = 1 + pick(state, n < 16 ? n : 16);

    if (n % d == 0)
      return d;
  }
  return 1;
}

void model_draw_shape(uint64_t *state, size_t length,
                      struct model_shape *shape)
{
  size_t left = length;

  memset(shape, 0, sizeof *shape);
  shape->ndim = pick(state, MODEL_DIMS);
  if (length == 0) {
    shape->ndim++;
    shape->elem_size = 1 + pick(state, 8);
    for (size_t d = 0; d < shape->ndim; d++)
      shape->shape[d] = pick(state, 5);
    shape->shape[pick(state, shape->ndim)] = 0;
    return;
  }
  shape->elem_size = divisor(state, left);
  left /= shape->elem_size;
  for (size_t d = shape->ndim; d-- > 0;) {
    shape->shape[d] = divisor(state, left);
    left /= shape->shape[d];
  }
  if (shape->ndim == 0)
    shape->elem_size *= left;
  else
    shape->shape[pick(state, shape->ndim)] *= left;
}

void model_draw_any(uint64_t *state, size_t most, struct model_shape *shape)
{
  static const size_t sizes[] = {1, 1, 2, 3, 4, 4, 8, 16};
  size_t left;

  memset(shape, 0, sizeof *shape);
  shape->ndim = pick(state, MODEL_DIMS);
  shape->elem_size = sizes[pick(state, 8)];
  left = most / shape->elem_size;
  for (size_t d = 0; d < shape->ndim; d++) {
    size_t limit = left < 20 ? left : 20;

    shape->shape[d] = pick(state, 40) == 0 ? 0 : 1 + pick(state, limit);
    left /= shape->shape[d] > 0 ? shape->shape[d] : 1;
  }
}

/* The strides, from the inside out in a random order of the dimensions. */
static void draw_strides(uint64_t *state, const struct model_shape *shape,
                         int kind, ptrdiff_t *strides)
{
  bool calm = kind == MODEL_APART || pick(state, 3) > 0;
  bool tight = pick(state, 3) == 0; /* nothing between the elements */
  bool forward = pick(state, 2) == 0;
  size_t order[MODEL_DIMS], reach = shape->elem_size;

  for (size_t d = 0; d < shape->ndim; d++)
    order[d] = d;
  if (pick(state, 2) == 0)
    for (size_t d = shape->ndim; d > 1; d--) {
      size_t with = pick(state, d), swap = order[d - 1];

      order[d - 1] = order[with];
      order[with] = swap;
    }
  for (size_t i = shape->ndim; i-- > 0;) {
    size_t d = order[i], stride = reach;

    if (!tight && pick(state, 2) == 0)
      stride += pick(state, 9);
    if (!calm && pick(state, 3) == 0)
      stride = pick(state, 2) == 0 ? 0 : pick(state, stride + 1);
    if (shape->shape[d] > 1)
      reach += stride * (shape->shape[d] - 1);
    strides[d] = (ptrdiff_t)stride;
    if (!forward && pick(state, 2) == 0)
      strides[d] = -strides[d];
    if (shape->shape[d] == 1 && pick(state, 3) == 0)
      strides[d] = (ptrdiff_t)pick(state, 5000) - 2500;
  }
}

bool model_draw_layout(uint64_t *state, const struct model_shape *shape,
                       size_t size, int kind, struct model_layout *out)
{
  size_t below = 0, above = shape->elem_size;

  draw_strides(state, shape, kind, out->strides);
  memcpy(out->shape, shape->shape, sizeof out->shape);
  out->layout.ndim = shape->ndim;
  out->layout.shape = out->shape;
  out->layout.strides = out->strides;
  out->layout.elem_size = shape->elem_size;
  if (model_shape_length(shape) == 0) {
    out->layout.offset = pick(state, 2 * size + 1);
    return true;
  }
  for (size_t d = 0; d < shape->ndim; d++) {
    size_t more = shape->shape[d] - 1;

    if (out->strides[d] < 0)
      below += more * (size_t)-out->strides[d];
    else
      above += more * (size_t)out->strides[d];
  }
  if (below + above > size)
    return false;
  out->layout.offset = below + pick(state, size - below - above + 1);
  if (pick(state, 3) == 0)
    out->layout.offset = below;
  return true;
}
