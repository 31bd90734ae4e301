/* clb_bytes_upload: into any layout, and not a byte beside it. */
#include "config.h"

#include "fixture.h"

enum { SIZE = 60000 };

static unsigned char *contents;
static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  contents = fixture_bytes(SIZE, 20);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  if (fx.context != NULL)
    ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_refs(buffer, 1);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fixture_teardown();
}

static clb_bytes *copy_of(const void *data, size_t length)
{
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_copy(data, length, &bytes));
  return bytes;
}

/* The whole of a buffer is this. */
static void expect_contents(cl_mem where, const void *expected, size_t size)
{
  unsigned char *got = fixture_malloc(size);

  fixture_fetch(where, got, size);
  ck_bytes(got, expected, size);
  free(got);
}

static const struct destination {
  const char *what;
  size_t ndim, shape[5];
  ptrdiff_t strides[5];
  size_t elem_size, offset;
} GOOD[] = {
    {"contiguous", 1, {10000}, {4}, 4, 0},
    {"contiguous at an odd offset", 1, {10001}, {1}, 1, 77},
    {"to the last byte", 1, {10000}, {1}, 1, SIZE - 10000},
    {"rank 0", 0, {0}, {0}, 16, 5},
    {"padded rows", 2, {50, 60}, {400, 4}, 4, 12},
    {"padded rows of an odd pitch", 2, {50, 60}, {401, 4}, 4, 13},
    {"planes whose pitch is no multiple of the row's", 3, {2, 2, 3}, {7, 3, 1},
     1, 2},
    {"planes, padded twice", 3, {5, 6, 7}, {1000, 100, 8}, 4, 0},
    {"transposed", 2, {60, 50}, {4, 240}, 4, 0},
    {"transposed and padded", 2, {60, 50}, {4, 400}, 4, 0},
    {"channels last", 4, {2, 3, 10, 10}, {1200, 4, 120, 12}, 4, 0},
    {"reversed", 1, {1000}, {-4}, 4, 3996},
    {"reversed rows", 2, {20, 30}, {-200, 4}, 4, 3800},
    {"reversed in both", 2, {20, 30}, {-200, -4}, 4, 3916},
    {"stepped", 1, {500}, {12}, 4, 8},
    {"stepped bytes", 1, {3000}, {4}, 1, 1},
    {"extents of 1 with strides of anything", 4, {1, 20, 1, 7},
     {0, 100, -5, 4}, 4, 0},
    {"one element of extents of 1", 2, {1, 1}, {0, 0}, 12, 3},
    {"five dimensions out of order", 5, {2, 3, 4, 5, 6},
     {6, 12, 1800, 36, 1}, 1, 0},
    {"interleaved as its rule allows", 2, {2, 2}, {3, 2}, 1, 0},
    {"empty", 2, {0, 5}, {0, 0}, 4, 0},
    {"empty beyond the end", 1, {0}, {1}, 1, SIZE * 2},
};

static void expect_upload(const struct destination *one, unsigned plans,
                          cl_mem where)
{
  clb_layout layout = {one->ndim, one->shape, one->strides, one->elem_size,
                       one->offset};
  size_t length = walk_length(&layout);
  unsigned char *logical = fixture_bytes(length, 21 + plans);
  unsigned char *expected = fixture_malloc(SIZE);
  clb_bytes *bytes = copy_of(logical, length);
  clb_status status;

  memcpy(expected, contents, SIZE);
  walk_back(&layout, expected, logical);
  fixture_store(where, contents, SIZE);
  status = clb_bytes_upload(bytes, fx.context, where, &layout);
  if (status == CLB_UNSUPPORTED && plans != 0 &&
      (plans & CLB_PLAN_GATHER) == 0 &&
      ((plans & CLB_PLAN_PACK) == 0 || !fixture_compiles())) {
    /* What read, rect or map alone may refuse: but never a positive one. */
    int positive = (plans & (CLB_PLAN_READ | CLB_PLAN_RECT)) != 0;

    for (size_t d = 0; d < layout.ndim; d++)
      if (layout.shape[d] > 1 && layout.strides[d] <= 0)
        positive = 0;
    ck_assert_msg(!positive, "%s with plans %#x: %s", one->what, plans,
                  clb_error_message());
  } else {
    ck_assert_msg(status == CLB_OK, "%s with plans %#x: %s: %s", one->what,
                  plans, clb_status_name(status), clb_error_message());
    expect_contents(where, expected, SIZE);
  }
  clb_bytes_release(bytes);
  free(expected);
  free(logical);
}

static const unsigned PLANS[] = {
    0,
    CLB_PLAN_MAP,
    CLB_PLAN_READ,
    CLB_PLAN_RECT,
    CLB_PLAN_GATHER,
    CLB_PLAN_READ | CLB_PLAN_RECT,
    CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER,
    CLB_PLAN_PACK,
};

/* [_i]: the plans */
START_TEST(bytes_between_the_elements_are_not_touched)
{
  for (int small = 0; small < 2; small++) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

    options.plans = PLANS[_i];
    options.chunk_size = small ? 4096 : 0;
    options.staging_limit = small ? 8192 : 0;
    fixture_options(&options);
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
      fixture_input = GOOD[i].what;
      expect_upload(&GOOD[i], PLANS[_i], buffer);
    }
    if (small)
      ck_assert_uint_le(fixture_stats().staging_peak, 8192);
  }
}
END_TEST

START_TEST(no_layout_is_the_whole_buffer)
{
  unsigned char *other = fixture_bytes(SIZE, 22);
  clb_bytes *bytes = copy_of(other, SIZE);

  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
  expect_contents(buffer, other, SIZE);
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(strides_of_null_are_packed)
{
  clb_layout layout = {2, SHAPE(10, 20), NULL, 4, 100};
  unsigned char *other = fixture_bytes(800, 22);
  unsigned char *expected = fixture_malloc(SIZE);
  clb_bytes *bytes = copy_of(other, 800);

  memcpy(expected, contents, SIZE);
  memcpy(expected + 100, other, 800);
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, &layout));
  expect_contents(buffer, expected, SIZE);
  clb_bytes_release(bytes);
  free(expected);
  free(other);
}
END_TEST

/* --- Refused ------------------------------------------------------------- */

static void expect_refused(cl_mem where, const clb_layout *layout,
                           size_t length, clb_status status)
{
  unsigned char *data = fixture_bytes(length, 23);
  clb_bytes *bytes = copy_of(data, length);

  ck_status(clb_bytes_upload(bytes, fx.context, where, layout), status);
  if (where != NULL)
    ck_refs(where, 1); /* the test's */
  expect_contents(buffer, contents, SIZE);
  clb_bytes_release(bytes);
  free(data);
}

START_TEST(a_layout_that_overlaps_itself_is_refused)
{
  static const struct {
    size_t ndim, shape[3];
    ptrdiff_t strides[3];
    size_t elem_size;
  } bad[] = {
      {1, {5}, {0}, 4},               /* broadcast */
      {2, {5, 3}, {0, 4}, 4},         /* broadcast rows */
      {2, {5, 3}, {12, 0}, 4},        /* broadcast columns */
      {1, {5}, {2}, 4},               /* elements that share bytes */
      {1, {5}, {3}, 4},               /* by one */
      {1, {5}, {-3}, 4},              /* backwards */
      {2, {4, 5}, {19, 4}, 4},        /* rows closer than their reach, by one */
      {2, {4, 5}, {4, 4}, 4},         /* windows */
      {2, {5, 4}, {4, 19}, 4},        /* the same, transposed */
      {2, {3, 2}, {2, 3}, 1},         /* disjoint, but not by the rule */
      {3, {2, 3, 4}, {11, 4, 1}, 1},  /* planes, by one */
      {3, {2, 2, 2}, {4, -4, 1}, 1},
  };

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    clb_layout layout = {bad[i].ndim, bad[i].shape, bad[i].strides,
                         bad[i].elem_size, 1000};

    expect_refused(buffer, &layout, walk_length(&layout), CLB_INVALID_LAYOUT);
  }
}
END_TEST

START_TEST(lengths_that_differ_are_refused)
{
  clb_layout layout = {2, SHAPE(10, 10), STRIDES(100, 4), 4, 0};
  clb_layout empty = {1, SHAPE(0), NULL, 4, 0};

  expect_refused(buffer, &layout, 399, CLB_INVALID_ARGUMENT);
  ck_message("399");
  ck_message("400");
  expect_refused(buffer, &layout, 401, CLB_INVALID_ARGUMENT);
  expect_refused(buffer, &layout, 0, CLB_INVALID_ARGUMENT);
  expect_refused(buffer, &empty, 1, CLB_INVALID_ARGUMENT);
  expect_refused(buffer, NULL, SIZE - 1, CLB_INVALID_ARGUMENT);
  expect_refused(buffer, NULL, SIZE + 1, CLB_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_layout_outside_is_refused)
{
  clb_layout past = {1, SHAPE(SIZE), NULL, 1, 1};
  clb_layout before = {1, SHAPE(10), STRIDES(-4), 4, 35};
  clb_layout elements = {1, SHAPE(10), NULL, 0, 0};
  clb_layout shapeless = {1, NULL, NULL, 4, 0};

  expect_refused(buffer, &past, SIZE, CLB_INVALID_LAYOUT);
  ck_message("60000");
  expect_refused(buffer, &before, 40, CLB_INVALID_LAYOUT);
  expect_refused(buffer, &elements, 0, CLB_INVALID_LAYOUT);
  expect_refused(buffer, &shapeless, 4, CLB_INVALID_ARGUMENT);
}
END_TEST

START_TEST(what_is_no_buffer_of_the_context_is_refused)
{
  clb_bytes *bytes = copy_of("abcd", 4);
  cl_int code;
  cl_context other = clCreateContext(NULL, 1, &fx.device, NULL, NULL, &code);
  cl_mem stranger;

  ck_cl(code);
  stranger = clCreateBuffer(other, CL_MEM_READ_WRITE, 4, NULL, &code);
  ck_cl(code);
  expect_refused(stranger, NULL, 4, CLB_INVALID_ARGUMENT);
  expect_refused(NULL, NULL, 4, CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_upload(bytes, NULL, buffer, NULL),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_bytes_upload(NULL, fx.context, buffer, NULL),
            CLB_INVALID_ARGUMENT);
  ck_cl(clReleaseMemObject(stranger));
  ck_cl(clReleaseContext(other));
  clb_bytes_release(bytes);
}
END_TEST

/* --- From a buffer ------------------------------------------------------- */

/* Uploads one layout of the buffer into another of the same. */
static void expect_move(const clb_layout *from, const clb_layout *to,
                        int materialised)
{
  unsigned char *logical = walk(from, contents);
  unsigned char *expected = fixture_malloc(SIZE);
  clb_bytes *bytes;

  memcpy(expected, contents, SIZE);
  walk_back(to, expected, logical);
  fixture_store(buffer, contents, SIZE);
  bytes = fixture_handle(buffer, from);
  if (materialised)
    expect_read(bytes, logical, walk_length(from));
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, to));
  expect_contents(buffer, expected, SIZE);
  clb_bytes_release(bytes);
  free(expected);
  free(logical);
}

/* With each set of plans that carries everything. */
START_TEST(a_source_on_the_same_root_may_overlap)
{
  clb_layout low = {1, SHAPE(40000), NULL, 1, 100};
  clb_layout high = {1, SHAPE(40000), NULL, 1, 5100};
  clb_layout rows = {2, SHAPE(80, 90), STRIDES(360, 4), 4, 64};
  clb_layout columns = {2, SHAPE(80, 90), STRIDES(4, 320), 4, 64};
  clb_layout backwards = {1, SHAPE(40000), STRIDES(-1), 1, 40099};
  const clb_layout *moves[][2] = {{&low, &high},      {&high, &low},
                                  {&low, &low},       {&rows, &columns},
                                  {&columns, &rows},  {&low, &backwards},
                                  {&backwards, &high}};

  for (size_t p = 0; p < sizeof PLANS / sizeof *PLANS; p++) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

    if (PLANS[p] != 0 && (PLANS[p] & CLB_PLAN_GATHER) == 0)
      continue;
    options.plans = PLANS[p];
    options.chunk_size = 4096;
    options.staging_limit = 8192;
    fixture_options(&options);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
      expect_move(moves[i][0], moves[i][1], 0);
      expect_move(moves[i][0], moves[i][1], 1);
    }
  }
}
END_TEST

START_TEST(a_sub_buffer_and_its_root_may_overlap)
{
  cl_buffer_region region = {4096, 40000};
  cl_int code;
  cl_mem sub = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                 &region, &code);
  clb_layout layout = {1, SHAPE(40000), NULL, 1, 1000};
  unsigned char *expected = fixture_malloc(SIZE);
  clb_bytes *bytes;

  ck_cl(code);
  /* From the sub-buffer into the root. */
  memcpy(expected, contents, SIZE);
  memmove(expected + 1000, expected + 4096, 40000);
  bytes = fixture_handle(sub, NULL);
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, &layout));
  clb_bytes_release(bytes);
  expect_contents(buffer, expected, SIZE);
  /* And back. */
  memmove(expected + 4096, expected + 1000, 40000);
  bytes = fixture_handle(buffer, &layout);
  ck_ok(clb_bytes_upload(bytes, fx.context, sub, NULL));
  clb_bytes_release(bytes);
  expect_contents(buffer, expected, SIZE);
  ck_cl(clReleaseMemObject(sub));
  free(expected);
}
END_TEST

START_TEST(a_strided_source_goes_to_a_strided_destination)
{
  clb_layout from = {2, SHAPE(70, 50), STRIDES(4, 288), 4, 4};
  clb_layout to = {2, SHAPE(70, 50), STRIDES(256, 4), 4, 8};
  unsigned char *logical = walk(&from, contents);
  unsigned char *expected = fixture_bytes(SIZE, 24);
  cl_mem other = fixture_buffer(CL_MEM_READ_WRITE, expected, SIZE);
  clb_bytes *bytes = fixture_handle(buffer, &from), *view;

  walk_back(&to, expected, logical);
  ck_ok(clb_bytes_upload(bytes, fx.context, other, &to));
  expect_contents(other, expected, SIZE);
  /* It read the source without keeping it. */
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_DEVICE);

  to = (clb_layout){1, SHAPE(1000), STRIDES(7), 1, 3};
  ck_ok(clb_bytes_view(bytes, 111, 1111, &view));
  walk_back(&to, expected, logical + 111);
  ck_ok(clb_bytes_upload(view, fx.context, other, &to));
  expect_contents(other, expected, SIZE);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(other));
  free(expected);
  free(logical);
}
END_TEST

START_TEST(a_source_of_another_context_is_read_there)
{
  cl_int code;
  cl_context other = clCreateContext(NULL, 1, &fx.device, NULL, NULL, &code);
  cl_command_queue queue;
  clb_context *context;
  cl_mem stranger;
  clb_bytes *bytes = NULL;
  unsigned char *data = fixture_bytes(SIZE, 25);

  ck_cl(code);
  queue = clCreateCommandQueue(other, fx.device, 0, &code);
  ck_cl(code);
  stranger = clCreateBuffer(other, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                            SIZE, data, &code);
  ck_cl(code);
  ck_ok(clb_context_create(queue, NULL, &context));
  ck_ok(clb_bytes_from_buffer(context, stranger, NULL, &bytes));
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
  expect_contents(buffer, data, SIZE);
  clb_bytes_release(bytes);
  clb_context_release(context);
  ck_cl(clReleaseMemObject(stranger));
  ck_cl(clReleaseCommandQueue(queue));
  ck_cl(clReleaseContext(other));
  free(data);
}
END_TEST

/* Its contents are those of one moment, not of each chunk's. */
START_TEST(a_source_is_accessed_once)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  unsigned char *data = fixture_bytes(SIZE, 26);
  cl_mem other = fixture_buffer(0, data, SIZE);
  clb_bytes *bytes;
  clb_stats stats;

  if (PLANS[_i] == CLB_PLAN_MAP && !fixture_maps()) {
    ck_cl(clReleaseMemObject(other));
    free(data);
    FIXTURE_SKIP("this device does not map");
  }
  options.chunk_size = 4096;
  options.plans = PLANS[_i];
  fixture_options(&options);
  bytes = fixture_handle(other, NULL);
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
  expect_contents(buffer, data, SIZE);
  stats = fixture_stats();
  ck_assert_uint_eq(stats.reads, 1);
  ck_assert_uint_eq(stats.bytes_read, SIZE);
  ck_assert_uint_eq(stats.link_bytes, SIZE);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(other));
  free(data);
}
END_TEST

START_TEST(a_file_is_uploaded)
{
  char path[] = "/tmp/clbytes-upload-XXXXXX";
  int fd = mkstemp(path);
  FILE *file = fdopen(fd, "w");
  unsigned char *data = fixture_bytes(SIZE + 100, 26);
  clb_bytes *bytes = NULL;

  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(data, 1, SIZE + 100, file), SIZE + 100);
  ck_assert_int_eq(fclose(file), 0);
  ck_ok(clb_bytes_from_file(path, 99, SIZE, &bytes));
  ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
  expect_contents(buffer, data + 99, SIZE);
  ck_assert_int_eq(clb_bytes_place(bytes), CLB_PLACE_FILE);
  clb_bytes_release(bytes);
  remove(path);
  free(data);
}
END_TEST

/* --- Flags --------------------------------------------------------------- */

static const struct {
  const char *what;
  cl_mem_flags flags;
} FLAGS[] = {
    {"read and write", CL_MEM_READ_WRITE},
    {"read only", CL_MEM_READ_ONLY},
    {"write only", CL_MEM_WRITE_ONLY},
    {"host read only", CL_MEM_HOST_READ_ONLY},
    {"host write only", CL_MEM_HOST_WRITE_ONLY},
    {"host no access", CL_MEM_HOST_NO_ACCESS},
    {"read only, host no access", CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS},
    {"write only, host read only", CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY},
    {"alloc host ptr", CL_MEM_ALLOC_HOST_PTR},
};

/* [_i]: the flags */
START_TEST(a_buffer_of_any_flags_is_written)
{
  cl_mem flagged = fixture_buffer(FLAGS[_i].flags, contents, SIZE);

  fixture_input = FLAGS[_i].what;
  for (size_t p = 0; p < sizeof PLANS / sizeof *PLANS; p++) {
    clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

    options.plans = PLANS[p];
    fixture_options(&options);
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
      expect_upload(&GOOD[i], PLANS[p], flagged);
  }
  ck_refs(flagged, 1);
  ck_cl(clReleaseMemObject(flagged));
}
END_TEST

START_TEST(a_sub_buffer_of_any_flags_is_written)
{
  cl_buffer_region region = {512, 20480};
  clb_layout layout = {2, SHAPE(30, 40), STRIDES(500, 8), 4, 24};
  unsigned char *logical = fixture_bytes(4800, 27);
  unsigned char *expected = fixture_malloc(SIZE);
  clb_bytes *bytes = copy_of(logical, 4800);
  cl_int code;
  cl_mem sub;

  memcpy(expected, contents, SIZE);
  walk_back(&layout, expected + 512, logical);
  for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++) {
    if ((FLAGS[i].flags & CL_MEM_ALLOC_HOST_PTR) != 0)
      continue; /* no flag of a sub-buffer */
    fixture_input = FLAGS[i].what;
    fixture_store(buffer, contents, SIZE);
    sub = clCreateSubBuffer(buffer, FLAGS[i].flags,
                            CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    ck_cl(code);
    ck_ok(clb_bytes_upload(bytes, fx.context, sub, &layout));
    ck_cl(clReleaseMemObject(sub));
    expect_contents(buffer, expected, SIZE);
  }
  clb_bytes_release(bytes);
  free(expected);
  free(logical);
}
END_TEST

/* --- Order --------------------------------------------------------------- */

START_TEST(what_was_enqueued_before_is_overwritten)
{
  unsigned char *other = fixture_bytes(SIZE, 28);
  clb_bytes *bytes = copy_of(other, SIZE);

  for (cl_uchar value = 0; value < 20; value++) {
    fixture_fill(fx.queue, buffer, value, SIZE, 0, NULL, NULL);
    ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
    ck_cl(clFinish(fx.queue));
    expect_contents(buffer, other, SIZE);
  }
  clb_bytes_release(bytes);
  free(other);
}
END_TEST

START_TEST(commands_enqueued_afterwards_see_it)
{
  cl_command_queue second = fixture_queue(0);
  cl_mem copy = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);

  for (uint64_t round = 0; round < 20; round++) {
    unsigned char *data = fixture_bytes(SIZE, 100 + round);
    clb_bytes *bytes = copy_of(data, SIZE);

    ck_ok(clb_bytes_upload(bytes, fx.context, buffer, NULL));
    clb_bytes_release(bytes);
    ck_cl(clEnqueueCopyBuffer(round % 2 == 0 ? fx.queue : second, buffer, copy,
                              0, 0, SIZE, 0, NULL, NULL));
    ck_cl(clFinish(second));
    expect_contents(copy, data, SIZE);
    free(data);
  }
  ck_cl(clReleaseMemObject(copy));
  ck_cl(clReleaseCommandQueue(second));
}
END_TEST

START_TEST(an_out_of_order_queue_works)
{
  cl_command_queue queue =
      fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  clb_context *context;
  unsigned char *other;
  clb_bytes *bytes;

  if (queue == NULL)
    FIXTURE_SKIP("no out-of-order queues");
  other = fixture_bytes(SIZE, 28);
  bytes = copy_of(other, SIZE);
  ck_ok(clb_context_create(queue, NULL, &context));
  for (cl_uchar value = 0; value < 20; value++) {
    fixture_fill(queue, buffer, value, SIZE, 0, NULL, NULL);
    ck_ok(clb_bytes_upload(bytes, context, buffer, NULL));
    ck_cl(clFinish(queue));
    expect_contents(buffer, other, SIZE);
  }
  clb_context_release(context);
  clb_bytes_release(bytes);
  ck_cl(clReleaseCommandQueue(queue));
  free(other);
}
END_TEST

START_TEST(down_and_up_again_is_the_same)
{
  clb_layout layout = {3, SHAPE(9, 11, 13), STRIDES(4, 4000, 40), 4, 0};
  clb_bytes *bytes, *host;
  const void *data;

  bytes = fixture_handle(buffer, &layout);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  host = copy_of(data, clb_bytes_length(bytes));
  ck_ok(clb_bytes_upload(host, fx.context, buffer, &layout));
  expect_contents(buffer, contents, SIZE);
  clb_bytes_release(bytes);
  clb_bytes_release(host);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("upload");
  TCase *all = tcase_create("device");
  const int plans = sizeof PLANS / sizeof *PLANS;
  const int flags = sizeof FLAGS / sizeof *FLAGS;

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, bytes_between_the_elements_are_not_touched, 0,
                      plans);
  tcase_add_test(all, no_layout_is_the_whole_buffer);
  tcase_add_test(all, strides_of_null_are_packed);
  tcase_add_test(all, a_layout_that_overlaps_itself_is_refused);
  tcase_add_test(all, lengths_that_differ_are_refused);
  tcase_add_test(all, a_layout_outside_is_refused);
  tcase_add_test(all, what_is_no_buffer_of_the_context_is_refused);
  tcase_add_test(all, a_source_on_the_same_root_may_overlap);
  tcase_add_test(all, a_sub_buffer_and_its_root_may_overlap);
  tcase_add_test(all, a_strided_source_goes_to_a_strided_destination);
  tcase_add_test(all, a_source_of_another_context_is_read_there);
  tcase_add_loop_test(all, a_source_is_accessed_once, 0, plans);
  tcase_add_test(all, a_file_is_uploaded);
  tcase_add_loop_test(all, a_buffer_of_any_flags_is_written, 0, flags);
  tcase_add_test(all, a_sub_buffer_of_any_flags_is_written);
  tcase_add_test(all, what_was_enqueued_before_is_overwritten);
  tcase_add_test(all, commands_enqueued_afterwards_see_it);
  tcase_add_test(all, an_out_of_order_queue_works);
  tcase_add_test(all, down_and_up_again_is_the_same);
  return fixture_main(suite, FIXTURE_DEVICE);
}
