/* The layouts that the benchmarks move.  Knows no plan and nothing of the
 * library. */
#include "layouts.h"

enum { ELEMENT = 4 }; /* bytes, where a layout does not say */

/* --- Making them ---------------------------------------------------------- */

static struct bench_layout one_dimension(size_t count, ptrdiff_t stride,
                                         size_t element)
{
  return (struct bench_layout){1, {count}, {stride}, element, 0};
}

static struct bench_layout two_dimensions(size_t rows, ptrdiff_t pitch,
                                          size_t columns, ptrdiff_t stride,
                                          size_t element)
{
  return (struct bench_layout){
      2, {rows, columns}, {pitch, stride}, element, 0};
}

struct bench_layout bench_contiguous(size_t bytes)
{
  return one_dimension(bytes / ELEMENT, ELEMENT, ELEMENT);
}

struct bench_layout bench_padded(size_t bytes, size_t row, size_t padding)
{
  return two_dimensions(bytes / row, (ptrdiff_t)(row + padding), row / ELEMENT,
                        ELEMENT, ELEMENT);
}

/* Extents that are powers of two, as alike as can be, of at most count elements
 * together; the first ones grow first. */
static void even_extents(size_t count, size_t *extents, size_t ndim)
{
  size_t product = 1;

  for (size_t i = 0; i < ndim; i++)
    extents[i] = 1;
  for (size_t i = 0; product * 2 <= count; i = (i + 1) % ndim) {
    extents[i] *= 2;
    product *= 2;
  }
}

static struct bench_layout transposed(size_t bytes, size_t element)
{
  size_t extents[2];

  even_extents(bytes / element, extents, 2);
  return two_dimensions(extents[0], (ptrdiff_t)element, extents[1],
                        (ptrdiff_t)(extents[0] * element), element);
}

struct bench_layout bench_transposed(size_t bytes)
{
  return transposed(bytes, ELEMENT);
}

/* --- By name: each false where so few bytes do not make one --------------- */

static bool make_contiguous(size_t bytes, size_t unused,
                            struct bench_layout *out)
{
  (void)unused;
  *out = bench_contiguous(bytes);
  return out->shape[0] > 1;
}

static bool make_pitched(size_t bytes, size_t row, struct bench_layout *out)
{
  *out = bench_padded(bytes, row, row);
  return out->shape[0] > 1;
}

/* Rows of 1 KiB with a padding of a few bytes between them. */
static bool make_padded(size_t bytes, size_t padding, struct bench_layout *out)
{
  *out = bench_padded(bytes, 1024, padding);
  return out->shape[0] > 1;
}

static bool make_transposed(size_t bytes, size_t element,
                            struct bench_layout *out)
{
  *out = transposed(bytes, element);
  return out->shape[1] > 1;
}

/* Images stored by pixel, read by channel. */
static bool make_nchw(size_t bytes, size_t channels, struct bench_layout *out)
{
  size_t extents[3]; /* columns, lines, images */
  ptrdiff_t pixel = (ptrdiff_t)(channels * ELEMENT);

  even_extents(bytes / (size_t)pixel, extents, 3);
  *out = (struct bench_layout){
      4,
      {extents[2], channels, extents[1], extents[0]},
      {pixel * (ptrdiff_t)(extents[0] * extents[1]), ELEMENT,
       pixel * (ptrdiff_t)extents[0], pixel},
      ELEMENT,
      0};
  return extents[2] > 1;
}

static bool make_axes_reversed(size_t bytes, size_t element,
                               struct bench_layout *out)
{
  ptrdiff_t stride = (ptrdiff_t)element;

  *out = (struct bench_layout){.ndim = 4, .element = element};
  even_extents(bytes / element, out->shape, 4);
  for (size_t i = 0; i < 4; i++) {
    out->strides[i] = stride;
    stride *= (ptrdiff_t)out->shape[i];
  }
  return out->shape[3] > 1;
}

static bool make_stepped(size_t bytes, size_t step, struct bench_layout *out)
{
  *out = one_dimension(bytes / ELEMENT, (ptrdiff_t)(step * ELEMENT), ELEMENT);
  return out->shape[0] > 1;
}

static bool make_reversed(size_t bytes, size_t unused,
                          struct bench_layout *out)
{
  (void)unused;
  *out = one_dimension(bytes / ELEMENT, -ELEMENT, ELEMENT);
  if (out->shape[0] < 2)
    return false;
  out->offset = (out->shape[0] - 1) * ELEMENT;
  return true;
}

/* One row, again and again. */
static bool make_broadcast_rows(size_t bytes, size_t row,
                                struct bench_layout *out)
{
  *out = two_dimensions(bytes / row, 0, row / ELEMENT, ELEMENT, ELEMENT);
  return out->shape[0] > 1;
}

/* Each element so many times. */
static bool make_broadcast_elements(size_t bytes, size_t times,
                                    struct bench_layout *out)
{
  *out = two_dimensions(bytes / (times * ELEMENT), ELEMENT, times, 0, ELEMENT);
  return out->shape[0] > 1;
}

/* One of three interleaved planes of bytes. */
static bool make_plane(size_t bytes, size_t planes, struct bench_layout *out)
{
  *out = one_dimension(bytes, (ptrdiff_t)planes, 1);
  return bytes > 1;
}

/* Tall and one byte wide: the classic that a driver's rectangle is slow at.
 * Its reach is many times its bytes, so it has a most. */
static bool make_tall(size_t bytes, size_t pitch, struct bench_layout *out)
{
  size_t most = pitch < 64 ? 262144 : 1048576;

  *out = two_dimensions(bytes < most ? bytes : most, (ptrdiff_t)pitch, 1, 1, 1);
  return bytes > 1;
}

static const struct {
  const char *name;
  bool (*make)(size_t bytes, size_t parameter, struct bench_layout *out);
  size_t parameter;
} named[] = {
    {"contiguous", make_contiguous, 0},
    {"rows-4", make_pitched, 4},
    {"rows-8", make_pitched, 8},
    {"rows-16", make_pitched, 16},
    {"rows-32", make_pitched, 32},
    {"rows-64", make_pitched, 64},
    {"rows-128", make_pitched, 128},
    {"rows-256", make_pitched, 256},
    {"rows-1K", make_pitched, 1024},
    {"rows-16K", make_pitched, 16384},
    {"rows-1M", make_pitched, 1048576},
    {"rows-1K-pad-16", make_padded, 16},
    {"transpose-1", make_transposed, 1},
    {"transpose-2", make_transposed, 2},
    {"transpose-4", make_transposed, 4},
    {"transpose-8", make_transposed, 8},
    {"nhwc-nchw", make_nchw, 32},
    {"axes-reversed", make_axes_reversed, 4},
    {"step-2", make_stepped, 2},
    {"step-3", make_stepped, 3},
    {"reverse", make_reversed, 0},
    {"broadcast-rows", make_broadcast_rows, 1024},
    {"broadcast-elements", make_broadcast_elements, 64},
    {"rgb-plane", make_plane, 3},
    {"tall-4", make_tall, 4},
    {"tall-64", make_tall, 64},
};

size_t bench_layout_count(void)
{
  return sizeof(named) / sizeof(*named);
}

const char *bench_layout_name(size_t index)
{
  return named[index].name;
}

bool bench_layout_make(size_t index, size_t bytes, struct bench_layout *out)
{
  return named[index].make(bytes, named[index].parameter, out);
}
