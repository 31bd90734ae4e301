/*
 * sheet.h - a strided region that the host can address, copied to or from
 * packed memory by several threads.
 */
#ifndef CLB_SHEET_H
#define CLB_SHEET_H

#include "crew.h"
#include "layout.h"

/* Copies of no more bytes are not worth a second thread. */
#define CLB__SMALL_COPY ((size_t)1 << 20)

/* Bytes of a copy for one thread at a time; of fresh memory a large page, so
 * that no two threads wait for the same one. */
static inline size_t clb__piece(bool fresh) {
  return fresh ? (size_t)2 << 20 : (size_t)512 << 10;
}

typedef struct clb__sheet {
  const clb__form *form;
  unsigned char *mapping; /* byte first of the source */
  uint64_t first;
  size_t start, end;  /* logical bytes, */
  unsigned char *box; /* which are or go here */
  bool into;          /* out of the box, into the region */
  bool fresh;         /* the box is memory that nobody has touched */
  unsigned helpers;   /* threads beside the caller */
  size_t piece;       /* clb__sheet_copy's */
} clb__sheet;

void clb__sheet_copy(clb__sheet *sheet);

#endif
