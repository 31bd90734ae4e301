/*
 * pack.c - the widest unit of a part of a form, and the form in such units.
 */
#include "config.h"

#include "pack.h"

#define MOST_UNIT 16u

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
