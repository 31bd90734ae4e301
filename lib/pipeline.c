/*
 * pipeline.c - fills the parcels of pipeline.h.
 *
 * A piece, what one span has of one parcel, goes there by commands that are not
 * waited for where they need nothing but the parcel's block (a plain or
 * rectangular read, a kernel and a read through the block's scratch), else at
 * once.  What the program enqueued before is waited for once a context.
 */
#include "config.h"

#include "pipeline.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS 4 /* of a context at once */
#define AHEAD 3  /* being filled */
#define SMALLEST_BLOCK (2 * CLB__PAGE)    /* a smaller chunk is not used */
#define OWN_BLOCK ((size_t)64 << 10)      /* but this */
#define HOST_BLOCK ((size_t)1 << 20)      /* where no device is concerned */
#define MOVE_EVENTS 6                     /* most of one move */
#define FLAGS (CLB__MAY_BE_QUICK | CLB__INTO_BLOCK)

/* A command, or a few, under way to a parcel. */
typedef struct flight {
  clb__source source; /* retained */
  size_t span, start, length, link;
  unsigned kind;   /* of plan */
  unsigned events; /* in the block, after those of the flights before */
} flight;

typedef struct lane lane;

typedef struct cargo {
  clb__parcel parcel; /* first */
  lane *lane;
  clb__block *block;
  size_t scratch; /* bytes of the block's that are taken */
  flight flights[CLB__BLOCK_EVENTS];
  unsigned count;
} cargo;

/* Parcels whose blocks are of one context; or of none, for bytes that are on no
 * device. */
struct lane {
  clb_context *context;
  bool passed;     /* what was enqueued before has been waited for */
  size_t capacity; /* bytes of a parcel */
  unsigned most, made;
  clb__parcel *idle;
  size_t next;    /* cut to be looked at for the next of this lane's */
  unsigned turns; /* parcels that were begun */
};

/* Where a parcel begins. */
typedef struct cut {
  uint64_t at;
  size_t length, span;
  unsigned lane;
} cut;

struct clb__pipeline {
  clb__span *spans;
  size_t count;
  bool ordered;
  lane *lanes; /* the first is of no context */
  unsigned lane_count, turn;
  cut *cuts;
  size_t cut_count, cut_room, begun;
  clb__parcel *first, **last; /* being filled */
  unsigned filling;
};

/* --- Lanes ------------------------------------------------------------------ */

/* Of a span that has to be read from a device; else NULL. */
static clb_context *context_of(const clb__span *span) {
  return span->bytes != NULL && clb__bytes_on_device(span->bytes) &&
                 atomic_load(&((clb_bytes *)span->bytes)->data) == NULL
             ? span->bytes->source.u.device.context
             : NULL;
}

static bool uses_staging(const lane *l) {
  return l->context != NULL && l->context->chunk_size >= SMALLEST_BLOCK;
}

static void measure_lane(lane *l) {
  size_t blocks = BLOCKS;

  l->capacity = l->context == NULL ? HOST_BLOCK : OWN_BLOCK;
  if (uses_staging(l)) {
    /* A block may have to give up to a page for its alignment. */
    l->capacity =
        l->context->chunk_size / CLB__PAGE * CLB__PAGE - CLB__PAGE;
    if (blocks > l->context->staging_limit / l->context->chunk_size)
      blocks = l->context->staging_limit / l->context->chunk_size;
  }
  l->most = blocks > 0 ? (unsigned)blocks : 1;
}

static unsigned lane_of(const clb__pipeline *p, const clb_context *context) {
  unsigned i = 0;

  while (i < p->lane_count && p->lanes[i].context != context)
    i++;
  return i;
}

static clb_status find_lanes(clb__pipeline *p) {
  unsigned room = 1;
  size_t i;

  p->lanes = calloc(room, sizeof *p->lanes);
  p->lane_count = p->lanes != NULL;
  for (i = 0; i < p->count && p->lanes != NULL; i++) {
    clb_context *context = context_of(&p->spans[i]);
    lane *more;
    if (lane_of(p, context) < p->lane_count)
      continue;
    if (p->lane_count == room) {
      more = realloc(p->lanes, 2 * room * sizeof *more);
      if (more == NULL)
        break;
      p->lanes = more;
      room *= 2;
    }
    p->lanes[p->lane_count++] = (lane){.context = context};
  }
  if (p->lanes == NULL || i < p->count)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a pipeline");
  for (i = 0; i < p->lane_count; i++)
    measure_lane(&p->lanes[i]);
  return CLB_OK;
}

/* --- Cuts ------------------------------------------------------------------- */

static size_t length_of(const clb__span *span) {
  return span->end - span->start;
}

/* The lane of the first bytes from here on that are on a device. */
static unsigned choose_lane(const clb__pipeline *p, size_t i, uint64_t at) {
  for (; i < p->count && p->spans[i].at < at + HOST_BLOCK; i++) {
    unsigned found = lane_of(p, context_of(&p->spans[i]));
    if (found > 0 && found < p->lane_count)
      return found;
  }
  return 0;
}

static clb_status add_cut(clb__pipeline *p, const cut *one) {
  cut *more;

  if (p->cut_count == p->cut_room) {
    size_t room = p->cut_room == 0 ? 64 : 2 * p->cut_room;
    more = room < SIZE_MAX / sizeof *more
               ? realloc(p->cuts, room * sizeof *more)
               : NULL;
    if (more == NULL)
      return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a plan of %zu parcels",
                       room);
    p->cuts = more;
    p->cut_room = room;
  }
  p->cuts[p->cut_count++] = *one;
  return CLB_OK;
}

/* Makes cuts of all spans; i is the span that byte at is of. */
static clb_status make_cuts(clb__pipeline *p) {
  uint64_t at = p->count > 0 ? p->spans[0].at : 0;
  clb_status status = CLB_OK;
  size_t i = 0;

  while (i < p->count && status == CLB_OK) {
    cut one = {.at = at, .span = i, .lane = choose_lane(p, i, at)};
    size_t capacity = p->lanes[one.lane].capacity;
    while (i < p->count && p->spans[i].at <= at && one.length < capacity) {
      size_t left = (size_t)(p->spans[i].at + length_of(&p->spans[i]) - at);
      size_t piece =
          left < capacity - one.length ? left : capacity - one.length;
      one.length += piece;
      at += piece;
      i += piece == left;
    }
    status = add_cut(p, &one);
    if (i < p->count && p->spans[i].at > at)
      at = p->spans[i].at;
  }
  return status;
}

/* --- Memory of parcels ------------------------------------------------------ */

static clb__block *take_block(lane *l, bool must) {
  if (uses_staging(l))
    return clb__staging_take(l->context, must);
  return clb__staging_pageable(l->context, l->capacity + CLB__PAGE);
}

static void give_block(lane *l, clb__block *block) {
  if (l->context != NULL)
    clb__staging_give(l->context, block);
  else
    clb__block_free(block);
}

/* NULL with CLB_OK: there is none now. */
static clb_status take_cargo(lane *l, cargo **out) {
  size_t over;
  cargo *c;

  *out = (cargo *)l->idle;
  if (*out != NULL) {
    l->idle = (*out)->parcel.next;
    return CLB_OK;
  }
  if (l->made == l->most)
    return CLB_OK;
  c = calloc(1, sizeof *c);
  if (c == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a parcel");
  c->lane = l;
  c->block = take_block(l, l->made == 0);
  if (c->block == NULL) {
    free(c);
    return l->made == 0 ? CLB_OUT_OF_MEMORY : CLB_OK;
  }
  over = (uintptr_t)c->block->data % CLB__PAGE;
  c->parcel.data = c->block->data + (over == 0 ? 0 : CLB__PAGE - over);
  l->made++;
  *out = c;
  return CLB_OK;
}

/* --- Ends of pieces --------------------------------------------------------- */

static clb_status blame(const clb__span *span, clb_status status, size_t start,
                        size_t length) {
  if (status == CLB_OK)
    return CLB_OK;
  status = clb__bytes_blame(span->bytes, status, start, start + length);
  return clb__fail_prefix(status, "tensor \"%.100s\"", span->name);
}

/* Counts what a span has got; the whole of it is one access. */
static void count_piece(clb__span *span, clb_context *context, unsigned kind,
                        size_t length, uint64_t link) {
  clb__plan plan;
  clb__error before;

  span->filled += length;
  span->link += link;
  if (context == NULL || span->filled < length_of(span))
    return;
  clb__context_count(context, kind, span->filled, span->link);
  if (!clb__context_logs(context))
    return;
  clb__error_keep(&before);
  if (clb__bytes_choose(span->bytes, span->start, span->end, FLAGS, &plan) ==
      CLB_OK)
    clb__bytes_log(span->bytes, context, "", &plan, span->since);
  clb__error_put_back(&before);
}

/* Lets go of a flight's source; where a command's end was not seen its buffer
 * stays for as long as the command may run. */
static void end_flight(flight *f, const clb__block *block) {
  if (block->events > 0)
    clb__park_keep(f->source.u.device.context, f->source.u.device.mem,
                   block->event[block->events - 1]);
  f->source.ops->release(&f->source);
}

/* Which flight an event is of. */
static const flight *flight_of(const cargo *c, unsigned event) {
  const flight *f = c->flights;

  while (event >= f->events)
    event -= f++->events;
  return f;
}

/* Waits for the first so many flights. */
static clb_status retire(clb__pipeline *p, cargo *c, unsigned count) {
  unsigned events = 0, failed = 0, i;
  clb_status status;

  for (i = 0; i < count; i++)
    events += c->flights[i].events;
  status = clb__staging_wait_first(c->block, events, &failed);
  if (status != CLB_OK) {
    const flight *f = flight_of(c, failed);
    return blame(&p->spans[f->span], status, f->start, f->length);
  }
  for (i = 0; i < count; i++) {
    flight *f = &c->flights[i];
    count_piece(&p->spans[f->span], f->source.u.device.context, f->kind,
                f->length, f->link);
    f->source.ops->release(&f->source);
  }
  c->count -= count;
  memmove(c->flights, c->flights + count, c->count * sizeof *c->flights);
  return CLB_OK;
}

/* Waits for all, whatever has failed. */
static void abandon(cargo *c) {
  unsigned i;

  (void)clb__staging_wait(c->block);
  for (i = 0; i < c->count; i++)
    end_flight(&c->flights[i], c->block);
  c->count = 0;
}

/* --- Beginning pieces ------------------------------------------------------- */

/* Lets what was begun last run. */
static clb_status flush(cargo *c) {
  clb__port port = {.direction = CLB__GET};

  if (c->count == 0)
    return CLB_OK;
  port.source = &c->flights[c->count - 1].source;
  return port.source->ops->flush(&port, c->block);
}

/* Room for one more move, that takes so much of the scratch. */
static clb_status make_room(clb__pipeline *p, cargo *c, size_t scratch) {
  bool full = c->scratch + scratch > c->block->size;
  clb_status status;

  if (!full && c->count < CLB__BLOCK_EVENTS &&
      c->block->events + MOVE_EVENTS <= CLB__BLOCK_EVENTS)
    return CLB_OK;
  status = flush(c);
  if (status != CLB_OK)
    return status;
  if (full)
    c->scratch = 0;
  /* Half of the others go on meanwhile. */
  return retire(p, c, full || c->count < 2 ? c->count : c->count / 2);
}

/* Whether a piece can be begun by commands that need nothing but the block. */
static bool can_fly(const cargo *c, const clb__access *access,
                    bool *through_scratch) {
  const clb__source *source = &access->from.source;
  const clb__plan *plan = &access->plan;
  bool flat = clb__form_contiguous(&plan->form);

  if (access->from.lent || !clb__source_is_device(source) ||
      plan->kind == CLB_PLAN_MAP || (plan->kind == CLB_PLAN_GATHER && !flat))
    return false;
  *through_scratch = (plan->kind == CLB_PLAN_PACK && !flat) ||
                     (source->flags & CLB__HOST_CANNOT_READ) != 0;
  /* The block's scratch is its own context's; and of what a kernel works on
   * beside the buffer a block has one. */
  return !*through_scratch ||
         (source->u.device.context == c->lane->context &&
          !(source->flags & CLB__KERNEL_CANNOT_READ));
}

static clb_status add_flight(cargo *c, const flight *one) {
  const flight *last = c->count > 0 ? &c->flights[c->count - 1] : NULL;
  clb_status status = CLB_OK;

  if (last != NULL &&
      last->source.u.device.context != one->source.u.device.context)
    status = flush(c);
  if (status == CLB_OK)
    status = one->source.ops->retain(&one->source);
  if (status == CLB_OK)
    c->flights[c->count++] = *one;
  return status;
}

static clb_status start_move(cargo *c, clb__access *access,
                             const clb__plan *part, unsigned char *data,
                             const clb__move *move, const flight *one) {
  unsigned before = c->block->events;
  clb_status status = add_flight(c, one);

  if (status == CLB_OK) {
    status = access->from.source.ops->start(
        &access->port, part, c->block, c->scratch,
        data + (move->start - part->start), move);
    c->flights[c->count - 1].events = c->block->events - before;
  }
  return status;
}

/* Begins a piece: the moves of a part of an access, to data. */
static clb_status fly(clb__pipeline *p, cargo *c, size_t span,
                      clb__access *access, const clb__plan *part,
                      bool through_scratch, unsigned char *data) {
  clb__cursor cursor;
  const clb__move *next;
  clb_status status = CLB_OK;

  clb__cursor_init(&cursor, part);
  while (status == CLB_OK && clb__cursor_peek(&cursor, &next)) {
    clb__move move = *next;
    size_t scratch = through_scratch ? (move.bytes + 63) / 64 * 64 : 0;
    flight one = {.source = access->from.source,
                  .span = span,
                  .start = move.start - access->from.window,
                  .length = move.length,
                  .link = move.bytes,
                  .kind = access->plan.kind};
    clb__cursor_take(&cursor, NULL);
    status = make_room(p, c, scratch);
    if (status != CLB_OK)
      return status; /* of a piece before this one */
    status = blame(&p->spans[span],
                   start_move(c, access, part, data, &move, &one), one.start,
                   one.length);
    c->scratch += scratch;
  }
  return status;
}

/* Gets a piece at once. */
static clb_status get(clb__span *span, clb__access *access, size_t start,
                      size_t length, unsigned char *data) {
  const clb__source *source = &access->from.source;
  const clb__target target = {.memory = data};
  clb_status status =
      clb__access_part(access, start, start + length, &target);

  if (status == CLB_OK)
    status = clb__bytes_blame(span->bytes, source->ops->close(&access->port),
                              start, start + length);
  if (status != CLB_OK)
    return clb__fail_prefix(status, "tensor \"%.100s\"", span->name);
  count_piece(span,
              clb__source_is_device(source) ? source->u.device.context : NULL,
              access->plan.kind, length, access->link);
  return CLB_OK;
}

/* Opens the access of a whole span; what the program enqueued before is waited
 * for once a context. */
static clb_status open_access(clb__pipeline *p, const clb__span *span,
                              clb__access *access) {
  const clb__source *source = &access->from.source;
  clb_status status = clb__access_look(access, span->bytes);
  unsigned known = p->lane_count;

  if (status != CLB_OK)
    return status;
  if (clb__source_is_device(source) && source->u.device.after == NULL)
    known = lane_of(p, source->u.device.context);
  access->port.passed = known < p->lane_count && p->lanes[known].passed;
  status = clb__access_open(access, span->start, span->end, FLAGS);
  if (status == CLB_OK && known < p->lane_count)
    p->lanes[known].passed = true;
  return status;
}

/* Bytes [start, start + length) of a span's handle to data, in the parcel. */
static clb_status fill_piece(clb__pipeline *p, cargo *c, size_t index,
                             size_t start, size_t length,
                             unsigned char *data) {
  clb__span *span = &p->spans[index];
  bool through_scratch;
  clb__access access;
  clb__plan part;
  clb_status status = open_access(p, span, &access);

  if (status != CLB_OK)
    return clb__fail_prefix(status, "tensor \"%.100s\"", span->name);
  if (can_fly(c, &access, &through_scratch)) {
    part = access.plan;
    part.start = access.from.window + start;
    part.end = part.start + length;
    status = fly(p, c, index, &access, &part, through_scratch, data);
  } else {
    status = get(span, &access, start, length, data);
  }
  clb__origin_end(&access.from);
  return status;
}

/* --- Parcels ---------------------------------------------------------------- */

/* What a span has of a parcel, from its byte start on. */
static clb_status fill_from(clb__pipeline *p, cargo *c, size_t index,
                            size_t start, size_t length, unsigned char *data) {
  clb__span *span = &p->spans[index];
  const unsigned char *there = span->data;

  if (span->bytes != NULL)
    there = atomic_load(&span->bytes->data);
  if (span->since == 0)
    span->since = clb__seconds();
  if (there == NULL)
    return fill_piece(p, c, index, start, length, data);
  memcpy(data, there + start, length);
  span->filled += length;
  return CLB_OK;
}

static clb_status fill(clb__pipeline *p, cargo *c) {
  clb__parcel *parcel = &c->parcel;
  uint64_t at = parcel->at, end = parcel->at + parcel->length;
  clb_status status = CLB_OK;
  size_t i;

  for (i = parcel->span; at < end && status == CLB_OK; i++) {
    const clb__span *span = &p->spans[i];
    size_t skipped = (size_t)(at - span->at);
    size_t left = length_of(span) - skipped;
    size_t piece = end - at < left ? (size_t)(end - at) : left;
    status = fill_from(p, c, i, span->start + skipped, piece,
                       parcel->data + (at - parcel->at));
    at += piece;
  }
  return status == CLB_OK ? flush(c) : status;
}

/* A lane that has parcels to begin, the one after the last; or that of the next
 * in order. */
static lane *next_lane(clb__pipeline *p, unsigned tried) {
  lane *l = &p->lanes[(p->turn + tried) % p->lane_count];

  if (p->ordered) {
    l = &p->lanes[p->cuts[p->begun].lane];
    l->next = p->begun;
    return l;
  }
  while (l->next < p->cut_count &&
         &p->lanes[p->cuts[l->next].lane] != l)
    l->next++;
  return l->next < p->cut_count ? l : NULL;
}

/* Begins one parcel, if there is memory. */
static clb_status begin(clb__pipeline *p, bool *begun) {
  unsigned tries = p->ordered ? 1 : p->lane_count, tried;
  clb_status status = CLB_OK;
  cargo *c = NULL;
  lane *l = NULL;

  *begun = false;
  for (tried = 0; tried < tries && c == NULL && status == CLB_OK; tried++) {
    l = next_lane(p, tried);
    if (l != NULL)
      status = take_cargo(l, &c);
  }
  if (c == NULL)
    return status;
  p->turn += tried;
  p->begun++;
  c->parcel.at = p->cuts[l->next].at;
  c->parcel.length = p->cuts[l->next].length;
  c->parcel.span = p->cuts[l->next].span;
  l->next++;
  c->block->lane = l->turns++ % 2;
  c->scratch = 0;
  c->parcel.next = NULL;
  *p->last = &c->parcel;
  p->last = &c->parcel.next;
  p->filling++;
  *begun = true;
  return fill(p, c);
}

static cargo *take_first(clb__pipeline *p) {
  cargo *c = (cargo *)p->first;

  if (c == NULL)
    return NULL;
  p->first = c->parcel.next;
  if (p->first == NULL)
    p->last = &p->first;
  p->filling--;
  return c;
}

clb_status clb__pipeline_next(clb__pipeline *p, clb__parcel **out) {
  bool begun = true;
  clb_status status = CLB_OK;
  cargo *c = (cargo *)p->first;

  *out = NULL;
  while (begun && p->filling < AHEAD && !clb__pipeline_over(p) &&
         status == CLB_OK)
    status = begin(p, &begun);
  c = (cargo *)p->first;
  if (status == CLB_OK && c != NULL)
    status = retire(p, c, c->count);
  if (status == CLB_OK && c != NULL)
    *out = &take_first(p)->parcel;
  return status;
}

bool clb__pipeline_over(const clb__pipeline *p) {
  return p->begun == p->cut_count;
}

void clb__pipeline_give(clb__pipeline *p, clb__parcel *parcel) {
  lane *l = ((cargo *)parcel)->lane;

  (void)p;
  parcel->next = l->idle;
  l->idle = parcel;
}

/* --- From opening to closing ------------------------------------------------ */

clb_status clb__pipeline_open(clb__span *spans, size_t count, bool ordered,
                              clb__pipeline **out) {
  clb__pipeline *p = calloc(1, sizeof *p);
  clb_status status;

  if (p == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a pipeline");
  p->spans = spans;
  p->count = count;
  p->ordered = ordered;
  p->last = &p->first;
  status = find_lanes(p);
  if (status == CLB_OK)
    status = make_cuts(p);
  if (status == CLB_OK)
    *out = p;
  else
    clb__pipeline_close(p);
  return status;
}

size_t clb__pipeline_parcels(const clb__pipeline *p) {
  return p->cut_count;
}

uint64_t clb__pipeline_memory(const clb__pipeline *p) {
  uint64_t bytes = 0;
  unsigned i;
  size_t cuts;

  for (i = 0; i < p->lane_count; i++) {
    const lane *l = &p->lanes[i];
    unsigned blocks = 0;
    for (cuts = 0; cuts < p->cut_count && blocks < l->most; cuts++)
      blocks += p->cuts[cuts].lane == i;
    bytes += blocks * (uint64_t)(l->capacity + CLB__PAGE);
  }
  return bytes;
}

static void free_cargo(clb__parcel *parcel) {
  cargo *c = (cargo *)parcel;

  give_block(c->lane, c->block);
  free(c);
}

void clb__pipeline_close(clb__pipeline *p) {
  clb__error before;
  cargo *c;
  unsigned i;

  clb__error_keep(&before);
  while ((c = take_first(p)) != NULL) {
    abandon(c);
    free_cargo(&c->parcel);
  }
  for (i = 0; i < p->lane_count; i++)
    for (clb__parcel *next, *parcel = p->lanes[i].idle; parcel != NULL;
         parcel = next) {
      next = parcel->next;
      free_cargo(parcel);
    }
  clb__error_put_back(&before);
  free(p->cuts);
  free(p->lanes);
  free(p);
}
