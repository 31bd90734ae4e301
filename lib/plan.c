/*
 * plan.c - chooses how a layout is moved, and says it in words.
 *
 * Pure, as plan.h says.  The walk over the moves is cursor.c.
 */
#include "config.h"

#include "plan.h"

#include <float.h>
#include <stdio.h>

/* Moves that are looked at to estimate what a plan costs. */
#define SAMPLE_MOVES 16

/* Inner dimensions of a form that one rect can carry, next to the row. */
static unsigned rect_dims(const clb__form *form) {
  unsigned n = form->ndim;
  size_t row, slice;

  if (n < 1 || form->dim[n - 1].stride <= 0)
    return 0;
  row = (size_t)form->dim[n - 1].stride;
  if (row < form->run)
    return 0;
  if (n < 2 || form->dim[n - 2].stride <= 0)
    return 1;
  slice = (size_t)form->dim[n - 2].stride;
  /* The slice pitch has to be a multiple of the row pitch: OpenCL 1.2, 5.2.2;
   * some drivers enforce it and some take anything. */
  return slice % row == 0 && slice / row >= form->dim[n - 1].n ? 2 : 1;
}

static size_t runs_of(const clb__pick *pick) {
  size_t runs = 1;
  unsigned i;

  for (i = 0; i < pick->ndim; i++)
    runs *= pick->axis[i].n;
  return runs;
}

/* Bytes of the source from the first of the first chunk to its last. */
static double chunk_span(const clb__plan *plan, double chunk) {
  clb__form form = plan->form;
  size_t start = plan->start;
  uint64_t first, bytes;

  clb__form_narrow(&form, &start, (size_t)chunk);
  clb__form_span(&form, &first, &bytes);
  return (double)bytes;
}

/* Microseconds a logical byte: each chunk is a kernel and a transfer, and one
 * overlaps the other; what does not is the first chunk's kernel. */
static double pack_cost(const clb__plan *plan, const clb__facts *facts) {
  double bytes = (double)(plan->end - plan->start);
  double chunk = (double)plan->chunk < bytes ? (double)plan->chunk : bytes;
  double slowest = facts->pack_gbs < facts->link_gbs ? facts->pack_gbs
                                                     : facts->link_gbs;
  double span = facts->pack_beside ? chunk_span(plan, chunk) : 0;

  return 1 / (slowest * 1e3) + 2 * facts->command_us / chunk +
         chunk / (facts->pack_gbs * 1e3) / bytes +
         span / (facts->pack_gbs * 1e3) / chunk;
}

/* Microseconds a logical byte, over the first moves. */
static double cost(const clb__plan *plan, const clb__facts *facts) {
  clb__cursor cursor;
  clb__pick pick;
  const clb__move *move;
  double us = 0, payload = 0;
  unsigned i;

  clb__cursor_init(&cursor, plan);
  for (i = 0; i < SAMPLE_MOVES && clb__cursor_peek(&cursor, &move); i++) {
    us += facts->command_us + (double)move->bytes / (facts->link_gbs * 1e3);
    if (move->height > 1 || move->depth > 1)
      us += (double)move->height * (double)move->depth * facts->row_ns / 1e3;
    clb__cursor_take(&cursor, &pick);
    if (pick.same) {
      payload += (double)cursor.move.bytes;
    } else {
      double runs = (double)runs_of(&pick);
      us += runs * facts->pick_ns / 1e3;
      us += runs * (double)pick.run / (facts->pick_gbs * 1e3);
      payload += runs * (double)pick.run;
    }
  }
  return us / payload;
}

/* Completes a plan of a kind; false where the kind cannot carry it. */
static bool shape(clb__plan *plan, unsigned kind, bool rects,
                  const clb__facts *facts, clb__direction direction) {
  const clb__form *form = &plan->form;
  bool turns = clb__form_turns(form);

  plan->kind = kind;
  plan->rects = rects;
  plan->rect_dims = facts->plans & CLB_PLAN_RECT ? 2 : 0;
  plan->box_dims = 0;
  switch (kind) {
  case CLB_PLAN_READ:
    return !turns;
  case CLB_PLAN_RECT:
    plan->box_dims = rect_dims(form);
    return !turns;
  case CLB_PLAN_PACK:
    return clb__form_contiguous(form) || clb__pack_can(form);
  case CLB_PLAN_GATHER:
    plan->box_dims = CLB__MAX_DIMS;
    return direction == CLB__GET ? !rects || plan->rect_dims > 0 : rects;
  default:
    return true;
  }
}

/* All of the plan is one move. */
static bool one_move(const clb__plan *plan) {
  clb__cursor cursor;
  const clb__move *move;

  clb__cursor_init(&cursor, plan);
  return clb__cursor_peek(&cursor, &move) && move->last &&
         move->length == plan->end - plan->start;
}

/* What is waited for one after the other costs more than it does in a row: a
 * thread of the driver's and the caller's wake each other each time. */
#define MAP_COMMANDS 12

/* The same for a mapping: a marker, a map and an unmap, each waited for, and the
 * host picks the runs apart. */
static double map_cost(const clb__plan *plan, const clb__facts *facts) {
  double bytes = (double)(plan->end - plan->start);

  return MAP_COMMANDS * facts->command_us +
         bytes / (double)plan->form.run * facts->pick_ns / 1e3 +
         bytes / (facts->pick_gbs * 1e3);
}

/* More than any, whatever the program says that things cost. */
#define MOST_US 1e300

/* What a kind would cost in all; DBL_MAX if it cannot be. */
static double total_cost(clb__plan *plan, unsigned kind, bool rects,
                         const clb__facts *facts, clb__direction direction) {
  double bytes = (double)(plan->end - plan->start), us;

  if (!(facts->plans & kind) || !shape(plan, kind, rects, facts, direction))
    return DBL_MAX;
  if (kind == CLB_PLAN_PACK &&
      facts->build_us[clb__pack_wide(&plan->form)] < 0)
    return DBL_MAX;
  us = (kind == CLB_PLAN_PACK ? pack_cost(plan, facts) : cost(plan, facts)) *
       bytes;
  return us < MOST_US ? us : MOST_US; /* what is no number, too */
}

static const struct {
  unsigned kind;
  bool rects;
} kinds[] = {{CLB_PLAN_READ, false},
             {CLB_PLAN_RECT, false},
             {CLB_PLAN_GATHER, false},
             {CLB_PLAN_GATHER, true},
             {CLB_PLAN_PACK, false}};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))
#define PACK (KINDS - 1)

/* Of a contiguous form all kinds are plain transfers: the first that is allowed
 * will do. */
static int contiguous(const clb__facts *facts) {
  int i;

  for (i = 0; i < KINDS; i++)
    if (facts->plans & kinds[i].kind)
      return i;
  return -1;
}

static bool repeats(const clb__form *form) {
  unsigned d;

  for (d = 0; d < form->ndim; d++)
    if (form->dim[d].stride == 0)
      return true;
  return false;
}

/* The cheapest kind, or -1; DBL_MAX is what a kind costs that cannot be. */
static int cheapest(clb__plan *plan, const clb__facts *facts,
                    clb__direction direction) {
  double costs[KINDS], build = facts->build_us[clb__pack_wide(&plan->form)];
  int best = -1, i;

  for (i = 0; i < KINDS; i++)
    costs[i] = total_cost(plan, kinds[i].kind, kinds[i].rects, facts,
                          direction);
  for (i = 0; i < PACK; i++)
    if (costs[i] < DBL_MAX && (best < 0 || costs[i] < costs[best]))
      best = i;
  /* Of a broadcast only the distinct bytes cross the link; and what is copied
   * back may be written by others meanwhile, between the elements. */
  if (costs[PACK] == DBL_MAX ||
      (best >= 0 && (repeats(&plan->form) ||
                     (direction == CLB__PUT && facts->pack_beside))))
    return best;
  if (best < 0)
    return PACK;
  /* A kernel that is not there is built when all that it would have saved so
   * far is as much as the build; not in a small access, which would wait. */
  if (build == 0 ? costs[PACK] < costs[best]
                 : costs[PACK] + build < costs[best] &&
                       plan->end - plan->start >= facts->worth_bytes)
    return PACK;
  if (build > 0 && costs[PACK] < costs[best])
    plan->missed_us = costs[best] - costs[PACK];
  return best;
}

/* Whether one command on the program's queue is as good a way as a mapping, if
 * that can be.  A gather copies twice: only a small one is. */
static bool beats_map(const clb__plan *plan, const clb__facts *facts) {
  size_t bytes = plan->end - plan->start;

  if (!(facts->plans & CLB_PLAN_MAP))
    return true;
  if (plan->kind == CLB_PLAN_GATHER && bytes > facts->quick_bytes / 32)
    return false;
  return cost(plan, facts) * (double)bytes < map_cost(plan, facts);
}

clb_status clb__plan_choose(clb__plan *plan, const clb__facts *facts,
                            const clb__form *form, size_t start, size_t end,
                            size_t chunk, clb__direction direction) {
  double gap = facts->command_us * facts->link_gbs * 1e3;
  bool small = end - start <= facts->quick_bytes;
  int chosen;

  plan->form = *form;
  plan->start = start;
  plan->end = end;
  plan->chunk = chunk < PTRDIFF_MAX ? chunk : PTRDIFF_MAX; /* signed steps */
  plan->gap = gap < (double)plan->chunk ? (size_t)gap : plan->chunk;
  plan->quick = false;
  plan->missed_us = 0;

  if (facts->plans & CLB_PLAN_MAP && !small) {
    (void)shape(plan, CLB_PLAN_MAP, false, facts, direction);
    return CLB_OK;
  }
  chosen = clb__form_contiguous(form) ? contiguous(facts)
                                      : cheapest(plan, facts, direction);
  if (chosen >= 0) {
    (void)shape(plan, kinds[chosen].kind, kinds[chosen].rects, facts,
                direction);
    plan->quick = small && chosen != PACK && one_move(plan) &&
                  beats_map(plan, facts);
  }
  if (facts->plans & CLB_PLAN_MAP && !plan->quick) {
    (void)shape(plan, CLB_PLAN_MAP, false, facts, direction);
    return CLB_OK;
  }
  if (chosen < 0) {
    char names[64];
    clb__plan_names(facts->asked, names, sizeof names);
    return clb__fail(CLB_UNSUPPORTED,
                     "the allowed plans (%s) cannot carry this layout%s%s",
                     names,
                     clb__form_turns(form)
                         ? ", which has a zero or negative stride"
                         : "",
                     facts->plans & CLB_PLAN_PACK && clb__pack_can(form)
                         ? "; no kernel can be built"
                         : "");
  }
  return CLB_OK;
}

void clb__plan_names(unsigned plans, char *text, size_t size) {
  static const char *const names[] = {"map", "read", "rect", "pack", "gather"};
  size_t used = 0;
  unsigned i;

  (void)snprintf(text, size, "none");
  for (i = 0; i < sizeof names / sizeof *names; i++)
    if (plans & 1u << i && used < size)
      used += (size_t)snprintf(text + used, size - used, "%s%s",
                               used > 0 ? "|" : "", names[i]);
}

/* " 3 x 1080 x 7668", or " 8294400" where it is contiguous. */
static size_t extents_text(const clb__form *form, char *text, size_t size) {
  size_t used = 0;
  unsigned d;

  text[0] = '\0';
  for (d = 0; d < form->ndim && used < size; d++)
    used += (size_t)snprintf(text + used, size - used, " %zu x",
                             form->dim[d].n);
  if (used < size)
    used += (size_t)snprintf(text + used, size - used, " %zu", form->run);
  return used;
}

static size_t moves_of(const clb__plan *plan) {
  clb__cursor cursor;
  const clb__move *move;
  size_t moves = 0;

  clb__cursor_init(&cursor, plan);
  for (; clb__cursor_peek(&cursor, &move); moves++)
    clb__cursor_take(&cursor, NULL);
  return moves;
}

void clb__plan_text(const clb__plan *plan, char *text, size_t size) {
  const clb__form *form = &plan->form;
  size_t bytes = plan->end - plan->start, per_chunk = plan->chunk, chunks;
  char extents[200], names[16];

  clb__plan_names(plan->kind, names, sizeof names);
  (void)extents_text(form, extents, sizeof extents);
  /* Whole rows go in a chunk where a row fits. */
  if (form->run > 0 && form->run < per_chunk)
    per_chunk -= per_chunk % form->run;
  chunks = plan->kind == CLB_PLAN_PACK
               ? moves_of(plan)
               : bytes / per_chunk + (bytes % per_chunk != 0);

  if (form->ndim == 0)
    (void)snprintf(text, size, "%s %zu bytes, %zu chunk%s", names, bytes,
                   chunks, chunks == 1 ? "" : "s");
  else
    (void)snprintf(text, size, "%s%s of pitch %td%s, %zu chunk%s", names,
                   extents, form->dim[form->ndim - 1].stride,
                   plan->kind == CLB_PLAN_GATHER
                       ? (plan->rects ? " by rects" : " by spans")
                       : "",
                   chunks, chunks == 1 ? "" : "s");
}
