/*
 * Kernels that pack and unpack: layouts of all elements, in every way and with
 * every set of plans that has them, compared with the walk.
 */
#include "config.h"

#include "fixture.h"

#include <pthread.h>

/* No multiple of 16, so that parts begin where no wide unit does. */
#define CHUNK ((size_t)4096 + 7)
#define PARTS 4 /* chunks of a layout, at least */

#define NEEDS_COMPILER()                                                       \
  do {                                                                         \
    if (!fixture_compiles())                                                   \
      FIXTURE_SKIP("no compiler");                                             \
  } while (0)

static void use_plans(unsigned plans, size_t chunk_size)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  options.plans = plans;
  options.chunk_size = chunk_size;
  options.staging_limit = chunk_size != 0 ? 8 * chunk_size : 0;
  fixture_options(&options);
}

/* --- Layouts ------------------------------------------------------------- */

struct drawn {
  const char *what;
  clb_layout layout;
  size_t shape[5];
  ptrdiff_t strides[5];
  size_t size; /* of a buffer that holds it, and some bytes more */
  int apart;   /* no two elements share a byte */
};

enum { KINDS = 9 };

static void draw(struct drawn *d, int kind, size_t elem)
{
  const ptrdiff_t e = (ptrdiff_t)elem;
  const size_t rows = 101, columns = PARTS * CHUNK / (rows * elem) + 3;
  const ptrdiff_t pitch = (ptrdiff_t)columns * e;
  size_t last;

  memset(d, 0, sizeof *d);
  d->apart = 1;
  d->layout.ndim = 2;
  d->layout.elem_size = elem;
  d->shape[0] = rows;
  d->shape[1] = columns;
  switch (kind) {
  case 0:
    d->what = "transposed";
    d->strides[0] = e;
    d->strides[1] = (ptrdiff_t)rows * e;
    break;
  case 1:
    d->what = "stepped";
    d->strides[0] = 3 * pitch;
    d->strides[1] = 2 * e;
    d->layout.offset = elem;
    break;
  case 2:
    d->what = "reversed";
    d->strides[0] = -(pitch + e);
    d->strides[1] = -e;
    d->layout.offset = (rows - 1) * (size_t)(pitch + e) + (size_t)(pitch - e);
    break;
  case 3:
    d->what = "broadcast";
    d->layout.ndim = 3;
    d->shape[0] = 3;
    d->shape[1] = rows;
    d->shape[2] = columns / 2 + 1;
    d->strides[1] = 2 * e;
    d->strides[2] = (ptrdiff_t)(2 * rows) * e;
    d->apart = 0;
    break;
  case 4:
    d->what = "odd";
    d->strides[0] = e;
    d->strides[1] = (ptrdiff_t)rows * e + 1;
    d->layout.offset = 3;
    break;
  case 5:
    d->what = "five dimensions turned";
    d->layout.ndim = 5;
    d->shape[0] = 3;
    d->shape[1] = columns;
    d->shape[2] = 2;
    d->shape[3] = 5;
    d->shape[4] = 7;
    d->strides[1] = e;
    d->strides[3] = pitch + e;
    d->strides[0] = 5 * d->strides[3];
    d->strides[4] = 3 * d->strides[0];
    d->strides[2] = 7 * d->strides[4] + e;
    break;
  case 6:
    d->what = "padded rows";
    d->strides[0] = pitch + 5;
    d->strides[1] = e;
    break;
  case 7:
    d->what = "one short row many times";
    d->layout.ndim = 1;
    d->shape[0] = rows * columns;
    d->strides[0] = e + 1;
    break;
  default:
    d->what = "elements that share bytes";
    d->strides[0] = 7;
    d->strides[1] = (ptrdiff_t)rows * 7 - 1;
    d->apart = 0;
  }
  last = d->layout.offset;
  for (size_t i = 0; i < d->layout.ndim; i++)
    if (d->strides[i] > 0)
      last += (d->shape[i] - 1) * (size_t)d->strides[i];
  d->size = last + elem + 29;
  d->layout.shape = d->shape;
  d->layout.strides = d->strides;
  fixture_input = d->what;
}

/* --- Ways in and out ----------------------------------------------------- */

/* A part that begins and ends inside elements, and in the midst of chunks. */
static void look_through_windows(clb_bytes *bytes,
                                 const unsigned char *expected, size_t length)
{
  const size_t starts[] = {1, CHUNK - 1, 2 * CHUNK + 5};
  const size_t ends[] = {length - 1, CHUNK + 2, 3 * CHUNK + 1};
  const void *data;
  clb_bytes *view;

  for (size_t i = 0; i < 3; i++) {
    size_t start = starts[i], count = ends[i] - start;
    struct gathered gathered = {0};
    unsigned char *got = fixture_malloc(count + 2);

    got[0] = got[count + 1] = 0xa5;
    ck_ok(clb_bytes_copy_into(bytes, start, got + 1, count));
    ck_bytes(got + 1, expected + start, count);
    ck_assert(got[0] == 0xa5 && got[count + 1] == 0xa5);
    ck_ok(clb_bytes_stream(bytes, start, ends[i], gather_sink, &gathered));
    ck_assert_uint_eq(gathered.length, count);
    ck_bytes(gathered.data, expected + start, count);
    ck_ok(clb_bytes_view(bytes, start, ends[i], &view));
    ck_ok(clb_bytes_read(view, CLB_COPY, &data));
    ck_bytes(data, expected + start, count);
    clb_bytes_release(view);
    free(gathered.data);
    free(got);
  }
}

static void get_all_ways(cl_mem buffer, const struct drawn *d,
                         const unsigned char *contents)
{
  size_t length = walk_length(&d->layout);
  unsigned char *expected = walk(&d->layout, contents);
  clb_bytes *bytes = fixture_handle(buffer, &d->layout);

  expect_copy_into(bytes, expected, length);
  look_through_windows(bytes, expected, length);
  expect_stream(bytes, expected, length);
  expect_read(bytes, expected, length);
  clb_bytes_release(bytes);
  free(expected);
}

/* Into other contents; what lies between the elements stays. */
static void put_all(cl_mem buffer, const struct drawn *d, uint64_t seed)
{
  size_t length = walk_length(&d->layout);
  unsigned char *before = fixture_bytes(d->size, seed);
  unsigned char *logical = fixture_bytes(length, seed + 1);
  unsigned char *got = fixture_malloc(d->size);
  clb_bytes *bytes;

  fixture_store(buffer, before, d->size);
  ck_ok(clb_bytes_from_copy(logical, length, &bytes));
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, &d->layout));
  fixture_fetch(buffer, got, d->size);
  walk_back(&d->layout, before, logical);
  ck_bytes(got, before, d->size);
  clb_bytes_release(bytes);
  free(got);
  free(logical);
  free(before);
}

static void try_all(cl_mem_flags flags, int kind, size_t elem)
{
  struct drawn d;
  unsigned char *contents;
  cl_mem buffer;

  draw(&d, kind, elem);
  contents = fixture_bytes(d.size, elem);
  buffer = fixture_buffer(flags, NULL, d.size);
  fixture_store(buffer, contents, d.size);
  get_all_ways(buffer, &d, contents);
  if (d.apart)
    put_all(buffer, &d, 1000 + elem);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}

/* An interpreter takes a second for what others do in a millisecond. */
static int is_tried(int kind, size_t elem)
{
  return !fixture_is("Oclgrind") || (size_t)kind % 5 == elem % 5;
}

static const size_t ELEMENTS[] = {1, 2, 3, 4, 5, 8, 12, 16, 24};
enum { ELEMENT_SIZES = sizeof ELEMENTS / sizeof *ELEMENTS };

/* [_i]: an element */
START_TEST(packed_alone_all_layouts_are_right)
{
  clb_stats stats;

  NEEDS_COMPILER();
  use_plans(CLB_PLAN_PACK, CHUNK);
  for (int kind = 0; kind < KINDS; kind++)
    if (is_tried(kind, ELEMENTS[_i]))
      try_all(CL_MEM_READ_WRITE, kind, ELEMENTS[_i]);
  stats = fixture_stats();
  ck_assert_uint_gt(stats.packs, 0);
  ck_assert_uint_eq(stats.maps + stats.rects + stats.gathers, 0);
  ck_assert_uint_eq(stats.packs, stats.reads);
  ck_assert_uint_eq(stats.link_bytes, stats.bytes_read);
}
END_TEST

START_TEST(beside_other_plans_all_layouts_are_right)
{
  static const unsigned sets[] = {
      CLB_PLAN_PACK | CLB_PLAN_READ, CLB_PLAN_PACK | CLB_PLAN_RECT,
      CLB_PLAN_PACK | CLB_PLAN_GATHER,
      CLB_PLAN_PACK | CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER};

  NEEDS_COMPILER();
  use_plans(sets[_i], CHUNK);
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t elem = 3; elem <= 4; elem++)
      if (is_tried(kind, elem))
        try_all(CL_MEM_READ_WRITE, kind, elem);
}
END_TEST

START_TEST(packed_by_chunks_of_the_librarys_choice_all_layouts_are_right)
{
  NEEDS_COMPILER();
  use_plans(CLB_PLAN_PACK, 0);
  for (int kind = 0; kind < KINDS; kind++)
    if (is_tried(kind, 4))
      try_all(CL_MEM_READ_WRITE, kind, 4);
}
END_TEST

/* [_i]: flags; what a kernel may not have it does not get */
START_TEST(buffers_of_all_flags_are_packed)
{
  static const cl_mem_flags flags[] = {
      CL_MEM_WRITE_ONLY,
      CL_MEM_READ_ONLY,
      CL_MEM_HOST_NO_ACCESS,
      CL_MEM_HOST_WRITE_ONLY,
      CL_MEM_HOST_READ_ONLY,
      CL_MEM_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS,
      CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS};

  NEEDS_COMPILER();
  use_plans(CLB_PLAN_PACK, CHUNK);
  for (int kind = 0; kind < KINDS; kind++)
    if (is_tried(kind, 4))
      try_all(flags[_i], kind, 4);
  ck_assert_uint_gt(fixture_stats().packs, 0);
}
END_TEST
#define FLAGS 7

START_TEST(an_out_of_order_queue_is_packed_from)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  cl_command_queue queue =
      fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  clb_context *other, *mine = fx.context;

  if (queue == NULL)
    FIXTURE_SKIP("no out-of-order queue");
  options.plans = CLB_PLAN_PACK;
  options.chunk_size = CHUNK;
  ck_ok(clb_context_create(queue, &options, &other));
  fx.context = other;
  if (fixture_compiles())
    for (int kind = 0; kind < KINDS; kind++)
      if (is_tried(kind, 8))
        try_all(CL_MEM_READ_WRITE, kind, 8);
  fx.context = mine;
  clb_context_release(other);
  ck_cl(clReleaseCommandQueue(queue));
}
END_TEST

/* --- Pinned memory of the caller's --------------------------------------- */

START_TEST(pinned_memory_is_packed_into_and_from)
{
  struct drawn d;
  unsigned char *contents, *expected, *got;
  void *pinned;
  size_t length;
  clb_bytes *bytes;
  cl_mem buffer;

  NEEDS_COMPILER();
  use_plans(CLB_PLAN_PACK, CHUNK);
  draw(&d, 0, 4);
  length = walk_length(&d.layout);
  contents = fixture_bytes(d.size, 1);
  expected = walk(&d.layout, contents);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, d.size);
  ck_ok(clb_host_alloc(fx.context, length + 2, &pinned));
  memset(pinned, 0xa5, length + 2);
  bytes = fixture_handle(buffer, &d.layout);
  ck_ok(clb_bytes_copy_into(bytes, 0, (char *)pinned + 1, length));
  ck_bytes((char *)pinned + 1, expected, length);
  ck_assert_uint_eq(fixture_other(pinned, 0xa5, 1), 1);
  ck_assert_uint_eq(fixture_other((char *)pinned + 1 + length, 0xa5, 1), 1);
  clb_bytes_release(bytes);

  /* And back, into what is all zeros. */
  got = fixture_malloc(d.size);
  memset(contents, 0, d.size);
  fixture_store(buffer, contents, d.size);
  ck_ok(clb_bytes_from_host((char *)pinned + 1, length, NULL, NULL, &bytes));
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, &d.layout));
  clb_bytes_release(bytes);
  fixture_fetch(buffer, got, d.size);
  walk_back(&d.layout, contents, expected);
  ck_bytes(got, contents, d.size);
  clb_host_free(fx.context, pinned);
  ck_cl(clReleaseMemObject(buffer));
  free(got);
  free(expected);
  free(contents);
}
END_TEST

/* --- What cannot be ------------------------------------------------------ */

START_TEST(more_dimensions_than_a_kernel_has_are_refused)
{
  static const size_t shape[8] = {2, 2, 2, 2, 2, 2, 2, 2};
  static const ptrdiff_t strides[8] = {1, 3, 9, 27, 81, 243, 729, 2187};
  clb_layout layout = {8, shape, strides, 1, 0};
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, 4096);
  clb_bytes *bytes;
  const void *data;

  use_plans(CLB_PLAN_PACK, 0);
  bytes = fixture_handle(buffer, &layout);
  ck_status(clb_bytes_read(bytes, CLB_COPY, &data), CLB_UNSUPPORTED);
  ck_message("pack");
  clb_bytes_release(bytes);
  bytes = fixture_handle(buffer, NULL);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* --- Several threads ----------------------------------------------------- */

enum { THREADS = 2 };

struct worker {
  pthread_t thread;
  cl_mem buffer;
  struct drawn d;
  unsigned char *logical;
  double end;
  unsigned rounds;
  const char *wrong;
};

static void *pack_again_and_again(void *user)
{
  struct worker *w = user;
  size_t length = walk_length(&w->d.layout);
  unsigned char *got = malloc(length);

  for (; w->wrong == NULL && fixture_seconds() < w->end; w->rounds++) {
    clb_bytes *bytes = NULL;

    memset(got, 0, length);
    if (clb_bytes_from_buffer(fx.context, w->buffer, &w->d.layout, &bytes) !=
            CLB_OK ||
        clb_bytes_copy_into(bytes, 0, got, length) != CLB_OK)
      w->wrong = "a read failed";
    else if (memcmp(got, w->logical, length) != 0)
      w->wrong = "a read is wrong";
    clb_bytes_release(bytes);
  }
  free(got);
  return NULL;
}

static void run_workers(struct worker *workers, void *(*work)(void *))
{
  for (int i = 0; i < THREADS; i++) {
    workers[i].end = fixture_seconds() + 1;
    ck_assert_int_eq(
        pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) {
    ck_assert_msg(workers[i].wrong == NULL, "thread %d: %s", i,
                  workers[i].wrong);
    ck_assert_uint_gt(workers[i].rounds, 0);
  }
}

/* Of one unit, so that both want the same kernel, with other arguments. */
START_TEST(two_threads_pack_at_once)
{
  struct worker workers[THREADS] = {{0}};

  NEEDS_COMPILER();
  FIXTURE_NEEDS_THREADS();
  use_plans(CLB_PLAN_PACK, CHUNK);
  for (int i = 0; i < THREADS; i++) {
    struct worker *w = &workers[i];
    unsigned char *contents;

    draw(&w->d, i == 0 ? 0 : 5, 4);
    contents = fixture_bytes(w->d.size, (uint64_t)i);
    w->buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, w->d.size);
    w->logical = walk(&w->d.layout, contents);
    free(contents);
  }
  run_workers(workers, pack_again_and_again);
  for (int i = 0; i < THREADS; i++) {
    ck_cl(clReleaseMemObject(workers[i].buffer));
    free(workers[i].logical);
  }
}
END_TEST

/* Every other element of one buffer is a thread's. */
static void *put_again_and_again(void *user)
{
  struct worker *w = user;
  size_t length = walk_length(&w->d.layout);
  unsigned char *got = malloc(length);

  for (; w->wrong == NULL && fixture_seconds() < w->end; w->rounds++) {
    clb_bytes *source = NULL, *bytes = NULL;

    memset(w->logical, (int)w->rounds, length);
    if (clb_bytes_from_host(w->logical, length, NULL, NULL, &source) !=
            CLB_OK ||
        clb_bytes_upload(source, fx.context, w->buffer, &w->d.layout) !=
            CLB_OK ||
        clb_bytes_from_buffer(fx.context, w->buffer, &w->d.layout, &bytes) !=
            CLB_OK ||
        clb_bytes_copy_into(bytes, 0, got, length) != CLB_OK)
      w->wrong = "an upload or a read failed";
    else if (memcmp(got, w->logical, length) != 0)
      w->wrong = "what was uploaded is lost";
    clb_bytes_release(bytes);
    clb_bytes_release(source);
  }
  free(got);
  return NULL;
}

/* [_i]: with flags; a kernel that may not write the buffer works on a copy */
START_TEST(uploads_between_each_others_elements_lose_nothing)
{
  static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_READ_ONLY};
  static const size_t shape[1] = {1000};
  static const ptrdiff_t strides[1] = {8};
  cl_mem buffer = fixture_buffer(flags[_i], NULL, 8000);
  struct worker workers[THREADS] = {{0}};

  NEEDS_COMPILER();
  FIXTURE_NEEDS_THREADS();
  use_plans(CLB_PLAN_PACK, 0);
  for (int i = 0; i < THREADS; i++) {
    workers[i].buffer = buffer;
    workers[i].d.layout = (clb_layout){1, shape, strides, 4, (size_t)i * 4};
    workers[i].logical = fixture_malloc(4000);
  }
  run_workers(workers, put_again_and_again);
  for (int i = 0; i < THREADS; i++)
    free(workers[i].logical);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* --- Wide ---------------------------------------------------------------- */

/* Two rows that are 2 GiB apart; only their pages are ever touched. */
static void try_wide(cl_mem_flags flags)
{
  enum { ITEMS = 6000 };
  const size_t size = (size_t)1 << 31, reach = ITEMS * 8 - 4;
  const size_t row = ITEMS * 4, at[2] = {0, size - reach};
  const size_t shape[2] = {2, ITEMS};
  const ptrdiff_t strides[2] = {(ptrdiff_t)(size - reach), 8};
  const clb_layout layout = {2, shape, strides, 4, 0};
  unsigned char *contents[2], *got = fixture_malloc(row);
  clb_bytes *bytes;
  cl_int err;
  cl_mem buffer = clCreateBuffer(fx.cl, flags, size, NULL, &err);

  if (err != CL_SUCCESS)
    FIXTURE_SKIP("no buffer of 2 GiB");
  bytes = fixture_handle(buffer, &layout);
  for (int i = 0; i < 2; i++) {
    contents[i] = fixture_bytes(reach, (uint64_t)i);
    ck_cl(clEnqueueWriteBuffer(fx.queue, buffer, CL_TRUE, at[i], reach,
                               contents[i], 0, NULL, NULL));
  }
  for (int i = 0; i < 2; i++) {
    ck_ok(clb_bytes_copy_into(bytes, (size_t)i * row + 2, got, row - 3));
    for (size_t j = 2; j < row - 1; j++)
      ck_assert_msg(got[j - 2] == contents[i][j / 4 * 8 + j % 4],
                    "row %d: byte %zu is wrong", i, j);
  }
  if (!(flags & CL_MEM_WRITE_ONLY)) { /* which is copied whole for this */
    ck_ok(clb_bytes_copy_into(bytes, row - 1, got, 2));
    ck_assert(got[0] == contents[0][reach - 1] && got[1] == contents[1][0]);
  }
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(contents[0]);
  free(contents[1]);
  free(got);
}

/* [_i]: with flags; parts of such a layout that are beside it are narrow */
START_TEST(rows_that_are_two_gigabytes_apart_are_packed)
{
  static const cl_mem_flags flags[] = {CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY};

  NEEDS_COMPILER();
  use_plans(CLB_PLAN_PACK, 4096);
  try_wide(flags[_i]);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("pack");
  TCase *all = fixture_case(suite, "all", 120);

  tcase_add_loop_test(all, packed_alone_all_layouts_are_right, 0,
                      ELEMENT_SIZES);
  tcase_add_loop_test(all, beside_other_plans_all_layouts_are_right, 0, 4);
  tcase_add_test(all,
                 packed_by_chunks_of_the_librarys_choice_all_layouts_are_right);
  tcase_add_loop_test(all, buffers_of_all_flags_are_packed, 0, FLAGS);
  tcase_add_test(all, an_out_of_order_queue_is_packed_from);
  tcase_add_test(all, pinned_memory_is_packed_into_and_from);
  tcase_add_test(all, more_dimensions_than_a_kernel_has_are_refused);
  tcase_add_test(all, two_threads_pack_at_once);
  tcase_add_loop_test(all, uploads_between_each_others_elements_lose_nothing,
                      0, 2);
  tcase_add_loop_test(all, rows_that_are_two_gigabytes_apart_are_packed, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
