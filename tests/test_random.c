/*
 * Random layouts against the walk: rank 0 to 7, permuted, padded, stepped,
 * negative, broadcast, overlapping; any byte range, in every way, with random
 * sets of plans and sizes of chunks; and back up again.
 *
 * CLBYTES_TEST_LAYOUTS  how many; 2000 unless set
 * CLBYTES_TEST_SEED     of the first; the clock's unless set.  A failure says
 *                       what to set to have it again alone.
 */
#include "config.h"

#include "fixture.h"

#include <stdarg.h>
#include <time.h>

enum { SIZE = 256 << 10, RANK = 7, MOST = 96 << 10, CONTEXTS = 64 };

static uint64_t first_seed;

/* One random layout and where it came from. */
struct sample {
  uint64_t seed, state;
  size_t shape[RANK];
  ptrdiff_t strides[RANK];
  clb_layout layout; /* relative to what is read: root or sub-buffer */
  unsigned plans;
  size_t chunk;
  int maps;
  size_t length;
  unsigned char *expected;
};

/* A context with a set of plans and sizes; made anew now and then. */
struct slot {
  clb_context *context;
  unsigned plans;
  size_t chunk;
  int maps;
};

static unsigned char *contents; /* what the buffer has */
static cl_mem buffer;
static struct slot slots[CONTEXTS];

/* --- Failing with everything that is known ------------------------------- */

static void describe(const struct sample *s, char *text, size_t size)
{
  size_t at = (size_t)snprintf(text, size, "plans %#x, chunk %zu: ((", s->plans,
                               s->chunk);

  for (size_t d = 0; d < s->layout.ndim; d++)
    at += (size_t)snprintf(text + at, size - at, "%zu,", s->shape[d]);
  at += (size_t)snprintf(text + at, size - at, "); (");
  for (size_t d = 0; d < s->layout.ndim; d++)
    at += (size_t)snprintf(text + at, size - at, "%td,", s->strides[d]);
  snprintf(text + at, size - at, "); %zu; %zu)", s->layout.elem_size,
           s->layout.offset);
}

static void wrong(const struct sample *s, const char *format, ...)
{
  char text[1024], what[512];
  va_list list;

  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  describe(s, text, sizeof text);
  ck_abort_msg("%s: %s; error \"%s\"; again with CLBYTES_TEST_LAYOUTS=1 "
               "CLBYTES_TEST_SEED=%ju", text, what, clb_error_message(),
               (uintmax_t)s->seed);
}

static void same(const struct sample *s, const void *got, size_t start,
                 size_t length, const char *what)
{
  size_t at = fixture_difference(got, s->expected + start, length);

  if (at != length)
    wrong(s, "%s of [%zu, %zu) differs at %zu", what, start, start + length,
          start + at);
}

static size_t pick(struct sample *s, size_t limit)
{
  return fixture_below(&s->state, limit);
}

/* --- Making one ---------------------------------------------------------- */

/* Extents and strides; the strides from the inside out in a random order of
 * the dimensions, each a little or much further than what is inside it. */
static void draw_strides(struct sample *s)
{
  static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16};
  size_t order[RANK], reach;
  int calm = pick(s, 3) == 0; /* no zero, negative or overlapping one */

  s->layout.ndim = pick(s, RANK + 1);
  s->layout.elem_size = reach = sizes[pick(s, 7)];
  for (size_t d = 0; d < s->layout.ndim; d++) {
    static const size_t longest[] = {3, 5, 9, 40, 300};
    size_t limit = longest[pick(s, s->layout.ndim > 4 ? 2 : 5)];

    s->shape[d] = pick(s, 40) == 0 ? 0 : 1 + pick(s, limit);
    order[d] = d;
  }
  if (pick(s, 2) == 0)
    for (size_t d = s->layout.ndim; d > 1; d--) {
      size_t with = pick(s, d), swap = order[d - 1];

      order[d - 1] = order[with];
      order[with] = swap;
    }
  for (size_t i = s->layout.ndim; i-- > 0;) {
    size_t d = order[i];
    size_t stride = reach;

    switch (pick(s, 6)) {
    case 0: /* padded to an alignment */
      stride = (reach + 63) / 64 * 64;
      break;
    case 1: /* by a few bytes, of no element's size */
      stride = reach + pick(s, 20);
      break;
    case 2: /* stepped */
      stride = reach * (1 + pick(s, 4));
      break;
    default:
      break;
    }
    if (!calm && pick(s, 12) == 0)
      stride = 0;
    else if (!calm && pick(s, 12) == 0)
      stride = pick(s, stride + 1);
    s->strides[d] = (ptrdiff_t)stride;
    if (!calm && pick(s, 6) == 0)
      s->strides[d] = -s->strides[d];
    if (s->shape[d] == 1 && pick(s, 3) == 0)
      s->strides[d] = (ptrdiff_t)fixture_random(&s->state);
    else if (s->shape[d] > 1)
      reach = stride * (s->shape[d] - 1) + reach;
    if (reach > SIZE)
      return; /* the caller draws again */
  }
}

/* How far below and above element 0 it reaches; 0 if that is too far. */
static int bounds(const struct sample *s, size_t *below, size_t *above)
{
  *below = 0;
  *above = s->layout.elem_size;
  for (size_t d = 0; d < s->layout.ndim; d++) {
    if (s->shape[d] <= 1)
      continue;
    if (s->strides[d] < 0)
      *below += (size_t)-s->strides[d] * (s->shape[d] - 1);
    else
      *above += (size_t)s->strides[d] * (s->shape[d] - 1);
    if (*below + *above > SIZE / 2)
      return 0;
  }
  return 1;
}

/* A layout that lies within the first size bytes. */
static void draw_layout(struct sample *s, size_t size)
{
  size_t below, above;

  do {
    for (size_t d = 0; d < RANK; d++)
      s->shape[d] = 1;
    memset(s->strides, 0, sizeof s->strides);
    draw_strides(s);
    s->layout.shape = s->shape;
    s->layout.strides = s->strides;
  } while (walk_length(&s->layout) > MOST || !bounds(s, &below, &above) ||
           below + above > size);
  s->length = walk_length(&s->layout);
  s->layout.offset = below + pick(s, size - below - above + 1);
  if (pick(s, 3) == 0)
    s->layout.offset = below;
}

static int is_positive(const clb_layout *layout)
{
  for (size_t d = 0; d < layout->ndim; d++)
    if (layout->shape[d] > 1 && layout->strides[d] <= 0)
      return 0;
  return 1;
}

/* Must these plans carry it?  If not they may refuse. */
static int is_carried(const struct sample *s)
{
  return s->plans == 0 || (s->plans & CLB_PLAN_GATHER) != 0 ||
         s->length == 0 || (s->maps && (s->plans & CLB_PLAN_MAP) != 0) ||
         ((s->plans & CLB_PLAN_PACK) != 0 && fixture_compiles()) ||
         ((s->plans & (CLB_PLAN_READ | CLB_PLAN_RECT)) != 0 &&
          is_positive(&s->layout));
}

/* Was it carried?  Fails if it had to be, or failed in another way. */
static int carried(const struct sample *s, clb_status status, const char *what)
{
  if (status == CLB_UNSUPPORTED && !is_carried(s))
    return 0;
  if (status != CLB_OK)
    wrong(s, "%s is %s", what, clb_status_name(status));
  return 1;
}

/* --- Reading ------------------------------------------------------------- */

static void try_copy_into(struct sample *s, clb_bytes *bytes, size_t start,
                          size_t length)
{
  size_t before = pick(s, 70);
  unsigned char *memory = fixture_malloc(before + length + 70);
  unsigned char *dst = memory + before;

  memset(memory, 0x5c, before + length + 70);
  if (carried(s, clb_bytes_copy_into(bytes, start, dst, length),
              "copy_into")) {
    same(s, dst, start, length, "copy_into");
    for (size_t i = 0; i < before; i++)
      if (memory[i] != 0x5c)
        wrong(s, "copy_into of [%zu, %zu) wrote %zu bytes before", start,
              start + length, before - i);
    for (size_t i = 0; i < 70; i++)
      if (dst[length + i] != 0x5c)
        wrong(s, "copy_into of [%zu, %zu) wrote %zu bytes after", start,
              start + length, i + 1);
  }
  free(memory);
}

static void try_stream(struct sample *s, clb_bytes *bytes, size_t start,
                       size_t end)
{
  struct gathered all = {NULL, 0, 0, 0};

  if (carried(s, clb_bytes_stream(bytes, start, end, gather_sink, &all),
              "stream")) {
    if (all.length != end - start)
      wrong(s, "stream of [%zu, %zu) gave %zu", start, end, all.length);
    if (s->chunk != 0 && all.longest > s->chunk)
      wrong(s, "a piece of %zu", all.longest);
    same(s, all.data, start, all.length, "stream");
  } else if (all.pieces != 0) {
    wrong(s, "pieces of a refused stream");
  }
  free(all.data);
}

static void try_read(struct sample *s, clb_bytes *bytes)
{
  const void *data = NULL;
  clb_access access = pick(s, 5) == 0 ? CLB_MAP : CLB_COPY;
  clb_status status = clb_bytes_read(bytes, access, &data);

  if (access == CLB_MAP && status == CLB_WOULD_COPY) {
    access = CLB_COPY;
    status = clb_bytes_read(bytes, access, &data);
  }
  if (carried(s, status, "read"))
    same(s, data, 0, s->length, access == CLB_MAP ? "mapping" : "read");
}

/* A view of a range of the length bytes that s expects. */
static void try_view(struct sample *s, clb_bytes *bytes, int depth)
{
  size_t start = pick(s, s->length + 1);
  size_t end = start + pick(s, s->length - start + 1);
  struct sample part = *s;
  clb_bytes *view = NULL;

  part.expected += start;
  part.length = end - start;
  if (clb_bytes_view(bytes, start, end, &view) != CLB_OK)
    wrong(s, "view [%zu, %zu) of %zu", start, end, s->length);
  if (clb_bytes_length(view) != part.length)
    wrong(s, "a view of %zu, not %zu", clb_bytes_length(view), part.length);
  if (pick(&part, 8) == 0 && clb_bytes_snapshot(view) != CLB_OK)
    wrong(s, "snapshot of the view [%zu, %zu)", start, end);
  if (depth > 0)
    try_view(&part, view, depth - 1);
  if (pick(&part, 2) == 0)
    try_copy_into(&part, view, 0, part.length);
  if (pick(&part, 2) == 0)
    try_stream(&part, view, 0, part.length);
  if (pick(&part, 2) == 0)
    try_read(&part, view);
  s->state = part.state;
  clb_bytes_release(view);
}

static void try_reads(struct sample *s, clb_bytes *bytes)
{
  for (int i = 0; i < 3; i++) {
    size_t start = pick(s, s->length + 1);
    size_t end = start + pick(s, s->length - start + 1);

    try_copy_into(s, bytes, start, end - start);
    start = pick(s, s->length + 1);
    end = start + pick(s, s->length - start + 1);
    try_stream(s, bytes, start, end);
    try_view(s, bytes, (int)pick(s, 3));
  }
}

/* --- Up again ------------------------------------------------------------ */

/* By the rule: dimensions of extent above 1, sorted by |stride|, each at
 * least the reach of those before. */
static int overlaps_itself(const clb_layout *layout)
{
  size_t strides[RANK], shape[RANK], count = 0;
  size_t reach = layout->elem_size;

  for (size_t d = 0; d < layout->ndim; d++) {
    size_t stride = (size_t)(layout->strides[d] < 0 ? -layout->strides[d]
                                                    : layout->strides[d]);
    size_t at = count;

    if (layout->shape[d] == 0)
      return 0;
    if (layout->shape[d] == 1)
      continue;
    for (; at > 0 && strides[at - 1] > stride; at--) {
      strides[at] = strides[at - 1];
      shape[at] = shape[at - 1];
    }
    strides[at] = stride;
    shape[at] = layout->shape[d];
    count++;
  }
  for (size_t i = 0; i < count; i++) {
    if (strides[i] < reach)
      return 1;
    reach += strides[i] * (shape[i] - 1);
  }
  return 0;
}

/* Other bytes into the same layout; contents follows. */
static void try_upload(struct sample *s, clb_context *context, cl_mem where,
                       size_t origin)
{
  unsigned char *logical = fixture_bytes(s->length, s->seed);
  unsigned char *got = fixture_malloc(SIZE);
  clb_bytes *bytes = NULL;
  clb_status status;
  size_t at;

  ck_ok(clb_bytes_from_copy(logical, s->length, &bytes));
  status = clb_bytes_upload(bytes, context, where, &s->layout);
  if (overlaps_itself(&s->layout)) {
    if (status != CLB_INVALID_LAYOUT)
      wrong(s, "upload that overlaps itself is %s", clb_status_name(status));
  } else if (carried(s, status, "upload")) {
    walk_back(&s->layout, contents + origin, logical);
  }
  fixture_fetch(buffer, got, SIZE);
  at = fixture_difference(got, contents, SIZE);
  if (at != SIZE)
    wrong(s, "the buffer differs at %zu after an upload at %zu", at, origin);
  clb_bytes_release(bytes);
  free(got);
  free(logical);
}

/* --- All of it ----------------------------------------------------------- */

/* A slot has always the same options, so that a sample's seed is all that it
 * takes to have it again: half of them every plan, half every set of plans. */
static void make_context(struct slot *slot)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  uint64_t state = (uint64_t)(slot - slots);

  clb_context_release(slot->context);
  slot->context = NULL;
  options.plans = (unsigned)(slot - slots) % (CONTEXTS / 2);
  if (slot - slots >= CONTEXTS / 2)
    options.plans = 0;
  if (fixture_below(&state, 3) != 0) {
    options.chunk_size = 4096 + fixture_below(&state, 3) *
                                    fixture_below(&state, 9000);
    options.staging_limit = options.chunk_size *
                            (1 + fixture_below(&state, 4));
  }
  slot->plans = options.plans;
  slot->chunk = options.chunk_size;
  ck_ok(clb_context_create(fx.queue, &options, &slot->context));
  slot->maps = fixture_context_maps(slot->context);
}

static void try_sample(struct sample *s)
{
  struct slot *slot = &slots[pick(s, CONTEXTS)];
  const size_t align = fixture_sub_buffer_align();
  cl_buffer_region region = {pick(s, 8) * align, SIZE / 2};
  int in_sub_buffer = pick(s, 4) == 0;
  size_t origin = in_sub_buffer ? region.origin : 0;
  clb_bytes *bytes = NULL;
  cl_mem where = buffer;
  clb_status status;

  if (pick(s, 25) == 0 || slot->context == NULL)
    make_context(slot);
  s->plans = slot->plans;
  s->chunk = slot->chunk;
  s->maps = slot->maps;
  if (in_sub_buffer) {
    cl_int code;

    where = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION,
                              &region, &code);
    ck_cl(code);
  }
  draw_layout(s, in_sub_buffer ? SIZE / 2 : SIZE);
  s->expected = walk(&s->layout, contents + origin);

  status = clb_bytes_from_buffer(slot->context, where, &s->layout, &bytes);
  if (status != CLB_OK)
    wrong(s, "from_buffer is %s", clb_status_name(status));
  if (clb_bytes_length(bytes) != s->length)
    wrong(s, "the length is %zu", clb_bytes_length(bytes));
  if (pick(s, 10) == 0 && clb_bytes_snapshot(bytes) != CLB_OK)
    wrong(s, "snapshot");
  try_copy_into(s, bytes, 0, s->length);
  try_reads(s, bytes);
  try_read(s, bytes);
  try_reads(s, bytes);
  clb_bytes_release(bytes);
  if (pick(s, 2) == 0)
    try_upload(s, slot->context, where, origin);
  if (in_sub_buffer)
    ck_cl(clReleaseMemObject(where));
  free(s->expected);
}

START_TEST(random_layouts_are_what_the_walk_says)
{
  const uint64_t count = fixture_number("CLBYTES_TEST_LAYOUTS", 2000);

  contents = fixture_bytes(SIZE, first_seed);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  for (uint64_t i = 0; i < count; i++) {
    struct sample sample;

    memset(&sample, 0, sizeof sample);
    sample.seed = sample.state = first_seed + i;
    try_sample(&sample);
  }
  for (int i = 0; i < CONTEXTS; i++) {
    clb_stats stats;

    clb_context_stats(slots[i].context, &stats, sizeof stats);
    ck_assert_uint_eq(stats.host_bytes, 0);
    clb_context_release(slots[i].context);
  }
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("random");
  TCase *all = fixture_case(suite, "device", 0);

  first_seed = fixture_number("CLBYTES_TEST_SEED",
                              (uint64_t)time(NULL) * 1000000);
  printf("CLBYTES_TEST_SEED=%ju\n", (uintmax_t)first_seed);
  fflush(stdout);
  tcase_add_test(all, random_layouts_are_what_the_walk_says);
  return fixture_main(suite, FIXTURE_DEVICE);
}
