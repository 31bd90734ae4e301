/*
 * bytes.h - what a handle is made of.
 *
 * A handle is small, and one allocation: a million of them on one buffer is a
 * use case.  What an access needs (a copy, a wait) is allocated when one
 * begins.
 *
 * Its logical bytes are in up to three places, and an access takes the first
 * that is there:
 *   data   packed, on the host
 *   base   a host copy of a handle that this one was made from, strided
 *   at     the source, unless edited: then the host has the only truth
 */
#ifndef CLB_BYTES_H
#define CLB_BYTES_H

#include "pool.h"
#include "region.h"
#include "transfer.h"

/* A host copy, shared by the handles that have it. */
typedef struct clb__copy {
  atomic_size_t refs;
  clb_context *context; /* whose host_bytes count it; NULL: nobody's */
  size_t size;
  unsigned char *data;
} clb__copy;

/* An access under way: those who wait for it sleep here. */
typedef struct clb__fetch clb__fetch;

/* A region of a host copy. */
typedef struct clb__base {
  clb__copy *copy;     /* NULL: the caller's memory */
  unsigned char *data; /* byte 0 of the region's storage */
  clb__region at;
} clb__base;

struct clb_bytes {
  atomic_uint refs;
  atomic_uchar place; /* of the last read; NO_PLACE before one */
  bool edited;        /* written to, or made from such a one */
  bool based;         /* has a base, behind the arrays of at */
  clb__source source; /* a snapshot changes what a buffer is, its list and
                         flags, with the lock held; the rest stays */
  size_t length;      /* logical bytes */
  clb__region at;     /* of the source: origin and strides likewise */

  /* Guarded by the source's lock; data and mapped are also read without it, and
   * the others once an access has seen those. */
  _Atomic(unsigned char *) data;   /* logical bytes on the host, if there */
  clb__copy *copy;                 /* holds data; NULL: the caller's memory */
  _Atomic(unsigned char *) mapped; /* of CLB_MAP */
  clb__parked *unmap;              /* what ending the mapping needs */
  clb__fetch *fetch;               /* an access that is under way */
  clb__error *failure;             /* of the last prefetch, or NULL */

  cl_mem kernels; /* sub-buffer that was handed out, or NULL */
  char *label;
  size_t room[]; /* the arrays of at; then base and its arrays */
};

#define CLB__NO_PLACE 0xff

static inline pthread_mutex_t *clb__lock(const clb_bytes *bytes) {
  return bytes->source.ops->lock(&bytes->source);
}

static inline clb__base *clb__base_of(const clb_bytes *bytes) {
  return bytes->based ? (clb__base *)(bytes->room + 2 * bytes->at.ndim) : NULL;
}

static inline bool clb__bytes_on_device(const clb_bytes *bytes) {
  return clb__source_is_device(&bytes->source);
}

/* "label: " or "bytes [start, end): " before the last error. */
clb_status clb__bytes_blame(const clb_bytes *bytes, clb_status status,
                            size_t start, size_t end);

/* A handle of a region of a source, whose reference it takes over also where it
 * fails; base may be NULL, and its copy's reference is taken over likewise. */
clb_status clb__bytes_make(clb__source *source, const clb__region *at,
                           size_t length, const clb__base *base,
                           clb_bytes **out);

/* CLB_OUT_OF_RANGE where [start, end) is not inside. */
clb_status clb__bytes_range(const clb_bytes *bytes, size_t start, size_t end);

/* --- Where bytes are (origin.c) --------------------------------------------- */

/* A source and a region of it as they were at one moment: another thread's
 * snapshot may give the handle others. */
typedef struct clb__origin {
  clb__source source; /* retained, unless lent */
  bool lent;
  clb__form form;
  size_t window; /* where the logical bytes start in those of the form */
  clb__host host; /* behind source, where it is a host copy */
} clb__origin;

/* The handle's source; or what its bytes are got from, data apart: its region
 * of a host copy, else that. */
clb_status clb__origin_of_source(const clb_bytes *bytes, clb__origin *from);
clb_status clb__origin_of_bytes(const clb_bytes *bytes, clb__origin *from);
void clb__origin_end(clb__origin *from);

/* Whether the bytes lie in a row, and from which byte of the source on. */
bool clb__origin_flat(const clb__origin *from, uint64_t *first);

/* Where a handle's bytes come from on a device, for finding those that come from
 * one place; false: they come from elsewhere.  Two with equal keys may still
 * differ in their layouts. */
typedef struct clb__bytes_key {
  uintptr_t root, after;
  uint64_t first;
  size_t length;
} clb__bytes_key;
bool clb__bytes_key_of(const clb_bytes *bytes, clb__bytes_key *key);
int clb__bytes_key_compare(const clb__bytes_key *a, const clb__bytes_key *b);

/* Whether both of equal keys have the same bytes in the same order. */
bool clb__bytes_alike(const clb_bytes *a, const clb_bytes *b);

/* --- Moving (move.c) -------------------------------------------------------- */

/* An access: contents of one moment, counted and logged once, whatever the
 * number of parts. */
typedef struct clb__access {
  clb_bytes *bytes;
  clb__origin from;
  clb__port port;
  clb__plan plan; /* of all of it */
  uint64_t link;
  double since;
} clb__access;

/* Waits until logical bytes [start, end), start < end, may be read; moves parts
 * of them to a target.  Every access that has begun is ended, with the status
 * that it has come to: it counts where that is CLB_OK. */
clb_status clb__access_begin(clb__access *access, clb_bytes *bytes,
                             size_t start, size_t end);
clb_status clb__access_part(clb__access *access, size_t start, size_t end,
                            const clb__target *target);

/* Beginning in two steps: where the bytes are, without waiting; then, with
 * CLB__* of source.h, a plan for [start, end) and the wait.  In between the
 * caller may say of the port that it need not wait. */
clb_status clb__access_look(clb__access *access, clb_bytes *bytes);
clb_status clb__access_open(clb__access *access, size_t start, size_t end,
                            unsigned flags);
clb_status clb__access_end(clb__access *access, clb_status status);

/* The whole of an access in one part. */
clb_status clb__bytes_get(clb_bytes *bytes, size_t start, size_t end,
                          const clb__target *target);

/* The whole of a handle that nobody else has, in two steps: what comes before
 * it is noted, without waiting, and later it is got.  Every port that was
 * ordered is got from, or dropped, which does not look at the handle. */
clb_status clb__bytes_order(clb_bytes *bytes, clb__port *port);
clb_status clb__bytes_get_ordered(clb_bytes *bytes, clb__port *port,
                                  const clb__target *target);
void clb__bytes_drop(clb__port *port);

/* Whether what it has to wait for has ended. */
bool clb__bytes_ready(const clb_bytes *bytes, const clb__port *port);

/* The plan of that, with CLB__* of source.h. */
clb_status clb__bytes_choose(const clb_bytes *bytes, size_t start, size_t end,
                             unsigned flags, clb__plan *plan);

/* Monotonic. */
double clb__seconds(void);

/* One line for a transfer that began at since:
 * "weights: rect 4 x 12 of pitch 32, 1 chunk: 48 bytes in 0.031 ms"; what goes
 * before the plan. */
void clb__bytes_log(const clb_bytes *bytes, clb_context *context,
                    const char *what, const clb__plan *plan, double since);

/* --- Host copies (copy.c) --------------------------------------------------- */

/* Room for a copy of a handle's bytes, counted as its context's. */
clb_status clb__copy_make(const clb_bytes *bytes, clb__copy **out);
clb__copy *clb__copy_retain(clb__copy *copy);
void clb__copy_release(clb__copy *copy);
bool clb__copy_shared(const clb__copy *copy);

/* --- First access (fetch.c) ------------------------------------------------- */

/* Becomes the one who brings *what, or finds, maybe after sleeping, that it is
 * there.  Whoever has claimed settles. */
clb_status clb__fetch_claim(clb_bytes *bytes, _Atomic(unsigned char *) *what,
                            bool *mine);

/* The same for a job of the pool, without waiting: it is queued as the one who
 * brings; or, while another access is under way, it follows that one.  When the
 * bytes are there it is run where it is (claimed is false), and where the other
 * did not bring them it is queued to try.  So no thread of the pool sleeps for
 * another, and when nothing is under way no job will touch the handle. */
typedef struct clb__follower {
  clb__job job;
  bool claimed;
} clb__follower;
clb_status clb__fetch_queue(clb_bytes *bytes, clb__follower *follower);

/* Ends a claim: copy, if not NULL, becomes the handle's data, failure what
 * clb_bytes_wait() says, until a status of CLB_OK; the others go on. */
void clb__fetch_settle(clb_bytes *bytes, clb_status status, clb__copy *copy,
                       clb__error *failure);

/* Brings the bytes to the host, if they are not there. */
clb_status clb__bytes_materialise(clb_bytes *bytes);

/* What remains of that once claimed; for a prefetch from a handle on what the
 * bytes were then, through its port, and its failure is kept. */
clb_status clb__bytes_bring(clb_bytes *bytes, clb_bytes *then, clb__port *port);

/* Sleeps while an access is under way; CLB_TIMEOUT. */
clb_status clb__fetch_wait(clb_bytes *bytes, uint64_t timeout_ns);

/* --- Handles from handles (derive.c) ---------------------------------------- */

/* A change of regions; false where the region cannot be changed so. */
typedef bool (*clb__change)(const clb__region *from, const void *how,
                            clb__region *to, clb__room *room);

/* A handle of the changed regions, with what the parent has at this moment.
 * CLB_UNSUPPORTED where the source's region cannot be changed so. */
clb_status clb__bytes_derive(clb_bytes *parent, clb__change change,
                             const void *how, size_t length, clb_bytes **out);

/* A pointer for length 0. */
extern unsigned char clb__nothing[64];

#endif
