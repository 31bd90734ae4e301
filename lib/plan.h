/*
 * plan.h - from a layout and the facts of a device to the moves to make.
 *
 * Pure: no OpenCL call, no memory but the caller's, the same answer for the
 * same question.  A plan is chosen once; a cursor then walks its moves in
 * order.  A move is one command to the source, which puts move.bytes bytes into
 * a block, and where those bytes go in the logical order.  Walking costs
 * little, so the side that starts moves and the side that finishes them each
 * have a cursor of their own, and nothing is kept in between.
 *
 * The logical range is cut into boxes of at most plan.chunk bytes; a box is one
 * move, or for CLB_PLAN_GATHER as many as it takes.  For CLB_PLAN_PACK a box is
 * any range, and its move is a plain transfer of packed bytes.
 */
#ifndef CLB_PLAN_H
#define CLB_PLAN_H

#include "pack.h"

/* What a source can do and what it costs.  Figures are for choosing between
 * plans, not promises. */
typedef struct clb__facts {
  unsigned asked;     /* CLB_PLAN_* that the options allow, for messages */
  unsigned plans;     /* of them, those that are possible here */
  double command_us;  /* one command, all told */
  double link_gbs;    /* contiguous bytes over the link */
  double row_ns;      /* one row of a rect, on top of its bytes */
  double pick_ns;     /* one run picked apart on the host */
  double pick_gbs;    /* bytes picked apart on the host */
  double pack_gbs;    /* bytes packed by a kernel */
  /* What building the kernel for forms that are not wide, and for those that
   * are, still costs; 0: it was built; negative: it cannot be. */
  double build_us[2];
  size_t worth_bytes; /* an access of less does not build a kernel */
  size_t quick_bytes; /* most bytes of an access that may be one command on the
                         program's own queue; 0: none may */
} clb__facts;

typedef enum clb__direction {
  CLB__GET, /* source to host */
  CLB__PUT  /* host to source: no byte between the elements may be written */
} clb__direction;

typedef struct clb__plan {
  unsigned kind;   /* one of CLB_PLAN_* */
  unsigned box_dims;  /* most dimensions of a box */
  bool rects;         /* GATHER: its moves are rectangles, not spans, */
  unsigned rect_dims; /* with up to so many dimensions over the row */
  clb__form form;
  size_t start, end; /* logical range */
  size_t chunk;
  size_t gap;      /* GATHER: bytes worth reading to save a command */
  bool quick;      /* one move, of at most facts->quick_bytes */
  double missed_us; /* what a kernel that is not built would have saved */
} clb__plan;

/* One command: height rows of width bytes, depth times.  Height and depth 1: a
 * plain transfer. */
typedef struct clb__move {
  uint64_t origin; /* byte of the source */
  size_t width, height, depth;
  size_t row_pitch, slice_pitch; /* bytes; 0 where there is but one */
  size_t bytes;        /* in the block: width * height * depth */
  size_t start, length; /* the box, in logical bytes */
  bool first, last;    /* of its box */
} clb__move;

/* How the bytes of a move lie in the block and in the packed box. */
typedef struct clb__pick {
  bool same; /* the block is the box: nothing to do */
  ptrdiff_t to;
  size_t run;
  unsigned ndim;
  clb__axis axis[2 * CLB__MAX_DIMS]; /* from: the block; to: the box */
} clb__pick;

typedef struct clb__cursor {
  const clb__plan *plan;
  size_t at;              /* where the next box starts */
  size_t start, length;   /* the box that is being walked */
  size_t next, moves;     /* its next move, and how many it has */
  clb__storage storage;   /* GATHER */
  unsigned level;         /* GATHER: axes from here on are whole in a move, */
  size_t count;           /* and this many of the one before */
  clb__move shape;        /* GATHER: geometry of a whole move */
  bool ready;             /* move is the next move, peeked at */
  clb__move move;
} clb__cursor;

/*
 * Chooses.  CLB_UNSUPPORTED where facts->plans carry no such layout.
 *   [start, end)  of the form's logical bytes; start < end
 *   chunk         most bytes of a box and of a block
 */
clb_status clb__plan_choose(clb__plan *plan, const clb__facts *facts,
                            const clb__form *form, size_t start, size_t end,
                            size_t chunk, clb__direction direction);

/* In words; as snprintf. */
void clb__plan_text(const clb__plan *plan, char *text, size_t size);

/* "map|read|...", of a set. */
void clb__plan_names(unsigned plans, char *text, size_t size);

void clb__cursor_init(clb__cursor *cursor, const clb__plan *plan);

/* The next move without taking it; false at the end. */
bool clb__cursor_peek(clb__cursor *cursor, const clb__move **move);

/* Takes the move that was peeked at; pick may be NULL. */
void clb__cursor_take(clb__cursor *cursor, clb__pick *pick);

/* Bytes from one item to the next in the packed block of a move, of items that
 * are from (at least 0) bytes apart in the source. */
ptrdiff_t clb__move_stride(const clb__move *move, ptrdiff_t from);

/* Copies the bytes of a strided region: dst is where the item of all zero
 * indices goes, src where it comes from. */
void clb__copy_strided(unsigned char *dst, const unsigned char *src,
                       unsigned ndim, const clb__axis *axis, size_t run);

/* Cuts a pick into parts that can be picked at once: parts is how many there
 * should be at least, the result how many there are, and what part number index
 * of them is; *from: where it begins in the block. */
size_t clb__pick_parts(const clb__pick *pick, size_t parts);
void clb__pick_part(const clb__pick *pick, size_t parts, size_t index,
                    clb__pick *part, ptrdiff_t *from);

/* Bytes that a pick moves. */
size_t clb__pick_bytes(const clb__pick *pick);

/* The same along a pick, out of a block or (PUT) into it. */
void clb__pick_out(const clb__pick *pick, unsigned char *box,
                   const unsigned char *block);
void clb__pick_in(const clb__pick *pick, const unsigned char *box,
                  unsigned char *block);

#endif
