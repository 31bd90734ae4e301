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
