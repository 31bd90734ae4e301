/* Contents and the walk that checks them.  What the walk expects is worked out
 * from index, stride and offset alone. */
#include "config.h"

#include "contents.h"

#include "../tools/report.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 4 }; /* bytes whose contents are made at a time */

/* Words filled at a time: few, so that what malloc keeps of it is no memory
 * that a measured save can use. */
enum { PIECE = 1 << 14 };

/* The word of a buffer of this seed at a byte offset, a multiple of WORD. */
static uint32_t word_at(size_t offset, uint32_t seed)
{
  uint32_t mixed = (uint32_t)(offset / WORD) * 2654435761u + seed * 40503u;

  return mixed ^ mixed >> 15;
}

static unsigned char byte_at(size_t offset, uint32_t seed)
{
  uint32_t word = word_at(offset, seed);

  return ((unsigned char *)&word)[offset % WORD];
}

bool bench_handle(const struct bench *bench, cl_mem buffer,
                  const struct bench_layout *layout, clb_bytes **out)
{
  clb_layout theirs = {layout->ndim, layout->shape, layout->strides,
                       layout->element, layout->offset};

  return bench_ok(clb_bytes_from_buffer(bench->session.context, buffer, &theirs,
                                        out),
                  "a handle");
}

/* --- Contents ------------------------------------------------------------- */

void bench_fill_memory(void *data, size_t offset, size_t bytes, uint32_t seed)
{
  unsigned char *at = data;

  for (size_t i = 0; i < bytes; i += WORD) {
    uint32_t word = word_at(offset + i, seed);

    memcpy(at + i, &word, bytes - i < WORD ? bytes - i : WORD);
  }
}

static bool fill(const struct bench *bench, cl_mem buffer, size_t bytes,
                 uint32_t seed)
{
  size_t most = (size_t)PIECE * WORD;
  void *piece = malloc(most);
  bool done = piece != NULL;

  if (!done)
    tool_error("out of memory");
  for (size_t from = 0; done && from < bytes; from += most) {
    size_t length = bytes - from < most ? bytes - from : most;

    bench_fill_memory(piece, from, length, seed);
    done = bench_cl_ok(clEnqueueWriteBuffer(bench->session.queue, buffer,
                                            CL_TRUE, from, length, piece, 0,
                                            NULL, NULL),
                       "clEnqueueWriteBuffer");
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

/* --- The walk ------------------------------------------------------------- */

/* Where the next byte comes from. */
static size_t place_of(const struct bench_walk *walk)
{
  const struct bench_layout *layout = walk->layout;
  ptrdiff_t place = (ptrdiff_t)(layout->offset + walk->within);

  for (size_t i = 0; i < layout->ndim; i++)
    place += (ptrdiff_t)walk->index[i] * layout->strides[i];
  return (size_t)place;
}

/* Goes on by elements of the last dimension, no further than its end. */
static void step(struct bench_walk *walk, size_t elements)
{
  const struct bench_layout *layout = walk->layout;
  size_t i = layout->ndim - 1;

  walk->index[i] += elements;
  for (; i > 0 && walk->index[i] == layout->shape[i]; i--) {
    walk->index[i] = 0;
    walk->index[i - 1]++;
  }
}

/* How many of count whole words, stride bytes apart, are right. */
static size_t right_words(const unsigned char *data, size_t count, size_t place,
                          ptrdiff_t stride, uint32_t seed)
{
  for (size_t i = 0; i < count; i++, place += (size_t)stride) {
    uint32_t word = word_at(place, seed);

    if (memcmp(data + i * WORD, &word, WORD) != 0)
      return i;
  }
  return count;
}

/* How many bytes of an element, from the next one on, are right. */
static size_t right_bytes(const unsigned char *data, size_t count, size_t place,
                          uint32_t seed)
{
  size_t i = 0;

  while (i < count && data[i] == byte_at(place + i, seed))
    i++;
  return i;
}

/* Looks at the rest of an element, or as much as there is; returns the bytes
 * that were right. */
static size_t walk_element(struct bench_walk *walk, const unsigned char *data,
                           size_t length)
{
  size_t part = walk->layout->element - walk->within;
  size_t right;

  if (part > length)
    part = length;
  right = right_bytes(data, part, place_of(walk), walk->seed);
  walk->within += right;
  if (walk->within == walk->layout->element) {
    walk->within = 0;
    step(walk, 1);
  }
  return right;
}

/* How many of count whole elements, stride bytes apart, are right. */
static size_t right_elements(const struct bench_layout *layout,
                             const unsigned char *data, size_t count,
                             size_t place, uint32_t seed)
{
  size_t element = layout->element;
  size_t stride = (size_t)layout->strides[layout->ndim - 1];

  for (size_t i = 0; i < count; i++, place += stride)
    if (right_bytes(data + i * element, element, place, seed) != element)
      return i;
  return count;
}

/* Looks at whole elements, up to the end of the last dimension. */
static size_t walk_row(struct bench_walk *walk, const unsigned char *data,
                       size_t length)
{
  const struct bench_layout *layout = walk->layout;
  size_t last = layout->ndim - 1;
  size_t count = layout->shape[last] - walk->index[last];
  size_t place = place_of(walk);
  size_t right;

  if (count > length / layout->element)
    count = length / layout->element;
  if (layout->element == WORD && place % WORD == 0 &&
      layout->strides[last] % WORD == 0)
    right = right_words(data, count, place, layout->strides[last], walk->seed);
  else
    right = right_elements(layout, data, count, place, walk->seed);
  step(walk, right);
  return right * layout->element;
}

int bench_walk_on(const void *data, size_t length, void *user)
{
  struct bench_walk *walk = user;
  const unsigned char *bytes = data;

  for (size_t i = 0; i < length;) {
    size_t left = length - i;
    size_t right = walk->within == 0 && left >= walk->layout->element
                       ? walk_row(walk, bytes + i, left)
                       : walk_element(walk, bytes + i, left);

    i += right;
    walk->at += right;
    if (right == 0)
      return 1;
  }
  return 0;
}

/* --- What it found -------------------------------------------------------- */

static bool walked(const char *what, const struct bench_walk *walk,
                   size_t length)
{
  if (walk->at == length)
    return true;
  tool_error("%s: byte %zu of %zu is wrong", what, walk->at, length);
  return false;
}

bool bench_check_memory(const char *what, const struct bench_layout *layout,
                        uint32_t seed, const void *data, size_t length)
{
  struct bench_walk walk = {.layout = layout, .seed = seed};

  bench_walk_on(data, length, &walk);
  return walked(what, &walk, length);
}

bool bench_check_stream(const char *what, const struct bench_layout *layout,
                        uint32_t seed, clb_bytes *handle)
{
  struct bench_walk walk = {.layout = layout, .seed = seed};
  size_t length = clb_bytes_length(handle);
  clb_status status =
      clb_bytes_stream(handle, 0, length, bench_walk_on, &walk);

  return (status == CLB_CANCELLED || bench_ok(status, "clb_bytes_stream")) &&
         walked(what, &walk, length);
}
