/*
 * transfer.c - the get half of transfer.h: source to host.
 *
 * While the block at the ring's tail is consumed, those behind it are being
 * filled.  Two cursors walk the same moves: one starts them, one says what to
 * do with the bytes.
 */
#include "config.h"

#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define RING 4

typedef struct ring_slot {
  clb__block *block;
  unsigned moves;
} ring_slot;

typedef struct getting {
  clb__port *port;
  const clb__plan *plan;
  const clb__target *target;
  clb__cursor ahead, behind;
  ring_slot ring[RING];
  unsigned tail, count;
  unsigned char *box; /* for a sink: a box that is picked together */
  uint64_t link;
} getting;

static clb_status to_sink(const clb__target *target, const void *data,
                          size_t length) {
  if (target->sink(data, length, target->user) != 0)
    return clb__fail(CLB_CANCELLED, "stopped by the sink");
  return CLB_OK;
}

/* A run of logical bytes that lie in order. */
static clb_status deliver(getting *get, size_t start, const unsigned char *data,
                          size_t length) {
  if (length == 0)
    return CLB_OK;
  if (get->target->memory == NULL)
    return to_sink(get->target, data, length);
  memcpy(get->target->memory + (start - get->plan->start), data, length);
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

static clb_status start_move(getting *get, clb__block *block, unsigned char *data,
                             const clb__move *move) {
  clb_status status = get->port->source->ops->start(get->port, block, data,
                                                    move);
  if (status == CLB_OK)
    get->link += move->bytes;
  return status;
}

/* Starts as many moves as fit into the slot's block. */
static clb_status fill(getting *get, ring_slot *slot) {
  const clb__move *move;
  size_t at = 0;

  slot->moves = 0;
  while (slot->moves < CLB__BLOCK_MOVES &&
         clb__cursor_peek(&get->ahead, &move) &&
         at + move->bytes <= slot->block->size) {
    clb_status status =
        start_move(get, slot->block, slot->block->data + at, move);
    if (status != CLB_OK)
      return status;
    at += clb__placed(get->plan, move->bytes);
    clb__cursor_take(&get->ahead, NULL);
    slot->moves++;
  }
  return get->port->source->ops->flush(get->port);
}

/* Takes blocks and starts moves while there is room in the ring. */
static clb_status fill_ring(getting *get) {
  const clb__source_ops *ops = get->port->source->ops;
  const clb__move *move;

  while (get->count < RING && clb__cursor_peek(&get->ahead, &move)) {
    ring_slot *slot = &get->ring[(get->tail + get->count) % RING];
    clb_status status;
    if (slot->block == NULL)
      slot->block = ops->take(get->port, get->count == 0);
    if (slot->block == NULL)
      return get->count == 0 ? CLB_OUT_OF_MEMORY : CLB_OK;
    get->count++; /* what was started is waited for, whatever happens */
    status = fill(get, slot);
    if (status != CLB_OK)
      return status;
  }
  return CLB_OK;
}

/* Passes the bytes of the oldest block on. */
static clb_status consume(getting *get, const ring_slot *slot) {
  const unsigned char *data = slot->block->data;
  size_t at = 0, run_start = 0, run_at = 0, run = 0;
  clb_status status = CLB_OK;
  unsigned i;

  for (i = 0; i < slot->moves && status == CLB_OK; i++) {
    const clb__move *move;
    clb__pick pick;
    unsigned char *box;

    (void)clb__cursor_peek(&get->behind, &move);
    clb__cursor_take(&get->behind, &pick);
    if (pick.same && run > 0 && run_at + run == at) {
      run += move->bytes;
    } else {
      status = deliver(get, run_start, data + run_at, run);
      run_start = move->start;
      run_at = at;
      run = pick.same ? move->bytes : 0;
    }
    if (status == CLB_OK && !pick.same) {
      if ((box = box_of(get, move->start)) == NULL)
        return CLB_OUT_OF_MEMORY;
      clb__pick_out(&pick, box, data + at);
      if (move->last && get->target->memory == NULL)
        status = to_sink(get->target, box, move->length);
    }
    at += clb__placed(get->plan, move->bytes);
  }
  return status == CLB_OK ? deliver(get, run_start, data + run_at, run)
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
    (void)ops->wait(get->port, get->ring[i].block);
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

/* Straight to the destination. */
static clb_status get_direct(getting *get) {
  const clb__move *move;
  clb_status status = CLB_OK;

  while (status == CLB_OK && clb__cursor_peek(&get->ahead, &move)) {
    status = start_move(get, NULL,
                        get->target->memory + (move->start - get->plan->start),
                        move);
    clb__cursor_take(&get->ahead, NULL);
  }
  return status;
}

/* One piece of a mapped region; origin is the mapping's first byte. */
static clb_status get_mapped_piece(getting *get, const unsigned char *mapping,
                                   uint64_t first, size_t at, clb__form *piece) {
  const unsigned char *src = mapping + (piece->origin - first);
  clb__axis axis[CLB__MAX_DIMS];
  unsigned char *box;
  unsigned d;

  get->link += clb__form_length(piece);
  if (piece->ndim == 0)
    return deliver(get, at, src, piece->run);
  for (d = 0; d < piece->ndim; d++)
    axis[d] = (clb__axis){piece->dim[d].n, piece->dim[d].stride,
                          (ptrdiff_t)piece->size[d + 1]};
  if ((box = box_of(get, at)) == NULL)
    return CLB_OUT_OF_MEMORY;
  clb__copy_strided(box, src, piece->ndim, axis, piece->run);
  return get->target->memory != NULL
             ? CLB_OK
             : to_sink(get->target, box, clb__form_length(piece));
}

/* Out of a mapping. */
static clb_status get_mapped(getting *get) {
  const clb__source_ops *ops = get->port->source->ops;
  const clb__plan *plan = get->plan;
  size_t at = plan->start;
  uint64_t first, bytes;
  unsigned char *mapping;
  clb_status status;
  clb__error cause;

  clb__form_span(&plan->form, &first, &bytes);
  if (plan->form.ndim == 0) { /* only what is asked for */
    first += plan->start;
    bytes = plan->end - plan->start;
  }
  status = ops->map(get->port, first, (size_t)bytes, &mapping);
  if (status != CLB_OK)
    return status;
  while (status == CLB_OK && at < plan->end) {
    size_t limit = plan->end - at;
    clb__form piece;
    if (limit > plan->chunk && get->target->memory == NULL)
      limit = plan->chunk;
    clb__form_box(&plan->form, at, limit, CLB__MAX_DIMS, &piece);
    status = get_mapped_piece(get, mapping, first, at, &piece);
    at += clb__form_length(&piece);
  }
  clb__error_save(&cause, status);
  if (status == CLB_OK)
    status = ops->unmap(get->port);
  else if (ops->unmap(get->port) != CLB_OK)
    (void)clb__error_restore(&cause);
  free(get->box);
  return status;
}

clb_status clb__transfer_get(clb__port *port, const clb__plan *plan,
                             const clb__target *target, uint64_t *link) {
  getting get = {.port = port, .plan = plan, .target = target};
  clb_status status;

  clb__cursor_init(&get.ahead, plan);
  clb__cursor_init(&get.behind, plan);
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
