/*
 * pack.c - the widest unit of a part of a form, and the form in such units.
 */
#include "config.h"

#include "pack.h"

#define MOST_UNIT 16u

/* Shorter sides are not worth a tile. */
#define LEAST_SIDE 8
#define TILE_SIDE 32u /* as in pack.cl */
/* Bytes apart, from which on neighbours of the result are not fetched
 * together. */
#define FAR_APART 64
/* Groups along a dimension but the first: some GPUs take no more. */
#define MOST_GROUPS 65535u

bool clb__pack_can(const clb__form *form) {
  unsigned d;

  if (form->ndim == 0 || form->ndim >= CLB__PACK_DIMS || form->run > INT32_MAX)
    return false;
  /* The outermost one is counted from where a part begins. */
  for (d = 1; d < form->ndim; d++)
    if (form->dim[d].n > INT32_MAX)
      return false;
  return true;
}

bool clb__pack_wide(const clb__form *form) {
  uint64_t first, span;

  /* In bytes, so that a form is wide or not for all of its parts. */
  clb__form_span(form, &first, &span);
  return span > INT32_MAX;
}

static unsigned widest_unit(const clb__form *form, size_t start,
                            size_t length) {
  size_t all = form->run | start | length | (size_t)form->origin;
  unsigned unit = MOST_UNIT, d;

  for (d = 0; d < form->ndim; d++)
    all |= (size_t)form->dim[d].stride;
  while (all % unit != 0)
    unit /= 2;
  return unit;
}

void clb__pack_make(const clb__form *form, size_t start, size_t length,
                    clb__pack *pack) {
  unsigned unit = widest_unit(form, start, length), d, i;
  uint64_t at = start / unit;

  pack->unit = unit;
  pack->wide = clb__pack_wide(form);
  pack->first = (int64_t)(form->origin / unit);
  pack->units = (uint32_t)(length / unit);
  pack->ndim = 0;
  for (i = 0; i < CLB__PACK_DIMS; i++) {
    pack->n[i] = 1;
    pack->c[i] = 0;
    pack->s[i] = 0;
  }
  if (form->run > unit) {
    pack->n[0] = form->run / unit;
    pack->s[0] = 1;
    pack->ndim = 1;
  }
  for (d = form->ndim; d-- > 0;) {
    pack->n[pack->ndim] = form->dim[d].n;
    pack->s[pack->ndim] = form->dim[d].stride / (ptrdiff_t)unit;
    pack->ndim++;
  }
  for (i = 0; i + 1 < pack->ndim; i++) {
    pack->c[i] = at % pack->n[i];
    at /= pack->n[i];
  }
  if (pack->ndim > 0) { /* the outermost, as said in pack.h */
    pack->first += (int64_t)at * pack->s[i];
    pack->n[i] -= at;
    if (pack->n[i] > UINT32_MAX)
      pack->n[i] = UINT32_MAX;
  }
}

/* How many dimensions the part has all of, and how many items of the next one;
 * 0 where it is no box. */
static uint64_t items_of_box(const clb__pack *pack, unsigned *whole) {
  uint64_t inner = 1;
  unsigned d;

  for (d = 0; d < pack->ndim; d++) {
    if (pack->units < inner * pack->n[d] || pack->c[d] != 0)
      break;
    inner *= pack->n[d];
  }
  *whole = d;
  if (d == pack->ndim)
    return pack->units == inner ? 1 : 0;
  if (pack->units % inner != 0 || pack->units / inner > pack->n[d] - pack->c[d])
    return 0;
  return pack->units / inner;
}

static bool is_fast(int64_t stride) {
  return stride == 1 || stride == -1;
}

bool clb__pack_turn(const clb__pack *pack, clb__turn *turn) {
  unsigned whole, fast = 0, d;
  uint64_t items = items_of_box(pack, &whole), n, inner = 1;
  int64_t far = pack->s[0] < 0 ? -pack->s[0] : pack->s[0];

  if (items == 0 || far * pack->unit < FAR_APART)
    return false;
  *turn = (clb__turn){.first = pack->first, .s0 = pack->s[0], .count = 1};
  for (d = 0; d < pack->ndim; d++) {
    turn->first += (int64_t)pack->c[d] * pack->s[d];
    n = d < whole ? pack->n[d] : d == whole ? items : 1;
    if (d == 0) {
      turn->n0 = (uint32_t)n;
    } else if (fast == 0 && is_fast(pack->s[d]) && n >= LEAST_SIDE) {
      fast = d;
      turn->nf = (uint32_t)n;
      turn->sf = pack->s[d];
      turn->pf = (uint32_t)inner;
    } else if (n > 1) {
      turn->n[turn->ndim] = (uint32_t)n;
      turn->s[turn->ndim] = pack->s[d];
      turn->p[turn->ndim++] = (uint32_t)inner;
      turn->count *= (uint32_t)n;
    }
    inner *= n;
  }
  for (d = turn->ndim; d < CLB__PACK_DIMS; d++)
    turn->n[d] = 1;
  return fast > 0 && turn->n0 >= LEAST_SIDE && turn->count <= MOST_GROUPS &&
         turn->nf / TILE_SIDE < MOST_GROUPS;
}
