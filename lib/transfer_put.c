/*
 * transfer_put.c - the put half of transfer.h: host to source.
 *
 * The bytes of a block are pulled while those before it are on their way.  No
 * byte between the elements is written: moves are runs and rectangles, never
 * spans.
 */
#include "config.h"

#include "sheet.h"
#include "transfer.h"

#include <stdlib.h>

#define RING 4

typedef struct putting {
  clb__port *port;
  const clb__plan *plan;
  const clb__supply *supply;
  unsigned helpers; /* threads beside this one */
  bool straight;    /* moves come from the supply's memory, */
  bool bare;        /* and need no block but for their events */
  clb__cursor cursor;
  clb__block *ring[RING];
  unsigned char *box;      /* room for one that is pulled */
  const unsigned char *of; /* the box whose moves are being started */
} putting;

static clb_status supply_to(const putting *put, size_t start, size_t length,
                            unsigned char *data) {
  const clb__supply *supply = put->supply;

  if (supply->memory == NULL)
    return supply->pull(supply->user, start, length, data);
  clb__crew_copy(put->helpers, data, supply->memory + start, length);
  return CLB_OK;
}

/* A box, where it is or in memory of ours. */
static clb_status find_box(putting *put, size_t start, size_t length,
                           const unsigned char **data) {
  if (put->supply->memory != NULL) {
    *data = put->supply->memory + start;
    return CLB_OK;
  }
  if (put->box == NULL && (put->box = malloc(put->plan->chunk)) == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for a chunk of %zu bytes",
                     put->plan->chunk);
  *data = put->box;
  return supply_to(put, start, length, put->box);
}

/* The bytes of the next move, into a block. */
static clb_status arrange(putting *put, const clb__move *move, const clb__pick *pick,
                          unsigned char *data) {
  clb_status status = CLB_OK;

  if (pick->same)
    return supply_to(put, move->start, move->length, data);
  if (move->first)
    status = find_box(put, move->start, move->length, &put->of);
  if (status == CLB_OK)
    clb__pick_in(pick, put->of, data);
  return status;
}

static clb_status fill(putting *put, clb__block *block) {
  const clb__source_ops *ops = put->port->source->ops;
  const clb__move *next;
  unsigned moves = 0;
  size_t at = 0;

  while (moves < CLB__BLOCK_MOVES && clb__cursor_peek(&put->cursor, &next) &&
         (moves == 0 || put->plan->kind != CLB_PLAN_PACK) &&
         at + next->bytes <= block->size) {
    clb__move move = *next;
    clb__pick pick;
    unsigned char *data = block->data + at;
    clb_status status = CLB_OK;

    clb__cursor_take(&put->cursor, &pick);
    if (put->straight) /* which a write only reads */
      data = (unsigned char *)put->supply->memory + move.start;
    else
      status = arrange(put, &move, &pick, data);
    if (status == CLB_OK)
      status = ops->start(put->port, put->plan, block, at, data, &move);
    if (status != CLB_OK)
      return status;
    at += clb__placed(put->plan, move.bytes);
    moves++;
  }
  return ops->flush(put->port, block);
}

/* A block of the ring whose bytes are on their way no more: the next one, or
 * the first again where no other is to be had. */
static clb_status next_block(putting *put, unsigned *turn, clb__block **out) {
  const clb__source_ops *ops = put->port->source->ops;
  clb__block **block = &put->ring[*turn % RING];

  if (*block == NULL)
    *block = ops->take(put->port, put->bare, *turn == 0);
  if (*block == NULL && *turn > 0) {
    *turn = 0;
    block = &put->ring[0];
  }
  if (*block == NULL)
    return CLB_OUT_OF_MEMORY;
  (*block)->lane = *turn % 2;
  ++*turn;
  *out = *block;
  return ops->wait(put->port, *block);
}

/* Waits for all that is in flight; the first cause counts. */
static clb_status finish(putting *put, clb_status status) {
  const clb__source_ops *ops = put->port->source->ops;
  clb__error cause;
  unsigned i;

  clb__error_save(&cause, status);
  for (i = 0; i < RING && put->ring[i] != NULL; i++) {
    clb_status ended = ops->wait(put->port, put->ring[i]);
    if (status == CLB_OK && ended != CLB_OK) {
      status = ended;
      clb__error_save(&cause, status);
    }
    if (put->straight) /* the memory it reads may be gone soon */
      (void)clb__staging_settle(put->ring[i]);
    ops->give(put->port, put->ring[i]);
  }
  return status == CLB_OK ? CLB_OK : clb__error_restore(&cause);
}

static clb_status put_staged(putting *put) {
  clb_status status = CLB_OK;
  const clb__move *move;
  clb__block *block;
  unsigned turn = 0;

  while (status == CLB_OK && clb__cursor_peek(&put->cursor, &move)) {
    status = next_block(put, &turn, &block);
    if (status == CLB_OK)
      status = fill(put, block);
  }
  return finish(put, status);
}

/* The next part of a mapped form: all of it where its bytes are in memory, a
 * chunk where they are pulled. */
static clb_status put_mapped_part(putting *put, clb__sheet *all) {
  const unsigned char *box;
  clb_status status;

  if (put->supply->memory == NULL && all->form->ndim == 0)
    return supply_to(put, all->start, all->end - all->start,
                     all->mapping +
                         (all->form->origin + all->start - all->first));
  status = find_box(put, all->start, all->end - all->start, &box);
  if (status != CLB_OK)
    return status;
  all->box = (unsigned char *)box; /* which is only read */
  clb__sheet_copy(all);
  return CLB_OK;
}

static clb_status put_mapped(putting *put) {
  const clb__source_ops *ops = put->port->source->ops;
  const clb__plan *plan = put->plan;
  clb__sheet all = {.form = &plan->form, .start = plan->start, .into = true,
                    .helpers = put->helpers};
  uint64_t bytes;
  clb_status status;
  clb__error cause;

  clb__form_span(&plan->form, &all.first, &bytes);
  status = ops->map(put->port, all.first, (size_t)bytes, &all.mapping);
  if (status != CLB_OK)
    return status;
  for (; status == CLB_OK && all.start < plan->end; all.start = all.end) {
    all.end = plan->end;
    if (put->supply->memory == NULL && all.end - all.start > plan->chunk)
      all.end = all.start + plan->chunk;
    status = put_mapped_part(put, &all);
  }
  clb__error_save(&cause, status);
  if (status == CLB_OK)
    status = ops->unmap(put->port);
  else if (ops->unmap(put->port) != CLB_OK)
    (void)clb__error_restore(&cause);
  return status;
}

/* Whether moves may come from the supply's memory without a block in
 * between. */
static bool comes_straight(const putting *put) {
  const clb__source_ops *ops = put->port->source->ops;
  const clb__plan *plan = put->plan;

  return put->supply->memory != NULL && plan->kind != CLB_PLAN_GATHER &&
         plan->kind != CLB_PLAN_MAP &&
         ops->reaches(put->port, put->supply->memory + plan->start,
                      plan->end - plan->start);
}

clb_status clb__transfer_put(clb__port *port, const clb__plan *plan,
                             const clb__supply *supply) {
  putting put = {.port = port, .plan = plan, .supply = supply};
  clb_status status;

  clb__cursor_init(&put.cursor, plan);
  put.straight = comes_straight(&put);
  put.bare = put.straight && plan->kind != CLB_PLAN_PACK;
  if (plan->end - plan->start > CLB__SMALL_COPY && !put.straight)
    put.helpers = port->source->ops->helpers(port);
  status = plan->kind == CLB_PLAN_MAP ? put_mapped(&put) : put_staged(&put);
  free(put.box);
  return status;
}
