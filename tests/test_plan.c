/*
 * The planner without a device: forms, boxes and the moves of every plan, run
 * over plain memory and compared with a walk over the elements.
 */
#include "config.h"

#include "plan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL (CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER)

static const clb__facts facts_of_a_link = {.asked = ALL, .plans = ALL,
                                           .command_us = 5, .link_gbs = 25,
                                           .row_ns = 1.5, .pick_ns = 4,
                                           .pick_gbs = 8, .pack_gbs = 300,
                                           .worth_bytes = 16 << 20};

static clb__form form_of(size_t ndim, const size_t *shape,
                         const ptrdiff_t *strides, size_t elem, uint64_t at) {
  clb__form form;

  clb__form_make(&form, ndim, shape, strides, elem, at);
  return form;
}

/* --- Forms ------------------------------------------------------------------ */

START_TEST(neighbours_that_continue_each_other_are_merged) {
  const size_t shape[] = {4, 3, 5};
  const ptrdiff_t strides[] = {60, 20, 4};
  clb__form form = form_of(3, shape, strides, 4, 8);

  ck_assert_uint_eq(form.ndim, 0);
  ck_assert_uint_eq(form.run, 240);
  ck_assert_uint_eq(form.origin, 8);
}
END_TEST

START_TEST(the_stride_of_an_extent_of_one_says_nothing) {
  const size_t shape[] = {1, 10, 1};
  const ptrdiff_t strides[] = {9999, 8, -7};
  clb__form form = form_of(3, shape, strides, 8, 0);

  ck_assert_uint_eq(form.ndim, 0);
  ck_assert_uint_eq(form.run, 80);
}
END_TEST

START_TEST(padded_rows_keep_one_dimension) {
  const size_t shape[] = {2, 3, 4};
  const ptrdiff_t strides[] = {96, 32, 4};
  clb__form form = form_of(3, shape, strides, 4, 0);

  ck_assert_uint_eq(form.ndim, 1);
  ck_assert_uint_eq(form.dim[0].n, 6);
  ck_assert_int_eq(form.dim[0].stride, 32);
  ck_assert_uint_eq(form.run, 16);
}
END_TEST

START_TEST(broadcast_and_reversed_dimensions_merge_among_themselves) {
  const size_t shape[] = {2, 3, 2, 2};
  const ptrdiff_t strides[] = {0, 0, -8, -4};
  clb__form form = form_of(4, shape, strides, 4, 12);

  ck_assert_uint_eq(form.ndim, 2);
  ck_assert_uint_eq(form.dim[0].n, 6);
  ck_assert_int_eq(form.dim[0].stride, 0);
  ck_assert_uint_eq(form.dim[1].n, 4);
  ck_assert_int_eq(form.dim[1].stride, -4);
}
END_TEST

START_TEST(a_narrowed_form_holds_just_the_rows_of_the_range) {
  const size_t shape[] = {10, 4};
  const ptrdiff_t strides[] = {32, 4};
  clb__form form = form_of(2, shape, strides, 4, 0);
  size_t start = 50;

  clb__form_narrow(&form, &start, 20); /* rows 3 and 4 */
  ck_assert_uint_eq(start, 2);
  ck_assert_uint_eq(form.origin, 96);
  ck_assert_uint_eq(form.dim[0].n, 2);
  form = form_of(2, shape, strides, 4, 0);
  start = 50;
  clb__form_narrow(&form, &start, 14); /* inside row 3 */
  ck_assert_uint_eq(form.ndim, 0);
  ck_assert_uint_eq(form.origin + start, 98);
}
END_TEST

static bool apart(size_t ndim, const size_t *shape, const ptrdiff_t *strides,
                  size_t elem) {
  clb__form form = form_of(ndim, shape, strides, elem, 1 << 20);

  return clb__form_apart(&form);
}

START_TEST(elements_that_share_bytes_are_not_apart) {
  const size_t two[] = {3, 4};

  ck_assert(apart(2, two, (const ptrdiff_t[]){16, 4}, 4));
  ck_assert(apart(2, two, (const ptrdiff_t[]){4, 12}, 4));
  ck_assert(apart(2, two, (const ptrdiff_t[]){-16, 4}, 4));
  ck_assert(!apart(2, two, (const ptrdiff_t[]){15, 4}, 4));
  ck_assert(!apart(2, two, (const ptrdiff_t[]){16, 3}, 4));
  ck_assert(!apart(2, two, (const ptrdiff_t[]){16, 0}, 4));
  /* Interleaved without a shared byte, but refused all the same: only nested
   * strides are known to be apart. */
  ck_assert(!apart(2, two, (const ptrdiff_t[]){4, 8}, 4));
}
END_TEST

/* --- Which plan ------------------------------------------------------------- */

typedef struct paper_case {
  const char *name;
  size_t ndim, shape[4];
  ptrdiff_t strides[4];
  size_t elem, chunk;
  unsigned plans;
  const char *words; /* NULL: unsupported */
} paper_case;

static const paper_case papers[] = {
    {"contiguous", 2, {1024, 1024}, {4096, 4}, 4, 1 << 20, ALL,
     "read 4194304 bytes, 4 chunks"},
    {"case 2", 2, {1080, 1917}, {7936, 4}, 4, 4 << 20, ALL,
     "rect 1080 x 7668 of pitch 7936, 2 chunks"},
    {"case 2, reads", 2, {1080, 1917}, {7936, 4}, 4, 4 << 20, CLB_PLAN_READ,
     "read 1080 x 7668 of pitch 7936, 2 chunks"},
    {"case 2, spans", 2, {1080, 1917}, {7936, 4}, 4, 4 << 20, CLB_PLAN_GATHER,
     "gather 1080 x 7668 of pitch 7936 by spans, 2 chunks"},
    {"tall, a byte wide, pitch 4", 2, {262144, 1}, {4, 1}, 1, 4 << 20, ALL,
     "rect 262144 x 1 of pitch 4, 1 chunk"},
    {"transposed", 2, {2048, 128}, {4, 8192}, 4, 1 << 18, ALL,
     "gather 2048 x 128 x 4 of pitch 8192 by rects, 4 chunks"},
    {"reversed", 1, {1000000}, {-4}, 4, 1 << 20, ALL,
     "gather 1000000 x 4 of pitch -4 by spans, 4 chunks"},
    {"reversed, reads", 1, {5}, {-4}, 4, 1 << 20, CLB_PLAN_READ, NULL},
    {"broadcast, rects", 1, {5}, {0}, 4, 1 << 20, CLB_PLAN_RECT | CLB_PLAN_READ,
     NULL},
    {"packed only by a kernel", 1, {5}, {8}, 4, 1 << 20, CLB_PLAN_PACK,
     "pack 5 x 4 of pitch 8, 1 chunk"},
    {"transposed, kernels", 2, {2048, 2048}, {4, 8192}, 4, 1 << 20,
     ALL | CLB_PLAN_PACK, "pack 2048 x 2048 x 4 of pitch 8192, 17 chunks"},
    {"rows of 4 bytes, kernels", 2, {1 << 20, 1}, {8, 4}, 4, 1 << 20,
     ALL | CLB_PLAN_PACK, "pack 1048576 x 4 of pitch 8, 5 chunks"},
    {"contiguous, kernels", 2, {1024, 1024}, {4096, 4}, 4, 1 << 20,
     ALL | CLB_PLAN_PACK, "read 4194304 bytes, 4 chunks"},
    {"mapped", 2, {4, 4}, {4, 16}, 4, 1 << 20, ALL | CLB_PLAN_MAP,
     "map 4 x 4 x 4 of pitch 16, 1 chunk"},
};

START_TEST(paper_case_gets_its_plan) {
  const paper_case *paper = &papers[_i];
  clb__facts facts = facts_of_a_link;
  clb__form form = form_of(paper->ndim, paper->shape, paper->strides,
                           paper->elem, 1 << 24);
  clb__plan plan;
  char words[320];
  clb_status status;

  facts.plans = facts.asked = paper->plans;
  status = clb__plan_choose(&plan, &facts, &form, 0, clb__form_length(&form),
                            paper->chunk, CLB__GET);
  if (paper->words == NULL) {
    ck_assert_msg(status == CLB_UNSUPPORTED, "%s: %s", paper->name,
                  clb_status_name(status));
    return;
  }
  ck_assert_msg(status == CLB_OK, "%s: %s", paper->name, clb_error_message());
  clb__plan_text(&plan, words, sizeof words);
  ck_assert_msg(strcmp(words, paper->words) == 0, "%s: \"%s\", not \"%s\"",
                paper->name, words, paper->words);
}
END_TEST

/* --- Random layouts over plain memory ---------------------------------------- */

static uint64_t random_state;

static size_t below(size_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(random_state >> 33) % n;
}

#define MAX_RANK 6

typedef struct sample {
  size_t ndim, shape[MAX_RANK], elem, length, memory;
  ptrdiff_t strides[MAX_RANK];
  size_t origin;
} sample;

static void draw(sample *s) {
  static const size_t elems[] = {1, 2, 3, 4, 8, 12, 16};
  size_t order[MAX_RANK], d, step, before = 0, after;

  s->ndim = below(MAX_RANK + 1);
  s->elem = elems[below(sizeof elems / sizeof *elems)];
  s->length = step = s->elem;
  for (d = 0; d < s->ndim; d++) {
    size_t other = below(d + 1);
    s->shape[d] = 1 + below(s->ndim < 4 ? 20 : 6);
    s->length *= s->shape[d];
    order[d] = order[other];
    order[other] = d;
  }
  after = s->elem;
  for (d = 0; d < s->ndim; d++) { /* from the fastest outwards */
    size_t i = order[d], kind = below(10), far;
    s->strides[i] = (ptrdiff_t)step;
    if (kind == 0)
      s->strides[i] = 0;
    else if (kind == 1)
      s->strides[i] = (ptrdiff_t)below(step + 1);
    else if (kind < 4)
      s->strides[i] = (ptrdiff_t)(step + below(20));
    else if (kind < 6)
      s->strides[i] = -(ptrdiff_t)step;
    far = (s->shape[i] - 1) * clb__abs_stride(s->strides[i]);
    if (s->strides[i] < 0)
      before += far;
    else
      after += far;
    if (clb__abs_stride(s->strides[i]) * s->shape[i] > step)
      step = clb__abs_stride(s->strides[i]) * s->shape[i];
  }
  s->origin = before + below(9);
  s->memory = s->origin + after + below(9);
}

/* The source byte of logical byte at. */
static size_t walk(const sample *s, size_t at) {
  size_t element = at / s->elem, d;
  ptrdiff_t byte = (ptrdiff_t)(s->origin + at % s->elem);

  for (d = s->ndim; d-- > 0;) {
    byte += (ptrdiff_t)(element % s->shape[d]) * s->strides[d];
    element /= s->shape[d];
  }
  return (size_t)byte;
}

/* What a device does with a move; false where a rect would be refused. */
static bool run_move(unsigned char *block, unsigned char *memory,
                     size_t size, const clb__move *move, bool put) {
  size_t d, h, row = move->row_pitch, slice = move->slice_pitch;

  if (move->width == 0 || move->height == 0 || move->depth == 0 ||
      move->bytes != move->width * move->height * move->depth)
    return false;
  if (move->height > 1 && row < move->width)
    return false;
  if (move->depth > 1 &&
      (slice < (row != 0 ? row : move->width) * move->height ||
       (row != 0 && slice % row != 0)))
    return false;
  for (d = 0; d < move->depth; d++)
    for (h = 0; h < move->height; h++) {
      size_t at = (size_t)move->origin + d * slice + h * row;
      if (at + move->width > size)
        return false;
      if (put)
        memcpy(memory + at, block, move->width);
      else
        memcpy(block, memory + at, move->width);
      block += move->width;
    }
  return true;
}

static unsigned long turned; /* parts */

/* What a kernel does with a part that is turned. */
static bool run_turn(unsigned char *block, unsigned char *memory, size_t size,
                     const clb__pack *pack, const clb__turn *turn, bool put) {
  size_t unit = pack->unit, moved = 0;
  uint32_t rest, i0, f;

  turned++;
  for (rest = 0; rest < turn->count; rest++)
    for (f = 0; f < turn->nf; f++)
      for (i0 = 0; i0 < turn->n0; i0++, moved++) {
        int64_t from = turn->first + f * turn->sf + i0 * turn->s0;
        size_t to = (size_t)f * turn->pf + i0;
        uint32_t t = rest;
        unsigned d;
        for (d = 0; d < turn->ndim; d++) {
          from += (int64_t)(t % turn->n[d]) * turn->s[d];
          to += (size_t)(t % turn->n[d]) * turn->p[d];
          t /= turn->n[d];
        }
        if (from < 0 || ((uint64_t)from + 1) * unit > size || to >= pack->units)
          return false;
        memcpy(put ? memory + (size_t)from * unit : block + to * unit,
               put ? block + to * unit : memory + (size_t)from * unit, unit);
      }
  return moved == pack->units;
}

/* What a kernel does with a move. */
static bool run_kernel(unsigned char *block, unsigned char *memory, size_t size,
                       const clb__form *form, const clb__move *move, bool put) {
  clb__pack pack;
  clb__turn turn;
  uint64_t i;

  clb__pack_make(form, move->start, move->bytes, &pack);
  if ((uint64_t)pack.units * pack.unit != move->bytes)
    return false;
  if (clb__pack_turn(&pack, &turn))
    return run_turn(block, memory, size, &pack, &turn, put);
  for (i = 0; i < pack.units; i++) {
    uint64_t carry = i;
    int64_t unit = pack.first;
    unsigned d;
    for (d = 0; d < pack.ndim; d++) {
      carry += pack.c[d];
      unit += (int64_t)(carry % pack.n[d]) * pack.s[d];
      carry /= pack.n[d];
    }
    if (unit < 0 || ((uint64_t)unit + 1) * pack.unit > size)
      return false;
    memcpy(put ? memory + (size_t)unit * pack.unit : block + i * pack.unit,
           put ? block + i * pack.unit : memory + (size_t)unit * pack.unit,
           pack.unit);
  }
  return true;
}

static bool run(unsigned char *block, unsigned char *memory, size_t size,
                const clb__plan *plan, const clb__move *move, bool put) {
  return plan->kind == CLB_PLAN_PACK && plan->form.ndim > 0
             ? run_kernel(block, memory, size, &plan->form, move, put)
             : run_move(block, memory, size, move, put);
}

static void get(const clb__plan *plan, unsigned char *memory, size_t size,
                unsigned char *out) {
  size_t covered = plan->start;
  unsigned char *block = malloc(plan->chunk);
  const clb__move *next;
  clb__cursor cursor;

  clb__cursor_init(&cursor, plan);
  while (clb__cursor_peek(&cursor, &next)) {
    clb__move move = *next;
    clb__pick pick;
    ck_assert_uint_le(move.bytes, plan->chunk);
    ck_assert(run(block, memory, size, plan, &move, false));
    clb__cursor_take(&cursor, &pick);
    if (pick.same)
      memcpy(out + (move.start - plan->start), block, move.bytes);
    else
      clb__pick_out(&pick, out + (move.start - plan->start), block);
    if (move.first) {
      ck_assert_uint_eq(move.start, covered);
      covered += move.length;
    }
  }
  ck_assert_uint_eq(covered, plan->end);
  free(block);
}

static void put(const clb__plan *plan, unsigned char *memory, size_t size,
                const unsigned char *in) {
  unsigned char *block = malloc(plan->chunk);
  const clb__move *next;
  clb__cursor cursor;

  clb__cursor_init(&cursor, plan);
  while (clb__cursor_peek(&cursor, &next)) {
    clb__move move = *next;
    clb__pick pick;
    clb__cursor_take(&cursor, &pick);
    if (pick.same)
      memcpy(block, in + move.start, move.bytes);
    else
      clb__pick_in(&pick, in + move.start, block);
    ck_assert(run(block, memory, size, plan, &move, true));
  }
  free(block);
}

static void try_get(const sample *s, const clb__form *form, unsigned plans) {
  unsigned char *memory = malloc(s->memory), *out;
  size_t start = below(s->length), end = start + 1 + below(s->length - start), i;
  clb__facts facts = facts_of_a_link;
  clb__plan plan;
  clb_status status;

  if (below(2) == 0)
    start = 0, end = s->length;
  facts.plans = facts.asked = plans;
  facts.command_us = (double)below(3) * 0.01; /* gaps of 0 to 500 bytes */
  for (i = 0; i < s->memory; i++)
    memory[i] = (unsigned char)below(256);
  out = calloc(1, end - start);
  status = clb__plan_choose(&plan, &facts, form, start, end,
                            16 + below(s->length + 64), CLB__GET);
  if (status == CLB_UNSUPPORTED) {
    ck_assert(clb__form_turns(form) &&
              !(plans & (CLB_PLAN_GATHER | CLB_PLAN_PACK)));
  } else {
    ck_assert_int_eq(status, CLB_OK);
    get(&plan, memory, s->memory, out);
    for (i = start; i < end; i++)
      if (out[i - start] != memory[walk(s, i)])
        ck_abort_msg("logical byte %zu of [%zu, %zu) differs", i, start, end);
  }
  free(out);
  free(memory);
}

static void try_put(const sample *s, const clb__form *form, unsigned plans) {
  unsigned char *memory = malloc(s->memory), *expect = malloc(s->memory);
  unsigned char *in = malloc(s->length);
  clb__facts facts = facts_of_a_link;
  clb__plan plan;
  clb_status status;
  size_t i;

  facts.plans = facts.asked = plans;
  for (i = 0; i < s->memory; i++)
    memory[i] = expect[i] = (unsigned char)below(256);
  for (i = 0; i < s->length; i++)
    expect[walk(s, i)] = in[i] = (unsigned char)below(256);
  status = clb__plan_choose(&plan, &facts, form, 0, s->length,
                            16 + below(s->length + 64), CLB__PUT);
  if (status == CLB_UNSUPPORTED) {
    ck_assert(clb__form_turns(form) &&
              !(plans & (CLB_PLAN_GATHER | CLB_PLAN_PACK)));
  } else {
    ck_assert_int_eq(status, CLB_OK);
    put(&plan, memory, s->memory, in);
    ck_assert_mem_eq(memory, expect, s->memory);
  }
  free(in);
  free(expect);
  free(memory);
}

START_TEST(random_layouts_move_as_the_walk_says) {
  static const unsigned sets[] = {ALL, CLB_PLAN_READ, CLB_PLAN_RECT,
                                  CLB_PLAN_GATHER, CLB_PLAN_PACK};
  const char *seed = getenv("CLBYTES_TEST_SEED");
  const char *count = getenv("CLBYTES_TEST_LAYOUTS");
  unsigned long i, n = count != NULL ? strtoul(count, NULL, 10) : 5000;

  random_state = seed != NULL ? strtoull(seed, NULL, 10) : 20261201;
  printf("seed %llu, %lu layouts\n", (unsigned long long)random_state, n);
  for (i = 0; i < n; i++) {
    sample s;
    clb__form form;
    draw(&s);
    clb__form_make(&form, s.ndim, s.shape, s.strides, s.elem, s.origin);
    ck_assert_uint_eq(clb__form_length(&form), s.length);
    try_get(&s, &form, sets[below(sizeof sets / sizeof *sets)]);
    if (clb__form_apart(&form))
      try_put(&s, &form, sets[below(sizeof sets / sizeof *sets)]);
  }
  if (n >= 1000)
    ck_assert_uint_gt(turned, 0);
}
END_TEST

/* --- Huge forms, on paper --------------------------------------------------- */

/* Byte of the source of a logical byte, in numbers that hold all. */
static uint64_t source_byte(const clb__form *form, uint64_t at) {
  uint64_t byte = form->origin;
  unsigned d;

  for (d = 0; d < form->ndim; d++) {
    byte += at / form->size[d + 1] * (uint64_t)form->dim[d].stride;
    at %= form->size[d + 1];
  }
  return byte + at;
}

/* Where a kernel finds a unit, in the numbers that it has. */
static uint64_t kernel_byte(const clb__pack *pack, uint32_t unit) {
  int64_t offset = 0;
  uint32_t t = unit;
  unsigned d;

  for (d = 0; d < pack->ndim; d++) {
    uint32_t n = (uint32_t)pack->n[d], q;
    t += (uint32_t)pack->c[d];
    q = t / n;
    offset += (int64_t)(t - q * n) * pack->s[d];
    if (!pack->wide)
      ck_assert(offset >= INT32_MIN && offset <= INT32_MAX);
    t = q;
  }
  return (uint64_t)(pack->first + offset) * pack->unit;
}

static void ck_part(const clb__form *form, const clb__move *move) {
  clb__pack pack;
  unsigned i;

  clb__pack_make(form, move->start, move->bytes, &pack);
  ck_assert_uint_le(move->bytes, (size_t)1 << 30);
  ck_assert_uint_eq((uint64_t)pack.units * pack.unit, move->bytes);
  ck_assert_int_eq(pack.wide, clb__pack_wide(form));
  for (i = 0; i < 200; i++) {
    uint32_t unit = i == 0   ? 0
                    : i == 1 ? pack.units - 1
                             : (uint32_t)below(pack.units);
    uint64_t at = move->start + (uint64_t)unit * pack.unit;
    ck_assert_uint_eq(kernel_byte(&pack, unit), source_byte(form, at));
    at += pack.unit - 1;
    ck_assert_uint_eq(kernel_byte(&pack, unit) + pack.unit - 1,
                      source_byte(form, at));
  }
}

#define GI ((size_t)1 << 30)

static const struct huge {
  const char *what;
  size_t ndim, shape[3];
  ptrdiff_t strides[3];
  size_t elem;
  uint64_t origin;
  bool can, wide;
} huge_forms[] = {
    {"transposed, 64 GiB", 2, {1 << 17, 1 << 17}, {4, 4 << 17}, 4, 0, true,
     true},
    {"reversed, 32 GiB", 1, {4 * GI}, {-8}, 4, 32 * GI - 8, true, true},
    {"8 Gi items of 1 byte", 1, {8 * GI}, {3}, 1, 5, true, true},
    {"8 Gi rows of 3 bytes", 2, {8 * GI, 3}, {7, 2}, 1, 0, true, true},
    {"2 rows, 2^40 bytes apart", 2, {2, 100}, {(ptrdiff_t)(1024 * GI), 8}, 4,
     16, true, true},
    {"a span of 2 GiB - 1", 2, {2, 3}, {(ptrdiff_t)(2 * GI - 1 - 20), 8}, 4, 0,
     true, false},
    {"a span of 2 GiB", 2, {2, 3}, {(ptrdiff_t)(2 * GI - 20), 8}, 4, 0, true,
     true},
    {"broadcast, narrow but of 16 Gi", 2, {4 * GI, 100}, {0, 8}, 4, 0, true,
     false},
    {"an inner extent of 2 Gi - 1", 2, {3, 2 * GI - 1}, {1, 5}, 1, 0, true,
     true},
    {"an inner extent of 2 Gi", 2, {3, 2 * GI}, {1, 5}, 1, 0, false, true},
    {"a run of 2 GiB", 2, {3, 2 * GI}, {(ptrdiff_t)(3 * GI), 1}, 1, 0, false,
     true}};

/* [_i]: a form; parts of it at many places, of chunks of all sizes */
START_TEST(parts_of_huge_forms_are_counted_right) {
  static const size_t chunks[] = {4096, 4103, 16 << 20, 3 * GI, 5 * GI};
  const struct huge *h = &huge_forms[_i];
  clb__form form = form_of(h->ndim, h->shape, h->strides, h->elem, h->origin);
  size_t length = clb__form_length(&form), i, j;

  ck_assert_msg(clb__pack_can(&form) == h->can, "%s", h->what);
  ck_assert_msg(clb__pack_wide(&form) == h->wide, "%s", h->what);
  for (i = 0; i < sizeof chunks / sizeof *chunks && h->can; i++)
    for (j = 0; j < 50; j++) {
      clb__plan plan = {.kind = CLB_PLAN_PACK, .form = form, .end = length,
                        .chunk = chunks[i]};
      const clb__move *move;
      clb__cursor cursor;
      unsigned parts;

      if (j == 1)
        plan.start = length > 8 * GI ? length - 8 * GI : length - 1;
      else if (j > 1)
        plan.start = below(length);
      clb__cursor_init(&cursor, &plan);
      for (parts = 0; parts < 10 && clb__cursor_peek(&cursor, &move); parts++) {
        ck_part(&form, move);
        clb__cursor_take(&cursor, NULL);
      }
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("the planner");
  TCase *tcase = tcase_create("forms");
  SRunner *runner;
  int failed;

  tcase_add_test(tcase, neighbours_that_continue_each_other_are_merged);
  tcase_add_test(tcase, the_stride_of_an_extent_of_one_says_nothing);
  tcase_add_test(tcase, padded_rows_keep_one_dimension);
  tcase_add_test(tcase,
                 broadcast_and_reversed_dimensions_merge_among_themselves);
  tcase_add_test(tcase, a_narrowed_form_holds_just_the_rows_of_the_range);
  tcase_add_test(tcase, elements_that_share_bytes_are_not_apart);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("plans");
  tcase_set_timeout(tcase, 600);
  tcase_add_loop_test(tcase, paper_case_gets_its_plan, 0,
                      (int)(sizeof papers / sizeof *papers));
  tcase_add_test(tcase, random_layouts_move_as_the_walk_says);
  tcase_add_loop_test(tcase, parts_of_huge_forms_are_counted_right, 0,
                      (int)(sizeof huge_forms / sizeof *huge_forms));
  suite_add_tcase(suite, tcase);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
