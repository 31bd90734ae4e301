/*
 * sheet.c - cuts a region into pieces of logical bytes, and copies each box of
 * them.
 */
#include "config.h"

#include "plan.h"
#include "sheet.h"

/* Pieces for each thread, so that one that is held up does not hold up all. */
#define SHARES 4

static void copy_box(const clb__sheet *sheet, const clb__form *box, size_t at) {
  unsigned char *packed = sheet->box + (at - sheet->start);
  unsigned char *region = sheet->mapping + (box->origin - sheet->first);
  clb__axis axis[CLB__MAX_DIMS];
  unsigned d;

  for (d = 0; d < box->ndim; d++) {
    ptrdiff_t stride = box->dim[d].stride, step = (ptrdiff_t)box->size[d + 1];
    axis[d] = (clb__axis){box->dim[d].n, sheet->into ? step : stride,
                          sheet->into ? stride : step};
  }
  clb__copy_strided(sheet->into ? region : packed,
                    sheet->into ? packed : region, box->ndim, axis, box->run);
}

static void copy_piece(void *user, size_t index) {
  const clb__sheet *sheet = user;
  size_t at = sheet->start + index * sheet->piece;
  size_t end =
      sheet->end - at < sheet->piece ? sheet->end : at + sheet->piece;
  clb__form box;

  for (; at < end; at += clb__form_length(&box)) {
    clb__form_box(sheet->form, at, end - at, CLB__MAX_DIMS, &box);
    copy_box(sheet, &box, at);
  }
}

void clb__sheet_copy(clb__sheet *sheet) {
  size_t length = sheet->end - sheet->start, row = sheet->form->run;
  size_t least = clb__piece(sheet->fresh);
  clb__batch batch = {.piece = copy_piece, .user = sheet};

  sheet->piece = length;
  if (length > CLB__SMALL_COPY && sheet->helpers > 0) {
    sheet->piece = length / (SHARES * (sheet->helpers + 1));
    if (sheet->piece < least)
      sheet->piece = least;
    if (row < sheet->piece)
      sheet->piece -= sheet->piece % row;
    batch.helpers = sheet->helpers;
  }
  batch.pieces = (length + sheet->piece - 1) / sheet->piece;
  clb__crew_post(&batch);
  clb__crew_finish(&batch);
}
