/*
 * cursor.c - walks the moves of a plan, in order.
 *
 * Pure, as plan.h says.
 */
#include "config.h"

#include "plan.h"

#include <string.h>

#define PACK_ALIGNMENT ((size_t)64)
#define FIRST_PART 8 /* of a chunk */
#define MOST_PART ((size_t)1 << 30) /* bytes: a kernel counts in 32 bits */

void clb__cursor_init(clb__cursor *cursor, const clb__plan *plan) {
  cursor->plan = plan;
  cursor->at = plan->start;
  cursor->next = cursor->moves = 0;
  cursor->ready = false;
}

/* A box of at most two dimensions that a rect carries as it is. */
static void straight_box(clb__cursor *cursor, const clb__form *box) {
  clb__move *shape = &cursor->shape;

  cursor->moves = 1;
  shape->origin = box->origin;
  shape->width = box->run;
  shape->height = box->ndim > 0 ? box->dim[box->ndim - 1].n : 1;
  shape->depth = box->ndim > 1 ? box->dim[0].n : 1;
  shape->row_pitch = box->ndim > 0 ? (size_t)box->dim[box->ndim - 1].stride : 0;
  shape->slice_pitch = box->ndim > 1 ? (size_t)box->dim[0].stride : 0;
  shape->bytes = box->size[0];
}

/* Takes axes from *level outwards into one dimension of a rect, whose pitch is
 * the first one's stride; returns its extent. */
static size_t take_rows(const clb__storage *storage, unsigned *level) {
  size_t n = 1, pitch = (size_t)storage->axis[*level - 1].from;

  while (*level > 0 &&
         (size_t)storage->axis[*level - 1].from == pitch * n) {
    n *= storage->axis[*level - 1].n;
    --*level;
  }
  return n;
}

/* Moves that are rectangles of the box in the source's order. */
static void rect_box(clb__cursor *cursor) {
  const clb__storage *storage = &cursor->storage;
  clb__move *shape = &cursor->shape;
  unsigned level = storage->ndim, i;

  shape->width = storage->run;
  shape->height = shape->depth = 1;
  shape->row_pitch = shape->slice_pitch = 0;
  while (level > 0 && (size_t)storage->axis[level - 1].from == shape->width)
    shape->width *= storage->axis[--level].n;
  if (level > 0 && cursor->plan->rect_dims > 0 &&
      (size_t)storage->axis[level - 1].from > shape->width) {
    shape->row_pitch = (size_t)storage->axis[level - 1].from;
    shape->height = take_rows(storage, &level);
    if (level > 0 && cursor->plan->rect_dims > 1 &&
        (size_t)storage->axis[level - 1].from % shape->row_pitch == 0 &&
        (size_t)storage->axis[level - 1].from / shape->row_pitch >=
            shape->height) {
      shape->slice_pitch = (size_t)storage->axis[level - 1].from;
      shape->depth = take_rows(storage, &level);
    }
  }
  shape->bytes = shape->width * shape->height * shape->depth;
  cursor->level = level;
  cursor->count = 1;
  cursor->moves = 1;
  for (i = 0; i < level; i++)
    cursor->moves *= storage->axis[i].n;
}

/* Moves that are spans: as many inner axes as fit a chunk and whose gaps are
 * worth reading. */
static void span_box(clb__cursor *cursor) {
  const clb__storage *storage = &cursor->storage;
  const clb__plan *plan = cursor->plan;
  size_t span = storage->run, outer;
  unsigned level = storage->ndim, i;

  cursor->count = 1;
  while (level > 0) {
    const clb__axis *axis = &storage->axis[level - 1];
    size_t stride = (size_t)axis->from, room;
    if (stride > span && stride - span > plan->gap)
      break;
    room = (plan->chunk - span) / stride;
    if (room < axis->n - 1) {
      cursor->count = room + 1;
      break;
    }
    span += (axis->n - 1) * stride;
    level--;
  }
  cursor->shape.width = cursor->shape.bytes = span;
  cursor->shape.height = cursor->shape.depth = 1;
  cursor->shape.row_pitch = cursor->shape.slice_pitch = 0;
  cursor->level = level;
  cursor->moves = 1;
  for (i = 0; i < level; i++) {
    outer = storage->axis[i].n;
    if (i == level - 1)
      outer = (outer + cursor->count - 1) / cursor->count;
    cursor->moves *= outer;
  }
}

/* Parts end at a multiple of this: of the inner dimensions that fit into it some
 * times, so that parts are boxes and hardly shorter than they may be; else of a
 * run, or of what the widest unit needs. */
static size_t packed_row(const clb__form *form, size_t limit) {
  unsigned d = 0;

  while (d < form->ndim && form->size[d] > limit / 4)
    d++;
  if (d < form->ndim)
    return form->size[d];
  return form->run > limit || form->run % PACK_ALIGNMENT == 0 ? PACK_ALIGNMENT
                                                              : form->run;
}

/* Chunks that a kernel packs end where a row does, or at least where the
 * widest unit does.  The first is short, since the link waits for its kernel
 * alone. */
static void packed_box(clb__cursor *cursor) {
  const clb__plan *plan = cursor->plan;
  size_t most = plan->chunk < MOST_PART ? plan->chunk : MOST_PART;
  size_t limit = cursor->at == plan->start ? most / FIRST_PART : most;
  size_t row = packed_row(&plan->form, limit), end = plan->end;

  if (end - cursor->at > most) {
    end = cursor->at + limit;
    if (end - end % row > cursor->at)
      end -= end % row;
    else if (end == cursor->at)
      end = cursor->at + most;
  }
  cursor->start = cursor->at;
  cursor->length = end - cursor->at;
  cursor->at = end;
  cursor->next = 0;
  cursor->moves = 1;
  cursor->shape = (clb__move){.width = cursor->length, .height = 1, .depth = 1,
                              .bytes = cursor->length};
}

static void next_box(clb__cursor *cursor) {
  const clb__plan *plan = cursor->plan;
  size_t limit = plan->end - cursor->at;
  clb__form box;

  if (plan->kind == CLB_PLAN_PACK && !clb__form_contiguous(&plan->form)) {
    packed_box(cursor);
    return;
  }

  clb__form_box(&plan->form, cursor->at,
                limit < plan->chunk ? limit : plan->chunk, plan->box_dims,
                &box);
  cursor->start = cursor->at;
  cursor->length = box.size[0];
  cursor->at += box.size[0];
  cursor->next = 0;
  if (plan->kind != CLB_PLAN_GATHER) {
    straight_box(cursor, &box);
    return;
  }
  clb__storage_make(&cursor->storage, &box);
  if (plan->rects)
    rect_box(cursor);
  else
    span_box(cursor);
}

/* Where a move begins: the indices of its outer axes.  Returns how many items
 * of the partly taken axis it has. */
static size_t begin_of(const clb__cursor *cursor, size_t move, uint64_t *origin,
                       ptrdiff_t *to) {
  const clb__storage *storage = &cursor->storage;
  size_t items = 1;
  unsigned i;

  *origin = storage->origin;
  *to = storage->to;
  for (i = cursor->level; i-- > 0;) {
    const clb__axis *axis = &storage->axis[i];
    size_t step = i == cursor->level - 1 ? cursor->count : 1;
    size_t groups = (axis->n + step - 1) / step;
    size_t first = move % groups * step;
    move /= groups;
    *origin += (uint64_t)first * (uint64_t)axis->from;
    *to += (ptrdiff_t)first * axis->to;
    if (i == cursor->level - 1)
      items = axis->n - first < step ? axis->n - first : step;
  }
  return items;
}

bool clb__cursor_peek(clb__cursor *cursor, const clb__move **out) {
  const clb__plan *plan = cursor->plan;
  clb__move *move = &cursor->move;

  *out = move;
  if (cursor->ready)
    return true;
  if (cursor->next == cursor->moves) {
    if (cursor->at == plan->end)
      return false;
    next_box(cursor);
  }
  *move = cursor->shape;
  if (plan->kind == CLB_PLAN_GATHER) {
    ptrdiff_t to;
    size_t items = begin_of(cursor, cursor->next, &move->origin, &to);
    if (cursor->count > 1) {
      move->width += (items - 1) *
                     (size_t)cursor->storage.axis[cursor->level - 1].from;
      move->bytes = move->width;
    }
  }
  move->start = cursor->start;
  move->length = cursor->length;
  move->first = cursor->next == 0;
  move->last = cursor->next + 1 == cursor->moves;
  cursor->ready = true;
  return true;
}

ptrdiff_t clb__move_stride(const clb__move *move, ptrdiff_t from) {
  if (move->slice_pitch != 0 && (size_t)from >= move->slice_pitch)
    return from / (ptrdiff_t)move->slice_pitch *
           (ptrdiff_t)(move->width * move->height);
  if (move->row_pitch != 0 && (size_t)from >= move->row_pitch)
    return from / (ptrdiff_t)move->row_pitch * (ptrdiff_t)move->width;
  return from;
}

/* Axes are kept with the largest step in the box outermost, so that the box is
 * filled in order. */
static void add_axis(clb__pick *pick, clb__axis axis) {
  unsigned i;

  for (i = pick->ndim;
       i > 0 && clb__abs_stride(pick->axis[i - 1].to) < clb__abs_stride(axis.to);
       i--)
    pick->axis[i] = pick->axis[i - 1];
  pick->axis[i] = axis;
  pick->ndim++;
}

static void make_pick(const clb__cursor *cursor, clb__pick *pick) {
  const clb__storage *storage = &cursor->storage;
  uint64_t origin;
  size_t items;
  unsigned i;

  pick->ndim = 0;
  pick->run = storage->run;
  items = begin_of(cursor, cursor->next, &origin, &pick->to);
  if (items > 1)
    add_axis(pick, (clb__axis){items, storage->axis[cursor->level - 1].from,
                               storage->axis[cursor->level - 1].to});
  for (i = cursor->level; i < storage->ndim; i++)
    add_axis(pick,
             (clb__axis){storage->axis[i].n,
                         clb__move_stride(&cursor->shape,
                                          storage->axis[i].from),
                         storage->axis[i].to});
  for (i = 0; i < storage->nrepeat; i++)
    add_axis(pick, storage->repeat[i]);

  pick->same = cursor->moves == 1 && pick->to == 0;
  for (i = 0; i < pick->ndim; i++)
    pick->same &= pick->axis[i].from == pick->axis[i].to;
}

void clb__cursor_take(clb__cursor *cursor, clb__pick *pick) {
  if (pick != NULL) {
    if (cursor->plan->kind == CLB_PLAN_GATHER)
      make_pick(cursor, pick);
    else
      pick->same = true;
  }
  cursor->next++;
  cursor->ready = false;
}
