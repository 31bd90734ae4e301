/*
 * transfer.c - the get half of transfer.h: source to host.
 *
 * While the block at the ring's tail is consumed, those behind it are being
 * filled.  Two cursors walk the same moves: one starts them, one says what to
 * do with the bytes.  Bytes that go to memory are copied there by the crew
 * while the next block is waited for; where the source can reach that memory
 * itself a block only keeps the events.
 */
#include "config.h"

#include "sheet.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define RING 4


typedef struct ring_slot {
  clb__block *block;
  unsigned moves;
  /* A copy out of the block that may be under way: */
  bool copying;
  clb__batch batch;
  unsigned char *to;
  const unsigned char *from;
  size_t length, piece;
} ring_slot;

typedef struct getting {
  clb__port *port;
  const clb__plan *plan;
  const clb__target *target;
  clb__cursor ahead, behind;
  ring_slot ring[RING];
  unsigned tail, count;
  unsigned char *box; /* for a sink: a box that is picked together */
  bool straight;      /* moves go to the target's memory, */
  bool bare;          /* and need no block but for their events */
  unsigned helpers;   /* threads beside this one */
  uint64_t link;
} getting;

/* --- Copies by several threads ---------------------------------------------- */

static void copy_piece(void *user, size_t index) {
  const ring_slot *slot = user;
  size_t at = index * slot->piece, left = slot->length - at;

  memcpy(slot->to + at, slot->from + at,
         left < slot->piece ? left : slot->piece);
}

/* Copies out of the slot's block; all but the last copy is there when it
 * returns. */
static void copy_out(const getting *get, ring_slot *slot, unsigned char *to,
                     const unsigned char *from, size_t length) {
  if (slot->copying)
    clb__crew_finish(&slot->batch);
  slot->copying = false;
  if (length <= CLB__SMALL_COPY || get->helpers == 0) {
    memcpy(to, from, length);
    return;
  }
  slot->to = to;
  slot->from = from;
  slot->length = length;
  slot->batch.piece = copy_piece;
  slot->batch.user = slot;
  slot->piece = clb__piece(get->target->fresh);
  slot->batch.pieces = (length + slot->piece - 1) / slot->piece;
  slot->batch.helpers = get->helpers;
  clb__crew_post(&slot->batch);
  slot->copying = true;
}

static void end_copy(ring_slot *slot) {
  if (slot->copying)
    clb__crew_finish(&slot->batch);
  slot->copying = false;
}

/* A pick by all threads, each with parts of its own. */
typedef struct picking {
  const clb__pick *pick;
  unsigned char *box;
  const unsigned char *block;
  size_t parts;
} picking;

static void pick_part(void *user, size_t index) {
  const picking *all = user;
  clb__pick part;
  ptrdiff_t from;

  clb__pick_part(all->pick, all->parts, index, &part, &from);
  clb__pick_out(&part, all->box, all->block + from);
}

static void pick_out(const getting *get, const clb__pick *pick,
                     unsigned char *box, const unsigned char *block) {
  picking all = {pick, box, block, 1};
  clb__batch batch = {.piece = pick_part, .user = &all};

  if (get->helpers > 0 && clb__pick_bytes(pick) > CLB__SMALL_COPY) {
    all.parts = clb__pick_parts(pick, 2 * (get->helpers + 1));
    batch.helpers = get->helpers;
  }
  batch.pieces = all.parts;
  clb__crew_post(&batch);
  clb__crew_finish(&batch);
}

/* --- Through blocks --------------------------------------------------------- */

static clb_status to_sink(const clb__target *target, const void *data,
                          size_t length) {
  if (target->sink(data, length, target->user) != 0)
    return clb__fail(CLB_CANCELLED, "stopped by the sink");
  return CLB_OK;
}

/* A run of logical bytes that lie in order. */
static clb_status deliver(getting *get, ring_slot *slot, size_t start,
                          const unsigned char *data, size_t length) {
  if (length == 0)
    return CLB_OK;
  if (get->target->memory == NULL)
    return to_sink(get->target, data, length);
  copy_out(get, slot, get->target->memory + (start - get->plan->start), data,
           length);
  return CLB_OK;
}

/* Where the bytes of a box are picked together. */
static unsigned char *box_of(getting *get, size_t start) {
  if (get->target->memory != NULL)
    return get->target->memory + (start - get->plan->start);
  if (get->box == NULL && (get->box = malloc(get->plan->chunk)) == NULL)
    (void)clb__fail(CLB_OUT_OF_MEMORY, "no memory for a chunk of %zu bytes",
                    get->plan->chunk);
  return get->box;
}

static clb_status start_move(getting *get, clb__block *block, size_t at,
                             const clb__move *move) {
  unsigned char *data =
      get->straight ? get->target->memory + (move->start - get->plan->start)
                    : block->data + at;
  clb_status status = get->port->source->ops->start(get->port, get->plan, block,
                                                    at, data, move);
  if (status == CLB_OK)
    get->link += move->bytes;
  return status;
}

/* Starts as many moves as fit into the slot's block; of those that a kernel
 * packs, which begin where a unit of its does, one. */
static clb_status fill(getting *get, ring_slot *slot) {
  const clb__move *move;
  size_t at = 0;

  slot->moves = 0;
  while (slot->moves < CLB__BLOCK_MOVES &&
         clb__cursor_peek(&get->ahead, &move) &&
         (slot->moves == 0 || get->plan->kind != CLB_PLAN_PACK) &&
         at + move->bytes <= slot->block->size) {
    clb_status status = start_move(get, slot->block, at, move);
    if (status != CLB_OK)
      return status;
    at += clb__placed(get->plan, move->bytes);
    clb__cursor_take(&get->ahead, NULL);
    slot->moves++;
  }
  return get->port->source->ops->flush(get->port, slot->block);
}

/* Takes blocks and starts moves while there is room in the ring. */
static clb_status fill_ring(getting *get) {
  const clb__source_ops *ops = get->port->source->ops;
  const clb__move *move;

  while (get->count < RING && clb__cursor_peek(&get->ahead, &move)) {
    ring_slot *slot = &get->ring[(get->tail + get->count) % RING];
    clb_status status;
    if (slot->block == NULL)
      slot->block = ops->take(get->port, get->bare, get->count == 0);
    if (slot->block == NULL)
      return get->count == 0 ? CLB_OUT_OF_MEMORY : CLB_OK;
    end_copy(slot);
    slot->block->lane = (get->tail + get->count) % 2;
    get->count++; /* what was started is waited for, whatever happens */
    status = fill(get, slot);
    if (status != CLB_OK)
      return status;
  }
  return CLB_OK;
}

/* Passes the bytes of the oldest block on. */
static clb_status consume(getting *get, ring_slot *slot) {
  const unsigned char *data = slot->block->data;
  size_t at = 0, run_start = 0, run_at = 0, run = 0;
  clb_status status = CLB_OK;
  unsigned i;

  if (get->straight)
    return CLB_OK;
  for (i = 0; i < slot->moves && status == CLB_OK; i++) {
    const clb__move *move;
    clb__pick pick;
    unsigned char *box;

    (void)clb__cursor_peek(&get->behind, &move);
    clb__cursor_take(&get->behind, &pick);
    if (pick.same && run > 0 && run_at + run == at) {
      run += move->bytes;
    } else {
      status = deliver(get, slot, run_start, data + run_at, run);
      run_start = move->start;
      run_at = at;
      run = pick.same ? move->bytes : 0;
    }
    if (status == CLB_OK && !pick.same) {
      if ((box = box_of(get, move->start)) == NULL)
        return CLB_OUT_OF_MEMORY;
      pick_out(get, &pick, box, data + at);
      if (move->last && get->target->memory == NULL)
        status = to_sink(get->target, box, move->length);
    }
    at += clb__placed(get->plan, move->bytes);
  }
  return status == CLB_OK ? deliver(get, slot, run_start, data + run_at, run)
                          : status;
}

/* Waits for what is in flight and gives all blocks back; the error that led
 * here stays. */
static void drain(getting *get, clb_status status) {
  const clb__source_ops *ops = get->port->source->ops;
  clb__error cause;
  unsigned i;

  clb__error_save(&cause, status);
  for (i = 0; i < RING; i++) {
    if (get->ring[i].block == NULL)
      continue;
    end_copy(&get->ring[i]);
    (void)ops->wait(get->port, get->ring[i].block);
    if (get->straight) /* whose memory cannot be set aside: wait longer */
      (void)clb__staging_settle(get->ring[i].block);
    ops->give(get->port, get->ring[i].block);
  }
  if (status != CLB_OK)
    (void)clb__error_restore(&cause);
  free(get->box);
}

/* Through blocks. */
static clb_status get_staged(getting *get) {
  clb_status status;

  do {
    ring_slot *slot = &get->ring[get->tail];
    status = fill_ring(get);
    if (status != CLB_OK || get->count == 0)
      break;
    status = get->port->source->ops->wait(get->port, slot->block);
    if (status == CLB_OK)
      status = consume(get, slot);
    if (status != CLB_OK)
      break;
    get->tail = (get->tail + 1) % RING;
    get->count--;
  } while (status == CLB_OK);
  drain(get, status);
  return status;
}

/* --- By a source that needs no block ----------------------------------------- */

#define AT_ONCE 32

/* Moves that several threads make, straight to the destination. */
typedef struct making {
  getting *get;
  clb__move move[AT_ONCE];
  pthread_mutex_t lock;
  size_t failed; /* the first that did; the number of moves if none */
  clb_status status;
  clb__error why;
} making;

static void make_move(void *user, size_t index) {
  making *all = user;
  const getting *get = all->get;
  const clb__move *move = &all->move[index];
  unsigned char *data =
      get->target->memory + (move->start - get->plan->start);
  clb_status status = get->port->source->ops->start(get->port, get->plan, NULL,
                                                    0, data, move);

  if (status == CLB_OK)
    return;
  pthread_mutex_lock(&all->lock);
  if (index < all->failed) {
    all->failed = index;
    all->status = status;
    clb__error_save(&all->why, status);
  }
  pthread_mutex_unlock(&all->lock);
}

static clb_status make_moves(making *all) {
  clb__batch batch = {.piece = make_move, .user = all};
  getting *get = all->get;
  const clb__move *move;

  while (batch.pieces < AT_ONCE && clb__cursor_peek(&get->ahead, &move)) {
    all->move[batch.pieces++] = *move;
    get->link += move->bytes;
    clb__cursor_take(&get->ahead, NULL);
  }
  all->failed = batch.pieces;
  all->status = CLB_OK;
  batch.helpers = batch.pieces > 1 ? get->helpers : 0;
  clb__crew_post(&batch);
  clb__crew_finish(&batch);
  return all->status == CLB_OK ? CLB_OK : clb__error_restore(&all->why);
}

static clb_status get_direct(getting *get) {
  making all = {.get = get};
  const clb__move *move;
  clb_status status = CLB_OK;

  pthread_mutex_init(&all.lock, NULL);
  while (status == CLB_OK && clb__cursor_peek(&get->ahead, &move))
    status = make_moves(&all);
  pthread_mutex_destroy(&all.lock);
  return status;
}

/* --- Out of a mapping ------------------------------------------------------- */

/* The next part of a mapped form: all that is left where it goes to memory, a
 * chunk where it goes to a sink. */
static clb_status get_mapped_part(getting *get, clb__sheet *all) {
  const clb__target *target = get->target;
  size_t length = all->end - all->start;

  get->link += length;
  if (target->memory == NULL && all->form->ndim == 0)
    return to_sink(target,
                   all->mapping + (all->form->origin + all->start - all->first),
                   length);
  if ((all->box = box_of(get, all->start)) == NULL)
    return CLB_OUT_OF_MEMORY;
  clb__sheet_copy(all);
  return target->memory != NULL ? CLB_OK : to_sink(target, all->box, length);
}

static clb_status get_mapped(getting *get) {
  const clb__source_ops *ops = get->port->source->ops;
  const clb__plan *plan = get->plan;
  clb__sheet all = {.form = &plan->form, .start = plan->start,
                    .helpers = get->helpers, .fresh = get->target->fresh};
  uint64_t bytes;
  clb_status status;
  clb__error cause;

  clb__form_span(&plan->form, &all.first, &bytes);
  if (plan->form.ndim == 0) { /* only what is asked for */
    all.first += plan->start;
    bytes = plan->end - plan->start;
  }
  status = ops->map(get->port, all.first, (size_t)bytes, &all.mapping);
  if (status != CLB_OK)
    return status;
  for (; status == CLB_OK && all.start < plan->end; all.start = all.end) {
    all.end = plan->end;
    if (get->target->memory == NULL && all.end - all.start > plan->chunk)
      all.end = all.start + plan->chunk;
    status = get_mapped_part(get, &all);
  }
  clb__error_save(&cause, status);
  if (status == CLB_OK)
    status = ops->unmap(get->port);
  else if (ops->unmap(get->port) != CLB_OK)
    (void)clb__error_restore(&cause);
  free(get->box);
  return status;
}

/* Whether moves may go to the target's memory without a block in between. */
static bool goes_straight(const getting *get) {
  const clb__source_ops *ops = get->port->source->ops;

  return get->target->reachable && get->plan->kind != CLB_PLAN_GATHER &&
         get->plan->kind != CLB_PLAN_MAP &&
         ops->reaches != NULL &&
         ops->reaches(get->port, get->target->memory,
                      get->plan->end - get->plan->start);
}

clb_status clb__transfer_get(clb__port *port, const clb__plan *plan,
                             const clb__target *target, uint64_t *link) {
  getting get = {.port = port, .plan = plan, .target = target};
  clb_status status;
  size_t few; /* bytes that one thread moves as fast as it can be helped */

  clb__cursor_init(&get.ahead, plan);
  clb__cursor_init(&get.behind, plan);
  get.straight = goes_straight(&get);
  get.bare = get.straight && plan->kind != CLB_PLAN_PACK;
  few = port->source->ops->direct ? AT_ONCE / 4 * port->source->ops->chunk
                                  : CLB__SMALL_COPY;
  if (plan->end - plan->start > few && !get.straight &&
      port->source->ops->helpers != NULL)
    get.helpers = port->source->ops->helpers(port);
  if (plan->kind == CLB_PLAN_MAP)
    status = get_mapped(&get);
  else if (port->source->ops->direct && target->memory != NULL &&
           plan->kind != CLB_PLAN_GATHER)
    status = get_direct(&get);
  else
    status = get_staged(&get);
  *link = get.link;
  return status;
}
