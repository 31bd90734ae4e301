/*
 * Operation by source by state: what comes out, where the contents are then,
 * and what moved for it.  One table, and one walk over all of its cells.
 */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* --- The words of the table ---------------------------------------------- */

/* Every handle has so many bytes; those with dimensions have 6 x 8 of 4. */
enum { LENGTH = 192, HALF = 77, PITCH = 48, SIZE = 2048, AT = 256 };

enum state { UNREAD, READING, READ, MAPPED, WRITTEN, SNAPSHOT, STATES };

static const char *const state_names[STATES] = {
    "unread", "reading", "read", "mapped", "written", "snapshot"};

enum {
  FLAT = 1,    /* device, contiguous */
  PADDED = 2,  /* device, rows with a pitch */
  TURNED = 4,  /* device, transposed and reversed */
  VIEW = 8,    /* a view of a view of a contiguous one */
  CLONE = 16,  /* a clone of a view that cuts rows of a padded one */
  SHARED = 32, /* a view of a view of one that has been read, and is there */
  FILES = 64,
  HOST = 128,  /* the caller's memory */
  KIN = 256,   /* a view of a view of the caller's memory, with both there */
  COPY = 512,  /* from_copy */
  SOURCES = 10
};

static const char *const source_names[SOURCES] = {
    "flat", "padded", "turned", "view of a view", "clone of a view",
    "view of what was read", "file", "host", "view of host", "copy"};

enum { DEVICE = FLAT | PADDED | TURNED | VIEW | CLONE | SHARED };

/* A handle in a state, and what is around it. */
struct cell {
  enum state state;
  unsigned source;
  clb_bytes *bytes;
  clb_bytes *out[2];       /* what the operation made */
  size_t start[2];         /* where those begin, for ranges */
  unsigned char *expected; /* the handle's bytes */
  unsigned char *contents; /* of all the storage */
  cl_mem buffer;
  cl_mem target;           /* of an upload */
  clb_bytes *kin[2];       /* parents */
  const void *parent_data; /* of kin[0] on the host, before the operation */
  cl_event gate;           /* READING: the queue waits for it */
};

/*
 * A cell is four characters, for each state in turn:
 *   status  o CLB_OK, c CLB_WOULD_COPY, u CLB_UNSUPPORTED, t CLB_TIMEOUT
 *   place   d device, f file, h heap, m mapped, x foreign: of the handle after
 *           it, or of what a successful operation made
 *   moved   how often the device served LENGTH bytes, a prefetch under way
 *           included
 *   held    what the context's materialised handles hold more: = nothing,
 *           + LENGTH, # twice that, - LENGTH less; while a prefetch is under
 *           way its own does not count
 * and ---- where there is no such state.
 */
struct row {
  unsigned sources;
  const char *cells;
};

enum { MOST_ROWS = 8 };

struct operation {
  const char *name;
  clb_status (*act)(struct cell *cell);
  int traits;
  struct row rows[MOST_ROWS];
};

enum {
  BLOCKS = 1, /* until a prefetch under way ends, or the queue goes on */
  EDITS = 2,  /* writes a byte where it succeeds */
  THREADS = 4 /* starts the library's */
};

/* --- The operations ------------------------------------------------------ */

static clb_status do_slice(struct cell *cell)
{
  clb_layout layout;
  ptrdiff_t step[2] = {2, -1};
  size_t start[2] = {1, 7};

  ck_ok(clb_bytes_layout(cell->bytes, &layout));
  if (layout.ndim == 1)
    start[0] = 3;
  return clb_bytes_slice(cell->bytes, start, NULL, step, &cell->out[0]);
}

static clb_status do_reshape(struct cell *cell)
{
  return clb_bytes_reshape(cell->bytes, 3, SHAPE(6, 8, 4), 1, &cell->out[0]);
}

static clb_status do_flatten(struct cell *cell)
{
  return clb_bytes_reshape(cell->bytes, 1, SHAPE(LENGTH), 1, &cell->out[0]);
}

static clb_status do_clone(struct cell *cell)
{
  return clb_bytes_clone(cell->bytes, &cell->out[0]);
}

static clb_status do_view(struct cell *cell)
{
  cell->start[0] = 5;
  return clb_bytes_view(cell->bytes, 5, 100, &cell->out[0]);
}

static clb_status do_split(struct cell *cell)
{
  cell->start[1] = HALF;
  return clb_bytes_split(cell->bytes, HALF, CLB_SPLIT_SHARED, &cell->out[0],
                         &cell->out[1]);
}

static clb_status do_split_owned(struct cell *cell)
{
  cell->start[1] = HALF;
  return clb_bytes_split(cell->bytes, HALF, CLB_SPLIT_OWNED, &cell->out[0],
                         &cell->out[1]);
}

/* Of two reads the second gives the same. */
static clb_status read_twice(struct cell *cell, clb_access access)
{
  const void *data = NULL, *again = NULL;
  clb_status status = clb_bytes_read(cell->bytes, access, &data);

  if (status != CLB_OK) {
    ck_assert_ptr_null(data);
    return status;
  }
  ck_bytes(data, cell->expected, LENGTH);
  ck_ok(clb_bytes_read(cell->bytes, access, &again));
  ck_assert_ptr_eq(data, again);
  return CLB_OK;
}

static clb_status do_read(struct cell *cell)
{
  return read_twice(cell, CLB_COPY);
}

static clb_status do_read_no_copy(struct cell *cell)
{
  return read_twice(cell, CLB_NO_COPY);
}

static clb_status do_read_map(struct cell *cell)
{
  return read_twice(cell, CLB_MAP);
}

static clb_status write_a_byte(struct cell *cell, clb_access access)
{
  void *data = NULL;
  clb_status status = clb_bytes_write(cell->bytes, access, &data);

  if (status != CLB_OK)
    return status;
  ck_bytes(data, cell->expected, LENGTH);
  cell->expected[HALF] ^= 0xff;
  ((unsigned char *)data)[HALF] ^= 0xff;
  return CLB_OK;
}

static clb_status do_write(struct cell *cell)
{
  return write_a_byte(cell, CLB_COPY);
}

static clb_status do_write_no_copy(struct cell *cell)
{
  return write_a_byte(cell, CLB_NO_COPY);
}

static clb_status do_equal(struct cell *cell)
{
  clb_bytes *other = NULL;
  int equal = -1;
  clb_status status;

  ck_ok(clb_bytes_from_copy(cell->expected, LENGTH, &other));
  status = clb_bytes_equal(cell->bytes, other, &equal);
  ck_assert_int_eq(equal, 1);
  clb_bytes_release(other);
  return status;
}

static clb_status do_detach(struct cell *cell)
{
  void *data = NULL;
  size_t length = 0;
  clb_status status = clb_bytes_detach(cell->bytes, &data, &length);

  if (status != CLB_OK)
    return status;
  ck_assert_uint_eq(length, LENGTH);
  ck_assert_uint_eq((uintptr_t)data % 64, 0);
  ck_bytes(data, cell->expected, LENGTH);
  memset(data, 0x5a, length); /* nobody else's */
  clb_free(data);
  return CLB_OK;
}

/* The buffer holds the bytes; the queue may be held up now, so that a copy
 * that waits for nothing else is looked at only where it is not. */
static clb_status do_buffer(struct cell *cell)
{
  unsigned char got[SIZE];
  cl_mem buffer = NULL;
  size_t offset = 0, size = 0;
  clb_status status = clb_bytes_buffer(cell->bytes, &buffer, &offset);

  if (status != CLB_OK)
    return status;
  ck_cl(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL));
  ck_assert_uint_le(offset + LENGTH, size);
  if (cell->state != READING && cell->state != MAPPED) {
    fixture_fetch(buffer, got, size);
    ck_bytes(got + offset, cell->expected, LENGTH);
  }
  ck_cl(clReleaseMemObject(buffer));
  return CLB_OK;
}

static clb_status prefetch(struct cell *cell, cl_event *done)
{
  clb_status status = clb_bytes_prefetch(cell->bytes, done);

  if (status == CLB_OK && cell->state != READING)
    ck_ok(clb_bytes_wait(cell->bytes, UINT64_MAX));
  return status;
}

static clb_status do_prefetch(struct cell *cell)
{
  return prefetch(cell, NULL);
}

static clb_status do_prefetch_event(struct cell *cell)
{
  cl_event done = NULL;
  cl_int end = -1;
  clb_status status = prefetch(cell, &done);

  if (status != CLB_OK) {
    ck_assert_ptr_null(done);
    return status;
  }
  if (cell->state != READING)
    ck_cl(clWaitForEvents(1, &done));
  ck_cl(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof end,
                       &end, NULL));
  ck_assert_int_eq(end, cell->state == READING ? CL_SUBMITTED : CL_COMPLETE);
  ck_cl(clReleaseEvent(done));
  return CLB_OK;
}

static clb_status do_look(struct cell *cell)
{
  return clb_bytes_wait(cell->bytes, 0);
}

static clb_status do_wait(struct cell *cell)
{
  return clb_bytes_wait(cell->bytes, UINT64_MAX);
}

static clb_status do_evict(struct cell *cell)
{
  return clb_bytes_evict(cell->bytes);
}

static clb_status do_copy_into(struct cell *cell)
{
  unsigned char got[LENGTH];
  clb_status status = clb_bytes_copy_into(cell->bytes, 0, got, LENGTH);

  if (status == CLB_OK)
    ck_bytes(got, cell->expected, LENGTH);
  return status;
}

static clb_status do_copy_into_layout(struct cell *cell)
{
  clb_layout layout = {2, SHAPE(12, 16), STRIDES(20, 1), 1, 3};
  unsigned char got[256], should[256];
  clb_status status;

  memset(got, 0x77, sizeof got);
  memset(should, 0x77, sizeof should);
  walk_back(&layout, should, cell->expected);
  status = clb_bytes_copy_into_layout(cell->bytes, got, sizeof got, &layout);
  if (status == CLB_OK)
    ck_bytes(got, should, sizeof got);
  return status;
}

static clb_status do_stream(struct cell *cell)
{
  struct gathered all = {NULL, 0, 0, 0};
  clb_status status =
      clb_bytes_stream(cell->bytes, 0, LENGTH, gather_sink, &all);

  if (status == CLB_OK) {
    ck_assert_uint_eq(all.length, LENGTH);
    ck_bytes(all.data, cell->expected, LENGTH);
  }
  free(all.data);
  return status;
}

static clb_status do_snapshot(struct cell *cell)
{
  return clb_bytes_snapshot(cell->bytes);
}

static clb_status do_upload(struct cell *cell)
{
  unsigned char got[LENGTH];
  clb_status status =
      clb_bytes_upload(cell->bytes, fx.context, cell->target, NULL);

  if (status == CLB_OK) {
    fixture_fetch(cell->target, got, LENGTH);
    ck_bytes(got, cell->expected, LENGTH);
  }
  return status;
}

/* --- The table ----------------------------------------------------------- */

/* What brings nothing and keeps nothing: from the device each time. */
#define PASSING                                                                \
  /*                unread reading read mapped written snapshot */             \
  {                                                                            \
    {FLAT | VIEW,            "od1= oh2+ oh0= om1= oh0= od1="},                 \
    {PADDED | TURNED | CLONE, "od1= oh2+ oh0= ---- oh0= od1="},                \
    {SHARED,                 "oh0= ---- oh0= om0= oh0= oh0="},                 \
    {FILES,                  "of0= ---- oh0= ---- oh0= of0="},                 \
    {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},                 \
    {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},                 \
    {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}                  \
  }

/* What is made has what the handle has, and nothing moves. */
#define MADE(dimensionless)                                                    \
  {FLAT | VIEW,              "od0= od0= oh0= od0= oh0= od0="},                 \
  {(PADDED | TURNED | CLONE) & ~(dimensionless),                               \
                             "od0= od0= oh0= ---- oh0= od0="},                 \
  {dimensionless,            "ud0= ud0= uh0= ---- uh0= ud0="},                 \
  {SHARED,                   "oh0= ---- oh0= oh0= oh0= oh0="},                 \
  {FILES,                    "of0= ---- oh0= ---- oh0= of0="},                 \
  {HOST,                     "ox0= ---- ox0= ---- ox0= ox0="},                 \
  {KIN,                      "ox0= ---- ox0= ---- oh0= ox0="},                 \
  {COPY,                     "oh0= ---- oh0= ---- oh0= oh0="}

static const struct operation table[] = {
    {"slice", do_slice, 0, {MADE(CLONE)}},
    {"reshape", do_reshape, 0, {MADE(CLONE)}},
    {"flatten", do_flatten, 0, {MADE(PADDED | TURNED | CLONE)}},
    {"clone", do_clone, 0, {MADE(0)}},
    {"view", do_view, 0, {MADE(0)}},
    {"split shared", do_split, 0, {MADE(0)}},
    {"split owned", do_split_owned, BLOCKS,
     {{FLAT | VIEW,            "oh1+ oh2# oh0+ oh1+ oh0+ oh1+"},
      {PADDED | TURNED | CLONE, "oh1+ oh2# oh0+ ---- oh0+ oh1+"},
      {SHARED,                 "oh0+ ---- oh0+ oh0+ oh0+ oh0+"},
      {FILES | HOST | KIN | COPY,
                               "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"read COPY", do_read, BLOCKS,
     {{FLAT | VIEW,            "oh1+ oh1+ oh0= oh1+ oh0= oh1+"},
      {PADDED | TURNED | CLONE, "oh1+ oh1+ oh0= ---- oh0= oh1+"},
      {SHARED,                 "oh0= ---- oh0= oh0= oh0= oh0="},
      {FILES | COPY,           "oh0= ---- oh0= ---- oh0= oh0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="}}},
    {"read NO_COPY", do_read_no_copy, 0,
     {{FLAT | VIEW,            "cd0= cd0= oh0= cm0= oh0= cd0="},
      {PADDED | TURNED | CLONE, "cd0= cd0= oh0= ---- oh0= cd0="},
      {SHARED,                 "oh0= ---- oh0= oh0= oh0= oh0="},
      {FILES,                  "cf0= ---- oh0= ---- oh0= cf0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"read MAP", do_read_map, BLOCKS,
     {{FLAT | VIEW,            "om1= om2+ om1= om0= oh0= om1="},
      {PADDED | TURNED | CLONE, "cd0= ch1+ ch0= ---- oh0= cd0="},
      {SHARED,                 "om1= ---- om1= om0= oh0= om1="},
      {FILES,                  "cf0= ---- oh0= ---- oh0= cf0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"write COPY", do_write, BLOCKS | EDITS,
     {{FLAT | VIEW,            "oh1+ oh1+ oh0= oh1+ oh0= oh1+"},
      {PADDED | TURNED | CLONE, "oh1+ oh1+ oh0= ---- oh0= oh1+"},
      {SHARED,                 "oh0+ ---- oh0+ oh0+ oh0= oh0+"},
      {FILES | KIN | COPY,     "oh0= ---- oh0= ---- oh0= oh0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="}}},
    {"write NO_COPY", do_write_no_copy, EDITS,
     {{FLAT | VIEW,            "cd0= cd0= oh0= cm0= oh0= cd0="},
      {PADDED | TURNED | CLONE, "cd0= cd0= oh0= ---- oh0= cd0="},
      {SHARED,                 "ch0= ---- ch0= cm0= oh0= ch0="},
      {FILES,                  "cf0= ---- oh0= ---- oh0= cf0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "cx0= ---- cx0= ---- oh0= cx0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"equal", do_equal, BLOCKS, PASSING},
    {"copy_into", do_copy_into, BLOCKS, PASSING},
    {"copy_into_layout", do_copy_into_layout, BLOCKS, PASSING},
    {"stream", do_stream, BLOCKS, PASSING},
    {"upload", do_upload, BLOCKS, PASSING},
    {"detach", do_detach, BLOCKS,
     {{FLAT | VIEW,            "od1= od1= od0- od1= oh0= od1="},
      {PADDED | TURNED | CLONE, "od1= od1= od0- ---- oh0= od1="},
      {SHARED,                 "od0= ---- od0= od0= oh0= od0="},
      {FILES,                  "of0= ---- of0= ---- oh0= of0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"buffer", do_buffer, 0,
     {{FLAT | VIEW,            "od0= od0= oh0= om0= uh0= od0="},
      {PADDED | TURNED | CLONE, "ud0= ud0= uh0= ---- uh0= ud0="},
      {SHARED,                 "oh0= ---- oh0= om0= uh0= oh0="},
      {FILES,                  "uf0= ---- uh0= ---- uh0= uf0="},
      {HOST,                   "ux0= ---- ux0= ---- ux0= ux0="},
      {KIN,                    "ux0= ---- ux0= ---- uh0= ux0="},
      {COPY,                   "uh0= ---- uh0= ---- uh0= uh0="}}},
    {"prefetch", do_prefetch, THREADS,
     {{FLAT | VIEW,            "oh1+ od0= oh0= om1+ oh0= oh1+"},
      {PADDED | TURNED | CLONE, "oh1+ od0= oh0= ---- oh0= oh1+"},
      {SHARED,                 "oh0= ---- oh0= om0= oh0= oh0="},
      {FILES | COPY,           "oh0= ---- oh0= ---- oh0= oh0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="}}},
    {"prefetch with an event", do_prefetch_event, THREADS,
     {{FLAT | VIEW,            "oh1+ od0= oh0= om1+ oh0= oh1+"},
      {PADDED | TURNED | CLONE, "oh1+ od0= oh0= ---- oh0= oh1+"},
      {SHARED,                 "oh0= ---- oh0= om0= oh0= oh0="},
      {FILES,                  "uf0= ---- uh0= ---- uh0= uf0="},
      {HOST,                   "ux0= ---- ux0= ---- ux0= ux0="},
      {KIN,                    "ux0= ---- ux0= ---- uh0= ux0="},
      {COPY,                   "uh0= ---- uh0= ---- uh0= uh0="}}},
    {"wait, 0", do_look, 0,
     {{FLAT | VIEW,            "od0= td0= oh0= om0= oh0= od0="},
      {PADDED | TURNED | CLONE, "od0= td0= oh0= ---- oh0= od0="},
      {SHARED,                 "oh0= ---- oh0= om0= oh0= oh0="},
      {FILES,                  "of0= ---- oh0= ---- oh0= of0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"wait", do_wait, BLOCKS,
     {{FLAT | VIEW,            "od0= oh1+ oh0= om0= oh0= od0="},
      {PADDED | TURNED | CLONE, "od0= oh1+ oh0= ---- oh0= od0="},
      {SHARED,                 "oh0= ---- oh0= om0= oh0= oh0="},
      {FILES,                  "of0= ---- oh0= ---- oh0= of0="},
      {HOST,                   "ox0= ---- ox0= ---- ox0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- oh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- oh0= oh0="}}},
    {"evict", do_evict, BLOCKS,
     {{FLAT | VIEW,            "od0= od1= od0- od0= uh0= od0="},
      {PADDED | TURNED | CLONE, "od0= od1= od0- ---- uh0= od0="},
      {SHARED,                 "od0= ---- od0= od0= uh0= od0="},
      {FILES,                  "of0= ---- of0= ---- uh0= of0="},
      {HOST,                   "ox0= ---- ox0= ---- ux0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- uh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- uh0= oh0="}}},
    {"snapshot", do_snapshot, 0,
     {{FLAT | VIEW,            "od0= od0= oh0= om0= uh0= od0="},
      {PADDED | TURNED | CLONE, "od0= od0= oh0= ---- uh0= od0="},
      {SHARED,                 "oh0= ---- oh0= om0= uh0= oh0="},
      {FILES,                  "of0= ---- oh0= ---- uh0= of0="},
      {HOST,                   "ox0= ---- ox0= ---- ux0= ox0="},
      {KIN,                    "ox0= ---- ox0= ---- uh0= ox0="},
      {COPY,                   "oh0= ---- oh0= ---- uh0= oh0="}}},
};

enum { OPERATIONS = sizeof table / sizeof *table };

/* --- Sources ------------------------------------------------------------- */

static const clb_layout padded = {
    2, (const size_t[]){6, 8}, (const ptrdiff_t[]){PITCH, 4}, 4, AT};
static const clb_layout turned = {
    2, (const size_t[]){6, 8}, (const ptrdiff_t[]){-4, 32}, 4, AT + 20};

/* A view of a view of the handle, which stays with the cell: what it has from
 * start on. */
static void view_of_a_view(struct cell *cell, clb_bytes *whole, size_t start)
{
  cell->kin[0] = whole;
  ck_ok(clb_bytes_view(whole, start - 9, start + LENGTH + 50, &cell->kin[1]));
  ck_ok(clb_bytes_view(cell->kin[1], 9, 9 + LENGTH, &cell->bytes));
}

static void expect_range(struct cell *cell, const unsigned char *bytes)
{
  cell->expected = fixture_malloc(LENGTH);
  memcpy(cell->expected, bytes, LENGTH);
}

static void make_clone(struct cell *cell)
{
  clb_layout layout = {2, SHAPE(10, 8), STRIDES(PITCH, 4), 4, AT};
  unsigned char *logical = walk(&layout, cell->contents);

  cell->kin[0] = fixture_handle(cell->buffer, &layout);
  ck_ok(clb_bytes_view(cell->kin[0], 41, 41 + LENGTH, &cell->kin[1]));
  ck_ok(clb_bytes_clone(cell->kin[1], &cell->bytes));
  expect_range(cell, logical + 41);
  free(logical);
}

static void make_file(struct cell *cell)
{
  char path[] = "/tmp/clbytes-table-XXXXXX";
  int descriptor = mkstemp(path);

  ck_assert_int_ge(descriptor, 0);
  ck_assert_int_eq(write(descriptor, cell->contents, SIZE), SIZE);
  ck_assert_int_eq(close(descriptor), 0);
  ck_ok(clb_bytes_from_file(path, AT, LENGTH, &cell->bytes));
  ck_assert_int_eq(unlink(path), 0);
}

static void make_source(struct cell *cell)
{
  clb_bytes *whole = NULL;
  clb_layout flat = {2, SHAPE(6, 8), NULL, 4, AT};
  const clb_layout *layout = cell->source == FLAT ? &flat
                             : cell->source == PADDED ? &padded
                                                      : &turned;
  const void *data;

  cell->contents = fixture_bytes(SIZE, cell->source);
  if (cell->source & DEVICE)
    cell->buffer = fixture_buffer(CL_MEM_READ_WRITE, cell->contents, SIZE);
  switch (cell->source) {
  case FLAT:
  case PADDED:
  case TURNED:
    cell->bytes = fixture_handle(cell->buffer, layout);
    cell->expected = walk(layout, cell->contents);
    return;
  case VIEW:
    view_of_a_view(cell, fixture_handle(cell->buffer, NULL), AT);
    break;
  case CLONE:
    make_clone(cell);
    return;
  case SHARED:
    whole = fixture_handle(cell->buffer, NULL);
    ck_ok(clb_bytes_read(whole, CLB_COPY, &data));
    view_of_a_view(cell, whole, AT);
    break;
  case FILES:
    make_file(cell);
    break;
  case HOST:
    ck_ok(clb_bytes_from_host(cell->contents + AT, LENGTH, NULL, NULL,
                              &cell->bytes));
    break;
  case KIN:
    ck_ok(clb_bytes_from_host(cell->contents, SIZE, NULL, NULL, &whole));
    view_of_a_view(cell, whole, AT);
    break;
  default:
    ck_ok(clb_bytes_from_copy(cell->contents + AT, LENGTH, &cell->bytes));
  }
  expect_range(cell, cell->contents + AT);
}

/* --- States -------------------------------------------------------------- */

static void close_gate(struct cell *cell)
{
  cl_int code;

  cell->gate = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  ck_cl(clEnqueueMarkerWithWaitList(fx.queue, 1, &cell->gate, NULL));
}

static void open_gate(struct cell *cell)
{
  if (cell->gate == NULL)
    return;
  ck_cl(clSetUserEventStatus(cell->gate, CL_COMPLETE));
  ck_cl(clReleaseEvent(cell->gate));
  cell->gate = NULL;
}

static void reach_state(struct cell *cell)
{
  const void *data;

  switch (cell->state) {
  case READING:
    /* What is parked ends now: a driver may wait where memory is released
     * while a queue is held up. */
    ck_cl(clFinish(fx.queue));
    clb_context_trim(fx.context);
    close_gate(cell);
    ck_ok(clb_bytes_prefetch(cell->bytes, NULL));
    break;
  case READ:
    ck_ok(clb_bytes_read(cell->bytes, CLB_COPY, &data));
    break;
  case MAPPED:
    ck_ok(clb_bytes_read(cell->bytes, CLB_MAP, &data));
    break;
  case WRITTEN:
    ck_ok(write_a_byte(cell, CLB_COPY));
    break;
  case SNAPSHOT:
    ck_ok(clb_bytes_snapshot(cell->bytes));
    if (cell->buffer != NULL) {
      fixture_fill(fx.queue, cell->buffer, 0xee, SIZE, 0, NULL, NULL);
      ck_cl(clFinish(fx.queue));
    }
    break;
  default:
    break;
  }
  if (cell->kin[0] != NULL &&
      clb_bytes_read(cell->kin[0], CLB_NO_COPY, &data) == CLB_OK)
    cell->parent_data = data;
}

/* --- An operation that waits for the gate -------------------------------- */

enum { NOT_YET, NOW, OVER };

static atomic_int operating;
static atomic_long operator;

/* Does the thread sleep?  Where that cannot be told, some time has to do. */
static int sleeps(long thread)
{
  char name[64], state = 'S';
  FILE *file;

  fixture_sleep(0.002);
  snprintf(name, sizeof name, "/proc/self/task/%ld/stat", thread);
  file = fopen(name, "r");
  if (file == NULL) {
    fixture_sleep(0.05);
    return 1;
  }
  if (fscanf(file, "%*d %*s %c", &state) != 1)
    state = 'S';
  fclose(file);
  return state == 'S';
}

/* Opens the gate once the operation sleeps; some drivers spin instead. */
static void *open_later(void *user)
{
  double end;
  int looks = 0;

  while (atomic_load(&operating) == NOT_YET)
    fixture_sleep(0.0005);
  end = fixture_seconds() + 0.1;
  while (looks < 2 && atomic_load(&operating) == NOW && fixture_seconds() < end)
    looks = sleeps(atomic_load(&operator)) ? looks + 1 : 0;
  open_gate(user);
  return NULL;
}

static clb_status act(const struct operation *operation, struct cell *cell)
{
  clb_status status;
  pthread_t opener;

  if (cell->state != READING || !(operation->traits & BLOCKS))
    return operation->act(cell);
  atomic_store(&operating, NOT_YET);
#ifdef __linux__
  atomic_store(&operator, syscall(SYS_gettid));
#endif
  ck_assert_int_eq(pthread_create(&opener, NULL, open_later, cell), 0);
  atomic_store(&operating, NOW);
  status = operation->act(cell);
  atomic_store(&operating, OVER);
  ck_assert_int_eq(pthread_join(opener, NULL), 0);
  (void)clb_bytes_wait(cell->bytes, UINT64_MAX);
  return status;
}

/* --- The walk ------------------------------------------------------------ */

static char status_word(clb_status status)
{
  switch (status) {
  case CLB_OK: return 'o';
  case CLB_WOULD_COPY: return 'c';
  case CLB_UNSUPPORTED: return 'u';
  case CLB_TIMEOUT: return 't';
  default: return '?';
  }
}

static char place_word(clb_place place)
{
  switch (place) {
  case CLB_PLACE_DEVICE: return 'd';
  case CLB_PLACE_FILE: return 'f';
  case CLB_PLACE_MAPPED: return 'm';
  case CLB_PLACE_HEAP: return 'h';
  case CLB_PLACE_FOREIGN: return 'x';
  default: return '?';
  }
}

static char moved_word(uint64_t bytes)
{
  return bytes % LENGTH == 0 && bytes / LENGTH < 10
             ? (char)('0' + bytes / LENGTH) : '?';
}

static char held_word(int64_t bytes)
{
  return bytes == 0             ? '='
         : bytes == LENGTH      ? '+'
         : bytes == 2 * LENGTH  ? '#'
         : bytes == -LENGTH     ? '-'
                                : '?';
}

/* The words of an operation that was done. */
static void outcome(const struct cell *cell, clb_status status,
                    const clb_stats *before, char *words)
{
  clb_stats after = fixture_stats();
  clb_bytes *asked = cell->out[0] != NULL ? cell->out[0] : cell->bytes;

  words[0] = status_word(status);
  words[1] = place_word(clb_bytes_place(asked));
  words[2] = moved_word(after.bytes_read - before->bytes_read);
  words[3] = held_word((int64_t)after.host_bytes -
                       (int64_t)before->host_bytes);
  words[4] = '\0';
}

/* What was made has the parent's bytes, and lets go of nothing of it. */
static void ck_made(struct cell *cell, const struct operation *operation)
{
  clb_layout slice = {2, SHAPE(3, 8), STRIDES(64, -4), 4, 32 + 28};
  clb_layout steps = {1, SHAPE((LENGTH - 2) / 2), STRIDES(2), 1, 3};
  clb_layout own;
  unsigned char *expected;

  for (int i = 0; i < 2; i++) {
    size_t length = clb_bytes_length(cell->out[i]);

    if (cell->out[i] == NULL)
      continue;
    if (operation->act == do_slice) {
      ck_ok(clb_bytes_layout(cell->bytes, &own));
      expected = walk(own.ndim == 1 ? &steps : &slice, cell->expected);
    } else {
      expected = fixture_malloc(length);
      memcpy(expected, cell->expected + cell->start[i], length);
    }
    expect_copy_into(cell->out[i], expected, length);
    expect_read(cell->out[i], expected, length);
    free(expected);
  }
}

/* Nothing that is done to a handle shows in those that it was made from. */
static void ck_kin(const struct cell *cell)
{
  const void *data;

  if (cell->parent_data == NULL)
    return;
  ck_ok(clb_bytes_read(cell->kin[0], CLB_NO_COPY, &data));
  ck_assert_ptr_eq(data, cell->parent_data);
  ck_bytes(data, cell->contents, SIZE);
}

/* The columns of a source, or NULL. */
static const char *cells_of(const struct operation *operation, unsigned source)
{
  const char *cells = NULL;

  for (int r = 0; r < MOST_ROWS; r++) {
    if (!(operation->rows[r].sources & source))
      continue;
    ck_assert_msg(cells == NULL, "%s: two rows for one source",
                  operation->name);
    cells = operation->rows[r].cells;
  }
  return cells;
}

/* What another device's words are where it cannot map. */
static void without_maps(const struct operation *operation, struct cell *cell,
                         char *words)
{
  if (operation->act != do_read_map || words[1] != 'm')
    return;
  words[0] = 'c';
  words[1] = cell->state == UNREAD || cell->state == SNAPSHOT ? 'd' : 'h';
  if (cell->source == SHARED)
    words[1] = 'h';
  words[2]--;
}

static void try_cell(const struct operation *operation, unsigned source,
                     enum state state, const char *expected)
{
  struct cell cell = {.state = state, .source = source};
  char words[5], should[5];
  clb_stats before;
  clb_status status;

  memcpy(should, expected, 4);
  should[4] = '\0';
  if (!fixture_maps())
    without_maps(operation, &cell, should);
  make_source(&cell);
  if (operation->act == do_upload)
    cell.target = fixture_buffer(CL_MEM_READ_WRITE, NULL, LENGTH);
  before = fixture_stats(); /* of a prefetch too */
  reach_state(&cell);
  if (state != READING)
    before = fixture_stats();
  status = act(operation, &cell);
  outcome(&cell, status, &before, words);
  if (cell.gate != NULL && words[3] == '+') /* room for what it will bring */
    words[3] = '=';
  ck_assert_msg(strcmp(words, should) == 0, "%s: %s, not %s; %s",
                fixture_input, words, should, clb_error_message());
  open_gate(&cell);
  ck_made(&cell, operation);
  expect_copy_into(cell.bytes, cell.expected, LENGTH);
  ck_kin(&cell);
  ck_ok(clb_bytes_wait(cell.bytes, UINT64_MAX));
  for (int i = 0; i < 2; i++) {
    clb_bytes_release(cell.out[i]);
    clb_bytes_release(cell.kin[i]);
  }
  expect_read(cell.bytes, cell.expected, LENGTH);
  clb_bytes_release(cell.bytes);
  /* A job of the library's lets go a moment later. */
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  if (cell.target != NULL)
    ck_cl(clReleaseMemObject(cell.target));
  if (cell.buffer != NULL) {
    ck_refs(cell.buffer, 1);
    ck_cl(clReleaseMemObject(cell.buffer));
  }
  free(cell.expected);
  free(cell.contents);
}

static int skipped(const struct operation *operation, enum state state)
{
  return fixture_is("Oclgrind") &&
         (state == READING || operation->traits & THREADS);
}

START_TEST(every_cell_is_as_the_table_says)
{
  enum state state = (enum state)_i;
  char name[160];
  int tried = 0;

  if (state == MAPPED && !fixture_maps())
    FIXTURE_SKIP("this device does not map in place");
  if (fixture_is("Oclgrind"))
    fprintf(stderr, "skip: %s: what needs the library's threads: two threads "
            "in OpenCL crash this driver\n", state_names[state]);
  for (int o = 0; o < OPERATIONS; o++) {
    for (int s = 0; s < SOURCES; s++) {
      const char *cells = cells_of(&table[o], 1u << s);

      snprintf(name, sizeof name, "%s of %s, %s", table[o].name,
               source_names[s], state_names[state]);
      ck_assert_msg(cells != NULL && strlen(cells) == 5 * STATES - 1,
                    "%s: not in the table", name);
      if (cells[5 * state] == '-' || skipped(&table[o], state))
        continue;
      fixture_input = name;
      try_cell(&table[o], 1u << s, state, cells + 5 * state);
      tried++;
    }
  }
  ck_assert(tried > 0 || fixture_is("Oclgrind"));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("table");
  TCase *all = fixture_case(suite, "all", 60);

  tcase_add_loop_test(all, every_cell_is_as_the_table_says, 0, STATES);
  return fixture_main(suite, FIXTURE_DEVICE);
}
