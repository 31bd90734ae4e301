/*
 * model.h - what handles are, in plain arrays: the model that a state machine
 * compares the library with.
 *
 * A store is what a source is, an array of bytes.  A handle says for each of
 * its logical bytes at which address of its store it lies, and what it has on
 * the host.  No strides, no plans: a change of a handle is a change of a list
 * of addresses.  Nothing here calls OpenCL or the library.
 */
#ifndef CLBYTES_TESTS_MODEL_H
#define CLBYTES_TESTS_MODEL_H

#include "fixture.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { MODEL_BYTES = 600, MODEL_DIMS = 5, MODEL_STORE = 1600 };

/* What handles are on: a device buffer, a snapshot, a file, host memory. */
struct model_store {
  enum { MODEL_DEVICE, MODEL_FILE, MODEL_FOREIGN, MODEL_COPIED } kind;
  int handles;           /* on it */
  bool haunted;          /* a thread may hold on to it for a moment more */
  cl_mem buffer;         /* of the program; NULL: a snapshot */
  _Atomic(unsigned char *) memory; /* MODEL_FOREIGN: until it is released */
  size_t size;
  unsigned char data[MODEL_STORE];
};

/* A host copy that handles share. */
struct model_copy {
  int refs;
  bool counted; /* in host_bytes */
  bool haunted;
  size_t size;
  unsigned char data[MODEL_BYTES];
};

/* Where each logical byte of a handle is. */
struct model_region {
  bool windowed; /* a byte range of something strided */
  bool certain;  /* false: a snapshot may have packed it, so that it can do
                    more than its addresses say */
  uint16_t at[MODEL_BYTES];
};

struct model_shape {
  size_t ndim;
  size_t shape[MODEL_DIMS];
  size_t elem_size;
};

struct model_handle {
  clb_bytes *bytes;
  int number; /* for messages */
  int refs;
  size_t length;
  struct model_shape shape;
  struct model_store *store;
  struct model_region source;
  struct model_copy *copy; /* packed, from copy_at on; or NULL */
  size_t copy_at;
  struct model_copy *base; /* a strided region of another's copy; or NULL */
  struct model_region in_base;
  bool edited;
  bool lazy_place;  /* the place is where the contents wait */
  clb_place place;  /* else this */
  struct model_store *mapped; /* what CLB_MAP gave a mapping of; or NULL */
  size_t mapped_at;
  const unsigned char *pointer, *map_pointer; /* what reads gave; or NULL */
  cl_mem kernels;   /* what clb_bytes_buffer() gave; for comparing alone */
  bool flying;      /* a prefetch may be under way, */
  struct model_store *from; /* and reads this: a snapshot may come after it */
  bool prefetched;  /* once; a thread may hold on to the handle */
  cl_event done;    /* of the prefetch; or NULL */
  char label[16];   /* "": none */
};

/* --- Regions ------------------------------------------------------------- */

/* The addresses of a layout, element by element; false where one is not below
 * size. */
bool model_walk(const clb_layout *layout, size_t size,
                struct model_region *region, size_t *length);

/* Addresses that follow one another. */
bool model_in_a_row(const struct model_region *region, size_t length);

/* Can strides say these addresses in that shape? */
bool model_sayable(const struct model_region *region,
                   const struct model_shape *shape);

size_t model_shape_length(const struct model_shape *shape);
void model_shape_bytes(struct model_shape *shape, size_t length);

/* --- Handles ------------------------------------------------------------- */

/* Its logical bytes. */
void model_bytes(const struct model_handle *h, unsigned char *out);

/* Are they on the host, packed? */
bool model_on_host(const struct model_handle *h);

/* Has nobody else what it would write to? */
bool model_alone(const struct model_handle *h);
/* May the library think otherwise for a moment? */
bool model_haunted(const struct model_handle *h);

/* Would getting its bytes ask the device? */
bool model_asks_device(const struct model_handle *h);

clb_place model_place(const struct model_handle *h);

/* Host copies made since the start and not freed, that host_bytes counts. */
extern size_t model_host_bytes;

/* Changes of state, as the functions of the library. */
void model_bring(struct model_handle *h);
void model_separate(struct model_handle *h); /* a copy of its own */
void model_forget(struct model_handle *h);   /* lazy again */
void model_end_mapping(struct model_handle *h);
void model_end_base(struct model_handle *h);
void model_drop(struct model_handle *h);     /* all that it holds */

/* A handle made of another one; all but bytes and number. */
void model_view(const struct model_handle *from, size_t start, size_t end,
                struct model_handle *to);
void model_clone(const struct model_handle *from, struct model_handle *to);
void model_slice(const struct model_handle *from, const size_t *start,
                 const size_t *count, const ptrdiff_t *step,
                 struct model_handle *to);
void model_reshape(const struct model_handle *from,
                   const struct model_shape *shape, struct model_handle *to);

/* --- Drawing ------------------------------------------------------------- */

/* A layout with arrays of its own. */
struct model_layout {
  size_t shape[MODEL_DIMS];
  ptrdiff_t strides[MODEL_DIMS];
  clb_layout layout;
};

/* A random shape of length bytes. */
void model_draw_shape(uint64_t *state, size_t length,
                      struct model_shape *shape);

/* A random shape of at most so many bytes. */
void model_draw_any(uint64_t *state, size_t most, struct model_shape *shape);

enum { MODEL_APART, MODEL_ANY };

/* Random strides and offset for a shape inside size bytes: permuted, padded,
 * reversed; with MODEL_ANY also broadcast and overlapping.  False if it did
 * not fit. */
bool model_draw_layout(uint64_t *state, const struct model_shape *shape,
                       size_t size, int kind, struct model_layout *out);

#endif
