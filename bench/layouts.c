/* Layouts, contents and the walk that checks them.  Knows no plan: what the
 * walk expects is worked out from index, stride and offset alone. */
#include "config.h"

#include "layouts.h"

#include "../tools/report.h"

#include <stdlib.h>
#include <string.h>

/* Elements filled at a time: few, so that what malloc keeps of it is no memory
 * that a measured save can use. */
enum { PIECE = 1 << 14 };

/* The element that a buffer of this seed has at a byte offset. */
static uint32_t element_at(size_t offset, uint32_t seed)
{
  uint32_t mixed =
      (uint32_t)(offset / BENCH_ELEMENT) * 2654435761u + seed * 40503u;

  return mixed ^ mixed >> 15;
}

/* --- Layouts -------------------------------------------------------------- */

size_t bench_layout_room(size_t bytes)
{
  return 2 * bytes;
}

struct bench_layout bench_stepped(size_t bytes, size_t step)
{
  return (struct bench_layout){
      {1, bytes / BENCH_ELEMENT}, {0, (ptrdiff_t)(step * BENCH_ELEMENT)}, 0};
}

struct bench_layout bench_contiguous(size_t bytes)
{
  return bench_stepped(bytes, 1);
}

struct bench_layout bench_padded(size_t bytes, size_t row, size_t padding)
{
  return (struct bench_layout){{bytes / row, row / BENCH_ELEMENT},
                               {(ptrdiff_t)(row + padding), BENCH_ELEMENT},
                               0};
}

struct bench_layout bench_transposed(size_t bytes)
{
  size_t elements = bytes / BENCH_ELEMENT;
  size_t columns = 1;

  while (columns * columns * 4 <= elements)
    columns *= 2;
  return (struct bench_layout){
      {elements / columns, columns},
      {BENCH_ELEMENT, (ptrdiff_t)(elements / columns * BENCH_ELEMENT)},
      0};
}

struct bench_layout bench_reversed(size_t bytes)
{
  struct bench_layout layout = bench_contiguous(bytes);

  layout.strides[1] = -BENCH_ELEMENT;
  layout.offset = (layout.shape[1] - 1) * BENCH_ELEMENT;
  return layout;
}

size_t bench_layout_bytes(const struct bench_layout *layout)
{
  return layout->shape[0] * layout->shape[1] * BENCH_ELEMENT;
}

bool bench_handle(const struct bench *bench, cl_mem buffer,
                  const struct bench_layout *layout, clb_bytes **out)
{
  clb_layout theirs = {2, layout->shape, layout->strides, BENCH_ELEMENT,
                       layout->offset};

  return bench_ok(clb_bytes_from_buffer(bench->session.context, buffer, &theirs,
                                        out),
                  "a handle");
}

/* --- Contents ------------------------------------------------------------- */

static bool fill(const struct bench *bench, cl_mem buffer, size_t bytes,
                 uint32_t seed)
{
  uint32_t *piece = malloc((size_t)PIECE * BENCH_ELEMENT);
  bool done = piece != NULL;

  if (!done)
    tool_error("out of memory");
  for (size_t from = 0; done && from < bytes;) {
    size_t length = (size_t)PIECE * BENCH_ELEMENT;

    if (length > bytes - from)
      length = bytes - from;
    for (size_t i = 0; i < (length + 3) / BENCH_ELEMENT; i++)
      piece[i] = element_at(from + i * BENCH_ELEMENT, seed);
    done = bench_cl_ok(clEnqueueWriteBuffer(bench->session.queue, buffer,
                                            CL_TRUE, from, length, piece, 0,
                                            NULL, NULL),
                       "clEnqueueWriteBuffer");
    from += length;
  }
  free(piece);
  return done;
}

bool bench_filled_buffer(const struct bench *bench, size_t bytes,
                         uint32_t seed, cl_mem *out)
{
  cl_int error;
  cl_mem buffer = clCreateBuffer(bench->session.cl, CL_MEM_READ_WRITE, bytes,
                                 NULL, &error);

  if (!bench_cl_ok(error, "clCreateBuffer"))
    return false;
  if (!fill(bench, buffer, bytes, seed)) {
    clReleaseMemObject(buffer);
    return false;
  }
  *out = buffer;
  return true;
}

int bench_walk_on(const void *data, size_t length, void *user)
{
  struct bench_walk *walk = user;
  const struct bench_layout *layout = walk->layout;
  const unsigned char *bytes = data;

  for (size_t i = 0; i < length;) {
    size_t index = walk->at / BENCH_ELEMENT;
    size_t within = walk->at % BENCH_ELEMENT;
    size_t part = BENCH_ELEMENT - within;
    ptrdiff_t place =
        (ptrdiff_t)layout->offset +
        (ptrdiff_t)(index / layout->shape[1]) * layout->strides[0] +
        (ptrdiff_t)(index % layout->shape[1]) * layout->strides[1];
    uint32_t expected = element_at((size_t)place, walk->seed);

    if (part > length - i)
      part = length - i;
    if (memcmp(bytes + i, (unsigned char *)&expected + within, part) != 0)
      return 1;
    i += part;
    walk->at += part;
  }
  return 0;
}
