/*
 * Operations of the state machine that make handles of handles.  See
 * model_run.h.
 */
#include "config.h"

#include "model_run.h"

/*
 * A handle made of one whose bytes may be on their way: it has the host copy or
 * has not, and a look without a copy tells.
 */
static void put_derived(struct model_handle *from, struct model_handle *made,
                        clb_bytes *bytes)
{
  const void *data;
  clb_status status;

  if (from->flying && made->length > 0) {
    status = clb_bytes_read(bytes, CLB_NO_COPY, &data);
    if (run_expect_or(status, CLB_OK, CLB_WOULD_COPY))
      run_landed(from);
    else
      model_forget(made);
  }
  run_put(made, bytes);
}

/* May a handle be made of this one while its bytes are on their way? */
static void ready(struct model_handle *h)
{
  if (h->base != NULL ||
      (h->store->kind != MODEL_DEVICE && h->store->kind != MODEL_FILE) ||
      run_chance(2))
    run_settle(h);
}

void op_view(void)
{
  struct model_handle *h = run_pick(), made;
  size_t start = run_below(h->length + 1);
  size_t end = start + run_below(h->length - start + 1);
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  if (run_chance(4)) {
    start = 0;
    end = h->length;
  }
  ready(h);
  run_trace("\n  #%d = view(#%d, %zu, %zu)", run.serial + 1, h->number, start,
            end);
  run_expect(clb_bytes_view(h->bytes, start, end, &bytes), CLB_OK);
  model_view(h, start, end, &made);
  put_derived(h, &made, bytes);
}

void op_clone(void)
{
  struct model_handle *h = run_pick(), made;
  clb_bytes *bytes = NULL;

  if (!run_room(1))
    return;
  ready(h);
  run_trace("\n  #%d = clone(#%d)", run.serial + 1, h->number);
  run_expect(clb_bytes_clone(h->bytes, &bytes), CLB_OK);
  model_clone(h, &made);
  put_derived(h, &made, bytes);
}

/* Start, count and step of a dimension, of elements that are there. */
static void draw_range(size_t n, size_t *start, size_t *count, ptrdiff_t *step)
{
  size_t fit;

  *start = n > 0 ? run_below(n) : 0;
  *step = run_chance(2) ? 1 : 1 + (ptrdiff_t)run_below(3);
  if (run_chance(3))
    *step = -*step;
  fit = n == 0 ? 0
               : (*step > 0 ? n - 1 - *start : *start) /
                         (size_t)(*step > 0 ? *step : -*step) + 1;
  if (*step == 1 && run_chance(2)) {
    *start = 0;
    fit = n;
  }
  *count = run_chance(2) ? fit : run_below(fit + 1);
}

/* What a NULL array stands for. */
static size_t all_that_fit(size_t n, size_t start, ptrdiff_t step)
{
  size_t count = 0;

  for (ptrdiff_t at = (ptrdiff_t)start; at >= 0 && at < (ptrdiff_t)n;
       at += step)
    count++;
  return count;
}

/* The same handle with one dimension's range made wrong. */
static void refused_slice(struct model_handle *h, size_t *start, size_t *count,
                          ptrdiff_t *step)
{
  size_t d = run_below(h->shape.ndim);
  clb_bytes *bytes = NULL;
  clb_status expected = CLB_OUT_OF_RANGE;

  if (run_chance(3)) {
    step[d] = 0;
    expected = CLB_INVALID_ARGUMENT;
  } else if (run_chance(2)) {
    start[d] = h->shape.shape[d] + 1 + run_below(2) * (SIZE_MAX / 2);
  } else {
    count[d] = 1 + all_that_fit(h->shape.shape[d], start[d], step[d]);
  }
  run_trace(" wrong in %zu", d);
  run_expect(clb_bytes_slice(h->bytes, start, count, step, &bytes), expected);
}

void op_slice(void)
{
  struct model_handle *h = run_pick(), made;
  size_t start[MODEL_DIMS], count[MODEL_DIMS];
  ptrdiff_t step[MODEL_DIMS];
  bool no_start = run_chance(6), no_count = run_chance(6);
  bool no_step = run_chance(6);
  clb_bytes *bytes = NULL;
  clb_status status;

  if (!run_room(1))
    return;
  run_settle(h);
  run_trace("\n  #%d = slice(#%d", run.serial + 1, h->number);
  for (size_t d = 0; d < h->shape.ndim; d++) {
    size_t n = h->shape.shape[d];

    draw_range(n, &start[d], &count[d], &step[d]);
    if (no_start)
      start[d] = 0;
    if (no_step)
      step[d] = 1;
    if (no_count || count[d] > all_that_fit(n, start[d], step[d]))
      count[d] = all_that_fit(n, start[d], step[d]);
    run_trace("; %zu %zu %td", start[d], count[d], step[d]);
  }
  run_trace(")");
  if (run_chance(20) && h->shape.ndim > 0 && !h->source.windowed) {
    refused_slice(h, start, count, step);
    return;
  }
  status = clb_bytes_slice(h->bytes, no_start ? NULL : start,
                           no_count ? NULL : count, no_step ? NULL : step,
                           &bytes);
  if (h->source.windowed) {
    if (!run_expect_or(status, CLB_UNSUPPORTED,
                       h->source.certain ? CLB_UNSUPPORTED : CLB_OK)) {
      model_slice(h, start, count, step, &made);
      run_put(&made, bytes);
    }
    return;
  }
  run_expect(status, CLB_OK);
  model_slice(h, start, count, step, &made);
  run_put(&made, bytes);
}

static bool refused_reshape(struct model_handle *h, struct model_shape *shape)
{
  clb_bytes *bytes = NULL;

  if (!run_chance(15))
    return false;
  run_trace(" wrong");
  if (run_chance(2)) {
    shape->elem_size = 0;
    run_expect(clb_bytes_reshape(h->bytes, shape->ndim, shape->shape, 0,
                                 &bytes),
               CLB_INVALID_LAYOUT);
  } else {
    model_draw_shape(&run.state, h->length + 1, shape);
    run_expect(clb_bytes_reshape(h->bytes, shape->ndim, shape->shape,
                                 shape->elem_size, &bytes),
               CLB_INVALID_ARGUMENT);
  }
  return true;
}

void op_reshape(void)
{
  struct model_handle *h = run_pick(), made;
  struct model_shape shape;
  clb_bytes *bytes = NULL;
  clb_status status;
  bool sayable;

  if (!run_room(1))
    return;
  ready(h);
  model_draw_shape(&run.state, h->length, &shape);
  run_trace("\n  #%d = reshape(#%d, (", run.serial + 1, h->number);
  for (size_t d = 0; d < shape.ndim; d++)
    run_trace("%s%zu", d > 0 ? "," : "", shape.shape[d]);
  run_trace("), %zu)", shape.elem_size);
  if (refused_reshape(h, &shape))
    return;
  status = clb_bytes_reshape(h->bytes, shape.ndim, shape.shape,
                             shape.elem_size, &bytes);
  sayable = !h->source.windowed && model_sayable(&h->source, &shape);
  if (sayable)
    run_expect(status, CLB_OK);
  else if (run_expect_or(status, CLB_UNSUPPORTED,
                         h->source.certain ? CLB_UNSUPPORTED : CLB_OK))
    return;
  model_reshape(h, &shape, &made);
  put_derived(h, &made, bytes);
}

static void split_shared(struct model_handle *h, size_t at)
{
  struct model_handle left, right;
  clb_bytes *a = NULL, *b = NULL;

  run_expect(clb_bytes_split(h->bytes, at, CLB_SPLIT_SHARED, &a, &b), CLB_OK);
  model_view(h, 0, at, &left);
  model_view(h, at, h->length, &right);
  run_put(&left, a);
  run_put(&right, b);
}

static void own(struct model_handle *half)
{
  if (half->length == 0)
    return;
  run_reads(model_asks_device(half));
  model_separate(half);
  half->lazy_place = false;
  half->place = CLB_PLACE_HEAP;
}

static void split_owned(struct model_handle *h, size_t at)
{
  struct model_handle left, right;
  clb_bytes *a = NULL, *b = NULL;

  run_expect(clb_bytes_split(h->bytes, at, CLB_SPLIT_OWNED, &a, &b), CLB_OK);
  model_view(h, 0, at, &left);
  model_view(h, at, h->length, &right);
  own(&left);
  own(&right);
  run_put(&left, a);
  run_put(&right, b);
}

void op_split(void)
{
  struct model_handle *h = run_pick();
  size_t at = run_below(h->length + 1);
  bool owned = run_chance(2);

  if (!run_room(2))
    return;
  run_settle(h);
  run_trace("\n  #%d, #%d = split(#%d, %zu, %s)", run.serial + 1,
            run.serial + 2, h->number, at, owned ? "owned" : "shared");
  if (owned)
    split_owned(h, at);
  else
    split_shared(h, at);
}

/* Ranges that are not inside; the message names the handle. */
void op_refused(void)
{
  struct model_handle *h = run_pick();
  size_t past = h->length + 1 + run_below(3);
  clb_bytes *a = NULL, *b = NULL;
  unsigned char byte;
  clb_status status;

  run_trace("\n  refused(#%d)", h->number);
  switch (run_below(4)) {
  case 0:
    status = clb_bytes_view(h->bytes, 1, run_chance(2) ? 0 : past, &a);
    break;
  case 1:
    status = clb_bytes_split(h->bytes, past, CLB_SPLIT_SHARED, &a, &b);
    break;
  case 2:
    status = clb_bytes_copy_into(h->bytes, run_chance(2) ? past : SIZE_MAX,
                                 &byte, 1);
    break;
  default:
    status = clb_bytes_stream(h->bytes, 0, past, gather_sink, NULL);
    break;
  }
  run_expect(status, CLB_OUT_OF_RANGE);
  if (strstr(clb_error_message(), h->label) == NULL)
    run_wrong("the message does not name \"%s\"", h->label);
  if (a != NULL || b != NULL)
    run_wrong("an output of what was refused");
}
