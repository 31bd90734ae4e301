/*
 * pipeline.h - the bytes of many handles as one run, in blocks.
 *
 * The run is cut into parcels at multiples of CLB__PAGE; each is a block of
 * memory that is filled from devices, files and the host.  Several are being
 * filled while others are in use.  One thread calls, and nothing here waits for
 * a parcel that somebody else has.
 */
#ifndef CLB_PIPELINE_H
#define CLB_PIPELINE_H

#include <clbytes.h>

#include <stdbool.h>

#define CLB__PAGE ((size_t)4096)

/* A part of the run: bytes [start, end) of a handle, or of memory. */
typedef struct clb__span {
  clb_bytes *bytes; /* NULL: data; not retained */
  const unsigned char *data;
  const char *name; /* before messages of a handle's */
  uint64_t at;      /* where in the run */
  size_t start, end;
  /* The pipeline's: */
  size_t filled;
  uint64_t link; /* bytes that commands have moved for it */
  double since;  /* when the first piece was begun; 0: not yet */
} clb__span;

/* Bytes of the run that are there.  data is at a multiple of CLB__PAGE, and so
 * is at. */
typedef struct clb__parcel {
  struct clb__parcel *next; /* whoever has the parcel */
  unsigned char *data;
  uint64_t at;
  size_t length;
  size_t span; /* that the first byte is of */
} clb__parcel;

typedef struct clb__pipeline clb__pipeline;

/*
 *   spans    in the order of the run, none of them empty; where one does not
 *            begin at the end of the one before it begins at a multiple of
 *            CLB__PAGE.  They must stay
 *   ordered  parcels come in the order of the run; else those of several
 *            contexts in turn
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__pipeline_open(clb__span *spans, size_t count, bool ordered,
                              clb__pipeline **out);

/* Parcels that the run is cut into. */
size_t clb__pipeline_parcels(const clb__pipeline *pipeline);

/* Host bytes that it holds at most. */
uint64_t clb__pipeline_memory(const clb__pipeline *pipeline);

/* The oldest parcel that is being filled, once it is full, with those after it
 * begun; it is to be given back.  NULL: none is being filled.  Then all of the
 * run was, or others have all the memory there is. */
clb_status clb__pipeline_next(clb__pipeline *pipeline, clb__parcel **out);
bool clb__pipeline_over(const clb__pipeline *pipeline);
void clb__pipeline_give(clb__pipeline *pipeline, clb__parcel *parcel);

/* Waits for what was begun; parcels that others have must have been given
 * back.  Leaves the last error as it is. */
void clb__pipeline_close(clb__pipeline *pipeline);

#endif
