/* What can be worked out of a layout: sizes, its contiguous runs, the
 * rectangle that OpenCL would read it by. */
#include "layouts.h"

size_t bench_layout_bytes(const struct bench_layout *layout)
{
  size_t bytes = layout->element;

  for (size_t i = 0; i < layout->ndim; i++)
    bytes *= layout->shape[i];
  return bytes;
}

size_t bench_layout_reach(const struct bench_layout *layout)
{
  size_t last = layout->offset + layout->element, whole = 0;

  for (size_t i = 0; i < layout->ndim; i++) {
    size_t stride = layout->strides[i] > 0 ? (size_t)layout->strides[i] : 0;

    if (stride > 0)
      last += (layout->shape[i] - 1) * stride;
    if (layout->offset + layout->shape[i] * stride > whole)
      whole = layout->offset + layout->shape[i] * stride;
  }
  return last > whole ? last : whole;
}

/* A stride of 0 is the only way in which those that are here share bytes. */
bool bench_layout_writable(const struct bench_layout *layout)
{
  for (size_t i = 0; i < layout->ndim; i++)
    if (layout->shape[i] > 1 && layout->strides[i] == 0)
      return false;
  return true;
}

/* Puts a dimension inside those that are there, or into the last of them. */
static void add_inside(struct bench_runs *runs, size_t extent,
                       ptrdiff_t stride)
{
  size_t last = runs->ndim - 1;

  if (extent == 1)
    return;
  if (runs->ndim > 0 &&
      runs->strides[last] == stride * (ptrdiff_t)extent) {
    runs->shape[last] *= extent;
    runs->strides[last] = stride;
    return;
  }
  runs->shape[runs->ndim] = extent;
  runs->strides[runs->ndim] = stride;
  runs->ndim++;
}

struct bench_runs bench_layout_runs(const struct bench_layout *layout)
{
  struct bench_runs runs = {.length = layout->element, .count = 1};

  for (size_t i = 0; i < layout->ndim; i++)
    add_inside(&runs, layout->shape[i], layout->strides[i]);
  if (runs.ndim > 0 &&
      runs.strides[runs.ndim - 1] == (ptrdiff_t)layout->element)
    runs.length *= runs.shape[--runs.ndim];
  for (size_t i = 0; i < runs.ndim; i++)
    runs.count *= runs.shape[i];
  return runs;
}

bool bench_layout_rect(const struct bench_layout *layout,
                       struct bench_rect *out)
{
  struct bench_runs runs = bench_layout_runs(layout);
  size_t inner = runs.ndim - 1;
  struct bench_rect rect;

  if (runs.ndim < 1 || runs.ndim > 2 ||
      runs.strides[inner] < (ptrdiff_t)runs.length)
    return false;
  rect = (struct bench_rect){{layout->offset, 0, 0},
                             {runs.length, runs.shape[inner], 1},
                             (size_t)runs.strides[inner],
                             0};
  rect.slice_pitch = rect.region[1] * rect.row_pitch;
  if (runs.ndim == 2) {
    ptrdiff_t slice = runs.strides[0];

    if (slice < (ptrdiff_t)rect.slice_pitch ||
        slice % (ptrdiff_t)rect.row_pitch != 0)
      return false;
    rect.slice_pitch = (size_t)slice;
    rect.region[2] = runs.shape[0];
  }
  *out = rect;
  return true;
}
