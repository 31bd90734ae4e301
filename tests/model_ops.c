/*
 * Operations of the state machine that look at a handle or change what it has
 * on the host.  See model_run.h.
 */
#include "config.h"

#include "model_run.h"

/* --- Looking ------------------------------------------------------------- */

/* A read gave this; the same as the last time. */
static void gave(struct model_handle *h, const void *data,
                 const unsigned char **last, const unsigned char *expected)
{
  uintptr_t address = (uintptr_t)data;

  if (data == NULL)
    run_wrong("a NULL pointer");
  if (*last != NULL && *last != data)
    run_wrong("another pointer than before");
  run_same(data, expected, h->length, "a read");
  *last = data;
  if (h->length > 0 &&
      clb_bytes_alignment(h->bytes) != (address & (~address + 1)))
    run_wrong("the alignment of %p is %zu", data,
              clb_bytes_alignment(h->bytes));
}

static void set_place(struct model_handle *h)
{
  if (h->length == 0)
    return;
  h->lazy_place = h->copy == NULL;
  h->place = CLB_PLACE_HEAP;
}

static void read_mapping(struct model_handle *h)
{
  unsigned char expected[MODEL_BYTES];
  const void *data = NULL;
  bool in_a_row = model_in_a_row(&h->source, h->length);
  clb_status status;

  run_settle(h);
  status = clb_bytes_read(h->bytes, CLB_MAP, &data);
  if (h->mapped != NULL || (in_a_row && run.maps))
    run_expect(status, CLB_OK);
  else if (run_expect_or(status, CLB_WOULD_COPY,
                         run.maps && !h->source.certain ? CLB_OK
                                                        : CLB_WOULD_COPY))
    return;
  if (h->mapped == NULL) {
    run_reads(1);
    h->mapped = h->store;
    h->mapped_at = h->source.at[0];
    if (!in_a_row) { /* a snapshot that is packed */
      h->mapped = run_store(MODEL_DEVICE, h->store->data, 0);
      h->mapped_at = 0;
      for (size_t i = 0; i < h->length; i++)
        h->mapped->data[i] = h->store->data[h->source.at[i]];
    }
  }
  memcpy(expected, h->mapped->data + h->mapped_at, h->length);
  h->lazy_place = false;
  h->place = CLB_PLACE_MAPPED;
  gave(h, data, &h->map_pointer, expected);
}

void op_read(void)
{
  static const char *const names[] = {"copy", "no copy", "map"};
  struct model_handle *h = run_pick();
  clb_access access = run_chance(2)   ? CLB_COPY
                      : run_chance(2) ? CLB_NO_COPY
                                      : CLB_MAP;
  unsigned char expected[MODEL_BYTES];
  const void *data = NULL;
  bool here = model_on_host(h) || h->length == 0;
  clb_status status;

  run_trace("\n  read(#%d, %s)", h->number, names[access]);
  if (access == CLB_MAP && h->store->kind == MODEL_DEVICE && !h->edited &&
      h->length > 0) {
    read_mapping(h);
    return;
  }
  status = clb_bytes_read(h->bytes, access, &data);
  if (access == CLB_COPY || here) {
    if (access != CLB_COPY && h->flying &&
        !run_expect_or(status, CLB_OK, CLB_WOULD_COPY))
      return;
    run_expect(status, CLB_OK);
    if (h->flying)
      run_landed(h);
    if (!here)
      run_reads(model_asks_device(h));
    model_bring(h);
    model_bytes(h, expected);
    set_place(h);
    gave(h, data, &h->pointer, expected);
  } else {
    run_expect(status, CLB_WOULD_COPY);
    if (data != NULL)
      run_wrong("a pointer of what was refused");
  }
}

void op_copy_into(void)
{
  struct model_handle *h = run_pick();
  size_t start = run_below(h->length + 1);
  size_t length = run_chance(3) ? h->length - start
                                : run_below(h->length - start + 1);
  unsigned char expected[MODEL_BYTES], *dst = fixture_malloc(length);

  run_trace("\n  copy_into(#%d, %zu, %zu)", h->number, start, length);
  if (h->flying)
    run_reads_unknown();
  run_expect(clb_bytes_copy_into(h->bytes, start, dst, length), CLB_OK);
  if (length > 0)
    run_reads(model_asks_device(h));
  model_bytes(h, expected);
  run_same(dst, expected + start, length, "copy_into");
  free(dst);
}

/* Stops after some bytes; 0: at once. */
struct stopper {
  struct gathered all;
  size_t stop;
};

static int stopping_sink(const void *data, size_t length, void *user)
{
  struct stopper *s = user;

  if (length == 0)
    run_wrong("a piece of 0 bytes");
  gather_sink(data, length, &s->all);
  return s->all.length > s->stop;
}

void op_stream(void)
{
  struct model_handle *h = run_pick();
  size_t start = run_below(h->length + 1);
  size_t end = start + run_below(h->length - start + 1);
  struct stopper s = {{NULL, 0, 0, 0},
                      run_chance(8) ? run_below(30) : SIZE_MAX};
  unsigned char expected[MODEL_BYTES];
  clb_status status;

  run_trace("\n  stream(#%d, %zu, %zu) stopped after %zu", h->number, start,
            end, s.stop);
  if (h->flying)
    run_reads_unknown();
  status = clb_bytes_stream(h->bytes, start, end, stopping_sink, &s);
  run_expect(status, s.all.length > s.stop ? CLB_CANCELLED : CLB_OK);
  if (status == CLB_OK && s.all.length != end - start)
    run_wrong("a stream of %zu bytes", s.all.length);
  if (status == CLB_OK && start < end)
    run_reads(model_asks_device(h));
  model_bytes(h, expected);
  run_same(s.all.data, expected + start, s.all.length, "stream");
  free(s.all.data);
}

void op_copy_into_layout(void)
{
  struct model_handle *h = run_pick();
  size_t size = 2 * h->length + 8, length = h->length;
  unsigned char expected[2 * MODEL_BYTES + 8], logical[MODEL_BYTES];
  unsigned char *dst = fixture_malloc(size);
  bool whole = run_chance(6), wrong = run_chance(15);
  struct model_layout drawn;
  struct model_region region;
  struct model_shape shape;
  clb_status status;

  do
    model_draw_shape(&run.state, h->length + wrong, &shape);
  while (!model_draw_layout(&run.state, &shape, size, MODEL_APART, &drawn));
  run_trace("\n  copy_into_layout(#%d, %zu in %zu%s)", h->number, length, size,
            wrong ? ", wrong" : whole ? ", whole" : "");
  if (whole)
    size = length + wrong;
  memset(dst, 0x5c, 2 * length + 8);
  memset(expected, 0x5c, sizeof expected);
  run_reads_unknown();
  status = clb_bytes_copy_into_layout(h->bytes, dst, size,
                                      whole ? NULL : &drawn.layout);
  run_expect(status, wrong ? CLB_INVALID_ARGUMENT : CLB_OK);
  if (!wrong) {
    model_bytes(h, logical);
    model_walk(&drawn.layout, size, &region, &length);
    for (size_t i = 0; i < length; i++)
      expected[whole ? i : region.at[i]] = logical[i];
  }
  run_same(dst, expected, 2 * h->length + 8, "the destination");
  free(dst);
}

void op_equal(void)
{
  struct model_handle *a = run_pick(), *b = run_pick();
  unsigned char left[MODEL_BYTES], right[MODEL_BYTES];
  int equal = -1, expected;

  run_trace("\n  equal(#%d, #%d)", a->number, b->number);
  run_reads_unknown();
  run_expect(clb_bytes_equal(a->bytes, b->bytes, &equal), CLB_OK);
  model_bytes(a, left);
  model_bytes(b, right);
  expected = a->length == b->length && memcmp(left, right, a->length) == 0;
  if (equal != expected)
    run_wrong("equal is %d", equal);
}

/* --- Asking -------------------------------------------------------------- */

static void ask_plan(const struct model_handle *h)
{
  char text[320];

  run_expect(clb_bytes_plan(h->bytes, text, sizeof text), CLB_OK);
  if (h->flying || h->base != NULL)
    return;
  if ((strcmp(text, "nothing") == 0) != (h->length == 0) ||
      (strcmp(text, "on the host") == 0) != model_on_host(h))
    run_wrong("the plan is \"%s\"", text);
}

void op_ask(void)
{
  struct model_handle *h = run_pick();
  clb_layout layout;

  run_trace("\n  ask(#%d)", h->number);
  ask_plan(h);
  run_expect(clb_bytes_layout(h->bytes, &layout), CLB_OK);
  if (layout.ndim != h->shape.ndim || layout.elem_size != h->shape.elem_size ||
      layout.strides != NULL || layout.offset != 0)
    run_wrong("the layout has %zu dimensions of elements of %zu", layout.ndim,
              layout.elem_size);
  for (size_t d = 0; d < layout.ndim; d++)
    if (layout.shape[d] != h->shape.shape[d])
      run_wrong("extent %zu is %zu, not %zu", d, layout.shape[d],
                h->shape.shape[d]);
}

void op_label(void)
{
  struct model_handle *h = run_pick();

  run_settle(h);
  if (run_chance(4))
    h->label[0] = '\0';
  else
    snprintf(h->label, sizeof h->label, "name %zu", run_below(1000));
  run_trace("\n  set_label(#%d, \"%s\")", h->number, h->label);
  run_expect(clb_bytes_set_label(h->bytes,
                                 h->label[0] != '\0' ? h->label : NULL),
             CLB_OK);
}

void op_retain(void)
{
  struct model_handle *h = run_pick();

  run_trace("\n  retain(#%d)", h->number);
  if (clb_bytes_retain(h->bytes) != h->bytes)
    run_wrong("retain gave another handle");
  h->refs++;
}

void op_release(void)
{
  size_t index = run_below(run.count);

  run_trace("\n  release(#%d)", run.live[index].number);
  run_release(index);
}

/* --- Changing ------------------------------------------------------------ */

/* Other bytes in a range of what a write gave. */
static void edit(struct model_handle *h, unsigned char *data)
{
  size_t start = run_below(h->length + 1);
  size_t end = start + run_below(h->length - start + 1);

  for (size_t i = start; i < end; i++) {
    data[i] = (unsigned char)fixture_random(&run.state);
    if (h->copy != NULL)
      h->copy->data[h->copy_at + i] = data[i];
    else
      h->store->data[h->source.at[i]] = data[i];
  }
}

/* The thread of a prefetch holds on to a handle a moment longer than the
 * program, and till then what it shares is shared. */
static void wait_for_ghost(struct model_handle *h)
{
  void *data;

  if (!model_haunted(h))
    return;
  RUN_SOON(clb_bytes_write(h->bytes, CLB_NO_COPY, &data) != CLB_WOULD_COPY);
  if (h->copy != NULL)
    h->copy->haunted = false;
  else
    h->store->haunted = false;
}

void op_write(void)
{
  struct model_handle *h = run_pick();
  clb_access access = run_chance(2) ? CLB_COPY : CLB_NO_COPY;
  unsigned char expected[MODEL_BYTES];
  void *data = NULL;
  clb_status status;

  if (access == CLB_NO_COPY || h->base != NULL || h->length == 0)
    run_settle(h);
  run_trace("\n  write(#%d, %s)", h->number,
            access == CLB_COPY ? "copy" : "no copy");
  if (run_chance(30))
    run_expect(clb_bytes_write(h->bytes, CLB_MAP, &data),
               CLB_INVALID_ARGUMENT);
  if (model_on_host(h) && model_alone(h))
    wait_for_ghost(h);
  status = clb_bytes_write(h->bytes, access, &data);
  if (h->length == 0) {
    run_expect(status, CLB_OK);
    h->edited = true;
    return;
  }
  if (access == CLB_NO_COPY && (!model_on_host(h) || !model_alone(h))) {
    run_expect(status, CLB_WOULD_COPY);
    return;
  }
  run_expect(status, CLB_OK);
  if (h->flying)
    run_landed(h);
  run_reads(model_asks_device(h));
  model_bring(h);
  if (!model_alone(h))
    model_separate(h);
  model_end_mapping(h);
  model_end_base(h);
  h->edited = true;
  set_place(h);
  model_bytes(h, expected);
  run_same(data, expected, h->length, "a write's memory");
  edit(h, data);
  h->pointer = data;
}

void op_evict(void)
{
  struct model_handle *h = run_pick();

  run_trace("\n  evict(#%d)", h->number);
  if (h->edited) {
    run_expect(clb_bytes_evict(h->bytes), CLB_UNSUPPORTED);
    return;
  }
  run_expect(clb_bytes_evict(h->bytes), CLB_OK);
  if (h->flying)
    run_landed(h);
  if (h->length > 0)
    model_forget(h);
}

void op_detach(void)
{
  struct model_handle *h = run_pick();
  unsigned char expected[MODEL_BYTES];
  size_t length = SIZE_MAX;
  void *data = NULL;
  bool lazy, whole;

  run_trace("\n  detach(#%d)", h->number);
  run_expect(clb_bytes_detach(h->bytes, &data, &length), CLB_OK);
  if (h->flying)
    run_landed(h);
  run_reads(model_asks_device(h));
  model_bring(h);
  model_bytes(h, expected);
  if (data == NULL || (uintptr_t)data % 64 != 0 || length != h->length)
    run_wrong("detach gave %zu bytes at %p", length, data);
  run_same(data, expected, length, "what was detached");
  lazy = !h->edited && h->copy != NULL;
  whole = lazy && model_alone(h) && h->copy->size == h->length;
  if (h->pointer != NULL && length > 0 &&
      (whole ? data != h->pointer && !model_haunted(h) : data == h->pointer))
    run_wrong(whole ? "a copy of what nobody else holds"
                    : "the memory that is still held");
  clb_free(data);
  h->pointer = NULL;
  if (lazy)
    model_forget(h);
}
