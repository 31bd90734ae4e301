/*
 * A write that is enqueued right after a read, a stream, a copy or a snapshot
 * returned never shows in it; one enqueued right before always does.  Tries:
 * CLBYTES_TEST_ORDER, 40 unless set.
 */
#include "config.h"

#include "fixture.h"

enum { SIZE = 3 << 20 };

static cl_mem buffer;

static void setup(void)
{
  fixture_setup();
  buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
}

static void teardown(void)
{
  ck_cl(clReleaseMemObject(buffer));
  fixture_teardown();
}

/* A fill of the whole buffer that nobody waits for, on its way at once. */
static void start_fill(cl_command_queue queue, cl_uchar value)
{
  fixture_fill(queue, buffer, value, SIZE, 0, NULL, NULL);
  ck_cl(clFlush(queue));
}

static void expect_all(const void *data, size_t length, cl_uchar value,
                       const char *what, uint64_t try)
{
  size_t at = fixture_other(data, value, length);

  ck_assert_msg(at == length, "%s, try %ju: byte %zu of %zu is %u, not %u",
                what, (uintmax_t)try, at, length,
                ((const unsigned char *)data)[at], value);
}

/* Keeps the whole in mind, as a file would. */
struct kept {
  unsigned char *data;
  size_t length;
};

static int keep_sink(const void *data, size_t length, void *user)
{
  struct kept *kept = user;

  memcpy(kept->data + kept->length, data, length);
  kept->length += length;
  return 0;
}

enum { READ, COPY_INTO, STREAM, SNAPSHOT, VIEW, KINDS };
static const char *const KIND[KINDS] = {"read", "copy_into", "stream",
                                        "snapshot", "view of a snapshot"};

/* One try: fill with before, access, fill with after, look. */
static void try_order(clb_context *context, cl_command_queue queue,
                      const clb_layout *layout, int kind, uint64_t try,
                      unsigned char *memory)
{
  const cl_uchar before = (cl_uchar)(2 * try), after = (cl_uchar)(before + 1);
  struct kept kept = {memory, 0};
  clb_bytes *bytes = NULL, *view = NULL;
  const void *data = memory;
  size_t length;

  ck_ok(clb_bytes_from_buffer(context, buffer, layout, &bytes));
  length = clb_bytes_length(bytes);
  start_fill(queue, before);
  switch (kind) {
  case READ:
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
    break;
  case COPY_INTO:
    ck_ok(clb_bytes_copy_into(bytes, 0, memory, length));
    break;
  case STREAM:
    ck_ok(clb_bytes_stream(bytes, 0, length, keep_sink, &kept));
    break;
  default:
    ck_ok(clb_bytes_snapshot(bytes));
  }
  start_fill(queue, after);
  if (kind == SNAPSHOT) {
    ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  } else if (kind == VIEW) {
    ck_ok(clb_bytes_view(bytes, length / 3, length, &view));
    length -= length / 3;
    ck_ok(clb_bytes_copy_into(view, 0, memory, length));
  }
  expect_all(data, length, before, KIND[kind], try);
  ck_cl(clFinish(queue));
  expect_all(data, length, before, KIND[kind], try);
  clb_bytes_release(view);
  clb_bytes_release(bytes);
}

/* [_i]: kind of access, for an in-order queue and then an out-of-order one */
START_TEST(a_write_enqueued_afterwards_never_shows)
{
  static const size_t whole = SIZE, little = 256;
  clb_layout layouts[] = {
      {1, &whole, NULL, 1, 0},
      {1, &little, NULL, 1, 4096},
      {2, SHAPE(1000, 500), STRIDES(2500, 4), 4, 8},
      {2, SHAPE(500, 700), STRIDES(4, 2500), 4, 8},
  };
  const uint64_t tries = fixture_number("CLBYTES_TEST_ORDER", 40);
  const int out_of_order = _i / KINDS;
  unsigned char *memory;
  cl_command_queue queue = fixture_queue(
      out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
  clb_context *context;

  if (queue == NULL)
    FIXTURE_SKIP("no out-of-order queues");
  memory = fixture_malloc(SIZE);
  ck_ok(clb_context_create(queue, NULL, &context));
  for (uint64_t try = 0; try < tries; try++)
    try_order(context, queue,
              &layouts[try % (sizeof layouts / sizeof *layouts)],
              _i % KINDS, try, memory);
  clb_context_release(context);
  ck_cl(clReleaseCommandQueue(queue));
  free(memory);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("order");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 600);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, a_write_enqueued_afterwards_never_shows, 0,
                      2 * KINDS);
  return fixture_main(suite, FIXTURE_DEVICE);
}
