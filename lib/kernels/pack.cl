/*
 * pack.cl - gathers a strided region into packed bytes, and scatters them back.
 *
 * A unit is the widest of 1, 2, 4, 8, 16 bytes that a layout can be said in.  A
 * work item makes 16 packed bytes: those are one access, whatever the unit, so
 * that no device needs stores of single bytes to pack.  Built once for narrow
 * and once for WIDE layouts, whose offsets need 64 bits.
 *
 * Dimension 0 is the innermost.  n: extents; c: where the part begins; s: units
 * from one item to the next in the region.
 */
#ifdef WIDE
typedef long offset_t;
typedef long8 offset8_t;
#else
typedef int offset_t;
typedef int8 offset8_t;
#endif

/* Adds up one digit of c + t, in the mixed radix of n. */
#define DIGIT(d)                                                               \
  if (ndim > d) {                                                              \
    t += c.s##d;                                                               \
    q = t / n.s##d;                                                            \
    r = t - q * n.s##d;                                                        \
    o += (offset_t)r * s.s##d;                                                 \
    t = q;                                                                     \
  }

/* From the part's unit number at to its offset o, and its place inner along
 * dimension 0. */
#define PLACE(at)                                                              \
  do {                                                                         \
    uint t = (at), q, r = 0;                                                \
    o = 0;                                                                     \
    DIGIT(0)                                                                   \
    inner = r;                                                                 \
    DIGIT(1)                                                                   \
    DIGIT(2)                                                                   \
    DIGIT(3)                                                                   \
    DIGIT(4)                                                                   \
    DIGIT(5)                                                                   \
    DIGIT(6)                                                                   \
    DIGIT(7)                                                                   \
  } while (0)

/* The last unit is taken again where there are no more: nothing outside the
 * region is read. */
#define NEXT(j)                                                                \
  if (++inner < n.s0)                                                          \
    o += s.s0;                                                                 \
  else                                                                         \
    PLACE(min(begin + (j) + 1u, units - 1u))

#define ARGUMENTS                                                              \
  ulong at, uint units, uint ndim, uint8 n, uint8 c, offset8_t s

#define PACK(name, unit_t, per)                                                \
  __kernel void name(__global const unit_t *region, long first,                \
                     __global uint4 *packed, ARGUMENTS)                        \
  {                                                                            \
    const uint begin = (uint)get_global_id(0) * per;                           \
    union {                                                                    \
      uint4 all;                                                               \
      unit_t one[per];                                                         \
    } part;                                                                    \
    offset_t o;                                                                \
    uint inner;                                                             \
    uint j;                                                                    \
    if (begin >= units)                                                        \
      return;                                                                  \
    region += first;                                                           \
    PLACE(begin);                                                              \
    for (j = 0; j < per; j++) {                                                \
      part.one[j] = region[o];                                                 \
      NEXT(j);                                                                 \
    }                                                                          \
    packed[at + get_global_id(0)] = part.all;                                  \
  }

#define UNPACK(name, unit_t, per)                                              \
  __kernel void name(__global unit_t *region, long first,                      \
                     __global const uint4 *packed, ARGUMENTS)                  \
  {                                                                            \
    const uint begin = (uint)get_global_id(0) * per;                           \
    union {                                                                    \
      uint4 all;                                                               \
      unit_t one[per];                                                         \
    } part;                                                                    \
    offset_t o;                                                                \
    uint inner;                                                             \
    uint j;                                                                    \
    if (begin >= units)                                                        \
      return;                                                                  \
    region += first;                                                           \
    part.all = packed[at + get_global_id(0)];                                  \
    PLACE(begin);                                                              \
    for (j = 0; j < per && begin + j < units; j++) {                           \
      region[o] = part.one[j];                                                 \
      NEXT(j);                                                                 \
    }                                                                          \
  }

/* Where neighbours in the region are not neighbours in the packed bytes, a work
 * group moves a square tile through local memory, so that both sides are gone
 * along.  Of the part, a box: n0 items along dimension 0, s0 apart in the
 * region; nf along the one that is fast there, sf apart, and pf apart in the
 * packed units; and what is left, of n items, s and p apart. */
#define SIDE 32
#define ROWS 8

/* Adds the offsets of one index of what is left. */
#define REST(d)                                                                \
  if (ndim > d) {                                                              \
    q = t / n.s##d;                                                            \
    r = t - q * n.s##d;                                                        \
    o += (offset_t)r * s.s##d;                                                 \
    to += r * p.s##d;                                                          \
    t = q;                                                                     \
  }

#define TURN(name, unit_t, LOAD, STORE)                                        \
  __kernel __attribute__((reqd_work_group_size(SIDE, ROWS, 1))) void name(     \
      __global unit_t *region, long first, __global unit_t *packed, ulong at,  \
      uint n0, uint nf, offset_t s0, offset_t sf, uint pf, uint ndim, uint8 n, \
      offset8_t s, uint8 p)                                                    \
  {                                                                            \
    __local unit_t tile[SIDE][SIDE + 1];                                       \
    const uint x = (uint)get_local_id(0), y = (uint)get_local_id(1);           \
    const uint i0 = (uint)get_group_id(0) * SIDE;                              \
    const uint f0 = (uint)get_group_id(1) * SIDE;                              \
    uint t = (uint)get_global_id(2), q, r, to = 0, j;                          \
    offset_t o = 0;                                                            \
    REST(0)                                                                    \
    REST(1)                                                                    \
    REST(2)                                                                    \
    REST(3)                                                                    \
    REST(4)                                                                    \
    REST(5)                                                                    \
    region += first;                                                           \
    packed += at + to;                                                         \
    LOAD                                                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    STORE                                                                      \
  }

/* x goes along the region's neighbours, */
#define REGION_SIDE(statement)                                                 \
  for (j = y; j < SIDE; j += ROWS)                                             \
    if (f0 + x < nf && i0 + j < n0)                                            \
      statement;
/* or along the packed ones. */
#define PACKED_SIDE(statement)                                                 \
  for (j = y; j < SIDE; j += ROWS)                                             \
    if (i0 + x < n0 && f0 + j < nf)                                            \
      statement;
#define IN_REGION region[o + (offset_t)(f0 + x) * sf + (offset_t)(i0 + j) * s0]
#define IN_PACKED packed[(f0 + j) * pf + i0 + x]

#ifdef TO_REGION
#define TURN_ALL(name, unit_t)                                                 \
  TURN(name, unit_t, PACKED_SIDE(tile[x][j] = IN_PACKED),                      \
       REGION_SIDE(IN_REGION = tile[j][x]))
#else
#define TURN_ALL(name, unit_t)                                                 \
  TURN(name, unit_t, REGION_SIDE(tile[j][x] = IN_REGION),                      \
       PACKED_SIDE(IN_PACKED = tile[x][j]))
#endif
TURN_ALL(turn_1, uchar)
TURN_ALL(turn_2, ushort)
TURN_ALL(turn_4, uint)
TURN_ALL(turn_8, uint2)
TURN_ALL(turn_16, uint4)

#ifdef TO_REGION
UNPACK(unit_1, uchar, 16)
UNPACK(unit_2, ushort, 8)
UNPACK(unit_4, uint, 4)
UNPACK(unit_8, uint2, 2)
UNPACK(unit_16, uint4, 1)
#else
PACK(unit_1, uchar, 16)
PACK(unit_2, ushort, 8)
PACK(unit_4, uint, 4)
PACK(unit_8, uint2, 2)
PACK(unit_16, uint4, 1)
#endif
