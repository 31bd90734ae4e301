/*
 * pick.c - strided copies between two places in host memory.
 */
#include "config.h"

#include "plan.h"

#include <string.h>

/* Bytes that stay in the nearest cache while they are copied. */
#define REPEAT_AT_ONCE ((size_t)4096)

/* The same item again and again, twice as many each time. */
static void repeat_item(unsigned char *dst, const unsigned char *src,
                        size_t length, size_t run) {
  size_t done = run, next;

  memcpy(dst, src, run);
  for (; done < length; done += next) {
    next = done < length - done ? done : length - done;
    if (next > REPEAT_AT_ONCE)
      next = REPEAT_AT_ONCE / run * run;
    memcpy(dst + done, dst, next);
  }
}

/* The innermost axis, with the copy of a run inlined for usual elements. */
static void copy_line(unsigned char *dst, const unsigned char *src, size_t n,
                      ptrdiff_t to, ptrdiff_t from, size_t run) {
  size_t i;

  if (to == from && to == (ptrdiff_t)run) {
    memcpy(dst, src, n * run);
    return;
  }
  if (from == 0 && to == (ptrdiff_t)run && run <= REPEAT_AT_ONCE) {
    repeat_item(dst, src, n * run, run);
    return;
  }
#define COPY_LINE(bytes)                                                       \
  case bytes:                                                                  \
    for (i = 0; i < n; i++)                                                    \
      memcpy(dst + (ptrdiff_t)i * to, src + (ptrdiff_t)i * from, bytes);       \
    return;
  switch (run) {
    COPY_LINE(1)
    COPY_LINE(2)
    COPY_LINE(4)
    COPY_LINE(8)
    COPY_LINE(16)
    COPY_LINE(32)
    COPY_LINE(64)
  default:
    for (i = 0; i < n; i++)
      memcpy(dst + (ptrdiff_t)i * to, src + (ptrdiff_t)i * from, run);
  }
#undef COPY_LINE
}

/* --- Tiles ------------------------------------------------------------------ */

/* Where the source's neighbours are not the destination's, each line of memory
 * would be fetched once an item.  So a tile is read along the source into a few
 * KiB, and written along the destination out of it. */
#define TILE_LINE 64   /* bytes of a line of memory */
#define TILE_ROWS 512  /* rows of the destination that are gone along at once:
                          not more pages than the processor finds fast */

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Exchanges, in pairs of rows that are half apart, the upper part of the fields
 * of the first with the lower part of the second's. */
static void exchange(uint64_t *row, unsigned rows, unsigned half,
                     unsigned shift, uint64_t mask) {
  unsigned i, j;

  for (i = 0; i < rows; i += 2 * half)
    for (j = i; j < i + half; j++) {
      uint64_t change = (row[j] >> shift ^ row[j + half]) & mask;
      row[j + half] ^= change;
      row[j] ^= change << shift;
    }
}

/* Turns a square of items in words of 8 bytes, little-endian. */
static void turn_words(uint64_t *row, size_t run) {
  switch (run) {
  case 1:
    exchange(row, 8, 4, 32, 0x00000000ffffffffu);
    exchange(row, 8, 2, 16, 0x0000ffff0000ffffu);
    exchange(row, 8, 1, 8, 0x00ff00ff00ff00ffu);
    break;
  case 2:
    exchange(row, 4, 2, 32, 0x00000000ffffffffu);
    exchange(row, 4, 1, 16, 0x0000ffff0000ffffu);
    break;
  case 4:
    exchange(row, 2, 1, 32, 0x00000000ffffffffu);
    break;
  default: /* one item a word */
    break;
  }
}

/* Turns a whole tile: side rows of TILE_LINE bytes. */
static void turn_tile(unsigned char *out, const unsigned char *in,
                      size_t side, size_t run) {
  size_t words = 8 / run, i, j, k; /* rows of a square */
  uint64_t row[8];

  for (i = 0; i < side; i += words)
    for (j = 0; j < TILE_LINE / 8; j++) {
      for (k = 0; k < words; k++)
        memcpy(&row[k], in + (i + k) * TILE_LINE + j * 8, 8);
      turn_words(row, run);
      for (k = 0; k < words; k++)
        memcpy(out + (j * words + k) * TILE_LINE + i * run, &row[k], 8);
    }
}

/* One tile of na x nb items, not more than a square of single bytes has; a is
 * the source's fast axis, b the destination's. */
static void copy_tile(unsigned char *dst, const unsigned char *src, size_t na,
                      size_t nb, const clb__axis *a, const clb__axis *b,
                      size_t run) {
  unsigned char tile[TILE_LINE * TILE_LINE];
  size_t i;

  for (i = 0; i < nb; i++)
    copy_line(tile + i * na * run, src + (ptrdiff_t)i * b->from, na,
              (ptrdiff_t)run, a->from, run);
  for (i = 0; i < na; i++)
    copy_line(dst + (ptrdiff_t)i * a->to, tile + i * run, nb, b->to,
              (ptrdiff_t)(na * run), run);
}

/* A tile whose rows and columns are each a line of memory. */
static void copy_full_tile(unsigned char *dst, const unsigned char *src,
                           const clb__axis *a, const clb__axis *b, size_t run) {
  unsigned char in[TILE_LINE * TILE_LINE], out[TILE_LINE * TILE_LINE];
  size_t side = TILE_LINE / run, i;

  for (i = 0; i < side; i++)
    memcpy(in + i * TILE_LINE, src + (ptrdiff_t)i * b->from, TILE_LINE);
  turn_tile(out, in, side, run);
  for (i = 0; i < side; i++)
    memcpy(dst + (ptrdiff_t)i * a->to, out + i * TILE_LINE, TILE_LINE);
}

static bool is_little(void) {
  const uint16_t one = 1;

  return *(const unsigned char *)&one == 1;
}

static void copy_tiles(unsigned char *dst, const unsigned char *src,
                       const clb__axis *a, const clb__axis *b, size_t run) {
  size_t side = TILE_LINE / run < 8 ? 8 : TILE_LINE / run;
  bool dense = a->from == (ptrdiff_t)run && b->to == (ptrdiff_t)run;
  bool turns = dense && run <= 8 && 8 % run == 0 && is_little();
  size_t rows, i, j;

  for (rows = 0; rows < a->n; rows += TILE_ROWS)
    for (j = 0; j < b->n; j += side)
      for (i = rows; i < a->n && i < rows + TILE_ROWS; i += side) {
        unsigned char *to = dst + (ptrdiff_t)i * a->to + (ptrdiff_t)j * b->to;
        const unsigned char *from =
            src + (ptrdiff_t)i * a->from + (ptrdiff_t)j * b->from;
        if (turns && a->n - i >= side && b->n - j >= side)
          copy_full_tile(to, from, a, b, run);
        else
          copy_tile(to, from, least(side, a->n - i), least(side, b->n - j), a,
                    b, run);
      }
}

/* The two axes along which neighbours are, in the source and in the
 * destination; false where they are one, or not far apart in the other. */
static bool find_turn(unsigned ndim, const clb__axis *axis, size_t run,
                      unsigned *a, unsigned *b) {
  size_t from = SIZE_MAX, to = SIZE_MAX, stride;
  unsigned i;

  for (i = 0; i < ndim; i++) {
    stride = clb__abs_stride(axis[i].from);
    if (stride > 0 && stride < from)
      from = stride, *a = i;
    stride = clb__abs_stride(axis[i].to);
    if (stride < to)
      to = stride, *b = i;
  }
  return run <= 16 && from < TILE_LINE && to < TILE_LINE && *a != *b &&
         axis[*a].n >= 4 && axis[*b].n >= 4 &&
         clb__abs_stride(axis[*b].from) >= TILE_LINE;
}

/* All axes but those two, then tiles. */
static void copy_around(unsigned char *dst, const unsigned char *src,
                        unsigned ndim, const clb__axis *axis, unsigned a,
                        unsigned b, unsigned at, size_t run) {
  size_t i;

  while (at == a || at == b)
    at++;
  if (at >= ndim) {
    copy_tiles(dst, src, &axis[a], &axis[b], run);
    return;
  }
  for (i = 0; i < axis[at].n; i++)
    copy_around(dst + (ptrdiff_t)i * axis[at].to,
                src + (ptrdiff_t)i * axis[at].from, ndim, axis, a, b, at + 1,
                run);
}

static void copy_rows(unsigned char *dst, const unsigned char *src,
                      unsigned ndim, const clb__axis *axis, size_t run) {
  size_t i;

  if (ndim == 1) {
    copy_line(dst, src, axis->n, axis->to, axis->from, run);
    return;
  }
  for (i = 0; i < axis->n; i++)
    copy_rows(dst + (ptrdiff_t)i * axis->to, src + (ptrdiff_t)i * axis->from,
              ndim - 1, axis + 1, run);
}

void clb__copy_strided(unsigned char *dst, const unsigned char *src,
                       unsigned ndim, const clb__axis *axis, size_t run) {
  unsigned a = 0, b = 0;

  if (ndim == 0)
    memcpy(dst, src, run);
  else if (find_turn(ndim, axis, run, &a, &b))
    copy_around(dst, src, ndim, axis, a, b, 0, run);
  else
    copy_rows(dst, src, ndim, axis, run);
}

size_t clb__pick_bytes(const clb__pick *pick) {
  size_t bytes = pick->run;
  unsigned i;

  for (i = 0; i < pick->ndim; i++)
    bytes *= pick->axis[i].n;
  return bytes;
}

/* The axis that is cut. */
static unsigned longest(const clb__pick *pick) {
  unsigned axis = 0, i;

  for (i = 1; i < pick->ndim; i++)
    if (pick->axis[i].n > pick->axis[axis].n)
      axis = i;
  return axis;
}

size_t clb__pick_parts(const clb__pick *pick, size_t parts) {
  size_t n = pick->ndim > 0 ? pick->axis[longest(pick)].n : 1;

  return n < parts ? n : parts;
}

void clb__pick_part(const clb__pick *pick, size_t parts, size_t index,
                    clb__pick *part, ptrdiff_t *from) {
  clb__axis *axis;
  size_t n, first;

  *part = *pick;
  *from = 0;
  if (pick->ndim == 0)
    return;
  axis = &part->axis[longest(pick)];
  n = axis->n;
  first = n / parts * index + (index < n % parts ? index : n % parts);
  axis->n = n / parts + (index < n % parts);
  part->to += (ptrdiff_t)first * axis->to;
  *from = (ptrdiff_t)first * axis->from;
}

void clb__pick_out(const clb__pick *pick, unsigned char *box,
                   const unsigned char *block) {
  clb__copy_strided(box + pick->to, block, pick->ndim, pick->axis, pick->run);
}

void clb__pick_in(const clb__pick *pick, const unsigned char *box,
                  unsigned char *block) {
  clb__axis axis[2 * CLB__MAX_DIMS];
  unsigned i;

  for (i = 0; i < pick->ndim; i++)
    axis[i] = (clb__axis){pick->axis[i].n, pick->axis[i].to,
                          pick->axis[i].from};
  clb__copy_strided(block, box + pick->to, pick->ndim, axis, pick->run);
}
