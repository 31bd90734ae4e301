/*
 * Saves from the device, byte for byte against files that compose.c puts
 * together: every way of writing, lengths around pages and blocks, layouts,
 * plans, wait lists, sources and devices.
 */
#include "config.h"

#include "compose.h"

#include <pthread.h>
#include <unistd.h>

static const size_t chunks[] = {4096, 8192, 65536, 0};
enum { CHUNKS = sizeof chunks / sizeof *chunks };

static void use_chunk(size_t chunk, unsigned plans)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  static char input[64];

  options.chunk_size = chunk;
  options.plans = plans;
  fixture_options(&options);
  snprintf(input, sizeof input, "chunks of %zu, plans %u", chunk, plans);
  fixture_input = input;
}

static clb_layout row_of(size_t *length, size_t offset)
{
  clb_layout layout = {1, length, NULL, 1, offset};

  return layout;
}

/* --- Lengths -------------------------------------------------------------- */

START_TEST(lengths_around_pages_and_blocks_are_whole_in_every_way)
{
  enum { SIZE = 1 << 20 };
  unsigned char *contents = fixture_bytes(SIZE, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);

  for (size_t c = 0; c < CHUNKS; c++) {
    size_t chunk = chunks[c] > 0 ? chunks[c] : 100000;
    size_t lengths[] = {1, 4095, 4096, 4097, chunk - 1, chunk, chunk + 1,
                        chunk - 4096, chunk - 4097, 3 * chunk + 5, 2};
    struct parts parts = {0};

    use_chunk(chunks[c], 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      size_t length = lengths[i] > 0 && lengths[i] < SIZE ? lengths[i] : 3;
      clb_layout layout = row_of(&length, 7 * i);
      struct parts alone = {0};
      char name[32];

      snprintf(name, sizeof name, "t%zu", i);
      parts_add_device(&parts, name, "U8", buffer, contents, &layout);
      parts_add_device(&alone, name, "U8", buffer, contents, &layout);
      for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++)
        parts_save(&alone, ".", (clb_file_io)io, 0);
      parts_free(&alone);
    }
    parts_save_all(&parts);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* The block that the library chooses is passed too. */
START_TEST(tensors_larger_than_the_blocks_the_library_chooses_are_whole)
{
  size_t size = (size_t)9 << 20, length = size - 3, small = 4097;
  unsigned char *contents = fixture_bytes(size, 2);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, size);
  clb_layout large = row_of(&length, 3), one = row_of(&small, 1);
  struct parts parts = {0};

  parts_add_device(&parts, "a", "U8", buffer, contents, &one);
  parts_add_device(&parts, "b", "U8", buffer, contents, &large);
  for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++)
    parts_save(&parts, ".", (clb_file_io)io, io % 2);
  ck_assert_uint_le(fixture_stats().staging_peak, (size_t)40 << 20);
  parts_free(&parts);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

START_TEST(thousands_of_tiny_tensors_are_whole_in_every_way)
{
  enum { SIZE = 1 << 16, COUNT = 3000 };
  unsigned char *contents = fixture_bytes(SIZE, 3);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);

  for (size_t c = 0; c < CHUNKS; c++) {
    struct parts parts = {0};
    uint64_t seed = 5;

    use_chunk(chunks[c], 0);
    for (int i = 0; i < COUNT; i++) {
      size_t length = fixture_below(&seed, 12);
      clb_layout layout = row_of(&length, fixture_below(&seed, SIZE - 12));
      char name[32];

      snprintf(name, sizeof name, "%x", (unsigned)fixture_random(&seed) * 4096 +
               (unsigned)i);
      parts_add_device(&parts, name, i % 3 == 0 ? "I8" : "U8", buffer,
                       contents, &layout);
    }
    if (chunks[c] == 0)
      parts_save_all(&parts);
    else
      parts_save(&parts, ".", CLB_FILE_AUTO, 0);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* --- Layouts -------------------------------------------------------------- */

enum { BUFFER = 1 << 17 };

/* Layouts of every kind, of a page or more each. */
static void add_layouts(struct parts *parts, cl_mem buffer,
                        const unsigned char *contents)
{
  static const size_t matrix[] = {61, 83}, cube[] = {7, 40, 31}, row[] = {5000},
                      tall[] = {3000, 1}, image[] = {2, 3, 20, 30}, none[] = {
                        4, 0, 3};
  static const ptrdiff_t padded[] = {640, 4}, transposed[] = {4, 244},
                         upside_down[] = {-332, 4}, turned[] = {-640, -4},
                         all_one[] = {0}, one_row[] = {0, 2}, back[] = {-4},
                         column[] = {8, 1}, odd[] = {7, 301, 3},
                         last[] = {7200, 4, 360, 12}, every[] = {1, 1, 1},
                         wide[] = {4 * 1300, 130, 4};
  const struct {
    const char *name, *dtype;
    clb_layout layout;
  } kinds[] = {
    {"packed", "F32", {2, matrix, NULL, 4, 64}},
    {"padded", "F32", {2, matrix, padded, 4, 4}},
    {"transposed", "I32", {2, matrix, transposed, 4, 0}},
    {"upside down", "U32", {2, matrix, upside_down, 4, 60 * 332}},
    {"turned", "U32", {2, matrix, turned, 4, 60 * 640 + 82 * 4}},
    {"broadcast", "F32", {1, row, all_one, 4, 12}},
    {"broadcast rows", "I16", {2, matrix, one_row, 2, 100}},
    {"reversed", "F32", {1, row, back, 4, 4999 * 4}},
    {"scalar", "F64", {0, NULL, NULL, 8, 8}},
    {"unaligned", "F64", {1, row, NULL, 8, 3}},
    {"tall", "U8", {2, tall, column, 1, 5}},
    {"odd", "BOOL", {3, cube, odd, 1, 0}},
    {"overlapping", "U8", {3, cube, every, 1, 11}},
    {"wide", "F32", {3, cube, wide, 4, 16}},
    {"channels last", "F32", {4, image, last, 4, 0}},
    {"none", "F64", {3, none, every, 8, BUFFER}},
  };

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char text[200];
    struct part *part = parts_add_device(parts, kinds[i].name, kinds[i].dtype,
                                         buffer, contents, &kinds[i].layout);

    /* Not all plans carry all layouts. */
    if (clb_bytes_plan(part->tensor.bytes, text, sizeof text) ==
        CLB_UNSUPPORTED) {
      clb_bytes_release(part->tensor.bytes);
      free(part->logical);
      parts->count--;
    }
  }
}

START_TEST(layouts_are_whole_by_every_plan_and_in_every_way)
{
  static const unsigned masks[] = {
    0, CLB_PLAN_MAP, CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER,
    CLB_PLAN_MAP | CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER,
    CLB_PLAN_READ | CLB_PLAN_PACK, CLB_PLAN_READ | CLB_PLAN_RECT,
    CLB_PLAN_GATHER};
  unsigned char *contents = fixture_bytes(BUFFER, 4);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, BUFFER);

  for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
    for (size_t c = 0; c < CHUNKS; c++) {
      struct parts parts = {0};

      use_chunk(chunks[c], masks[m]);
      add_layouts(&parts, buffer, contents);
      if (masks[m] != CLB_PLAN_MAP || fixture_maps())
        ck_assert_uint_gt(parts.count, 4);
      if (masks[m] == 0 || (masks[m] & CLB_PLAN_GATHER) != 0)
        ck_assert_uint_eq(parts.count, 16);
      if (c == 1)
        parts_save_all(&parts);
      for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED && c != 1; io++)
        parts_save(&parts, ".", (clb_file_io)io, 0);
      ck_assert_uint_eq(fixture_stats().host_peak, 0);
      parts_free(&parts);
    }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* Random layouts of a buffer, whole files of them. */
START_TEST(random_layouts_in_random_ways_are_whole)
{
  static const struct {
    const char *name;
    size_t bytes;
  } dtypes[] = {{"U8", 1}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"BOOL", 1}};
  uint64_t rounds = fixture_number("CLBYTES_TEST_LAYOUTS", 40), seed = 9;
  unsigned char *contents = fixture_bytes(BUFFER, 5);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, BUFFER);

  for (uint64_t round = 0; round < rounds; round++) {
    size_t count = 1 + fixture_below(&seed, 12);
    struct parts parts = {0};

    if (round % 4 == 0)
      use_chunk(chunks[fixture_below(&seed, CHUNKS)], 0);
    for (size_t i = 0; i < count; i++) {
      size_t type = fixture_below(&seed, 5), bytes = dtypes[type].bytes;
      size_t ndim = fixture_below(&seed, 4), shape[3], reach = bytes;
      ptrdiff_t strides[3], first = 0;
      clb_layout layout = {ndim, shape, strides, bytes, 0};
      char name[32];

      for (size_t d = 0; d < ndim; d++) {
        size_t most = (BUFFER - reach) / (ndim * 64);
        ptrdiff_t stride;

        shape[d] = 1 + fixture_below(&seed, d == 0 ? 400 : 30);
        stride = (ptrdiff_t)fixture_below(
          &seed, (BUFFER - reach) / shape[d] / 2 < most
                   ? (BUFFER - reach) / shape[d] / 2 : most);
        if (fixture_below(&seed, 3) == 0) /* packed after the one before */
          stride = (ptrdiff_t)bytes < (ptrdiff_t)(BUFFER / shape[d] / 4)
                     ? (ptrdiff_t)bytes : 1;
        reach += (shape[d] - 1) * (size_t)stride;
        if (fixture_below(&seed, 4) == 0) {
          first += (ptrdiff_t)(shape[d] - 1) * stride;
          stride = -stride;
        }
        strides[d] = stride;
      }
      ck_assert_uint_le(reach, BUFFER);
      layout.offset = (size_t)first + fixture_below(&seed, BUFFER - reach + 1);
      snprintf(name, sizeof name, "t%zu", i);
      parts_add_device(&parts, name, dtypes[type].name, buffer, contents,
                       &layout);
    }
    parts_save(&parts, ".", (clb_file_io)fixture_below(&seed, 4),
               fixture_below(&seed, 6) == 0);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* --- Empty, and parts of bytes -------------------------------------------- */

START_TEST(empty_tensors_and_parts_of_bytes_are_whole_in_every_way)
{
  static const size_t none[] = {0, 7}, six[] = {4, 1000}, four[] = {6002};
  unsigned char *contents = fixture_bytes(BUFFER, 6);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, BUFFER);

  for (int with = 0; with < 2; with++) {
    struct parts parts = {0};
    struct part *part;
    size_t length = 3000;
    clb_layout bytes = row_of(&length, 9), empty = {2, none, NULL, 4, 0};

    parts_add_device(&parts, "none", "F32", buffer, contents, &empty);
    parts_add_device(&parts, "also none", "U32", buffer, contents, &empty);
    parts_add(&parts, "nothing", "F32", NULL, NULL, 0);
    part = &parts.all[2];
    ck_ok(clb_bytes_from_copy(NULL, 0, &part->tensor.bytes));
    part->tensor.shape = none;
    part->tensor.ndim = 2;
    if (with) {
      part = parts_add_device(&parts, "six", "F6_E2M3", buffer, contents,
                              &bytes);
      part->tensor.shape = six;
      part->tensor.ndim = 2;
      length = 3001;
      part = parts_add_device(&parts, "four", "F4", buffer, contents, &bytes);
      part->tensor.shape = four;
      part->tensor.ndim = 1;
      parts_add_device(&parts, "eight", "F8_E4M3", buffer, contents, &bytes);
    }
    parts_save_all(&parts);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

/* --- Wait lists ----------------------------------------------------------- */

static void *set_event(void *user)
{
  fixture_sleep(0.05);
  clSetUserEventStatus(user, CL_COMPLETE);
  return NULL;
}

/* Tensors of one buffer that two other queues write, each after its events. */
START_TEST(tensors_are_saved_as_their_wait_lists_leave_them)
{
  enum { HALF = 50000 };
  unsigned char *contents, *noise;
  cl_command_queue queues[2];

  FIXTURE_NEEDS_THREADS();
  FIXTURE_NEEDS_UNSET_EVENTS();
  contents = fixture_bytes(2 * HALF, 7);
  noise = fixture_bytes(2 * HALF, 8);
  queues[0] = fixture_queue(0);
  queues[1] = fixture_queue(0);
  for (size_t c = 0; c < CHUNKS; c++) {
    struct parts parts = {0};
    cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, noise, 2 * HALF);
    cl_event begin, written[2];
    pthread_t thread;
    cl_int code;

    use_chunk(chunks[c], 0);
    begin = clCreateUserEvent(fx.cl, &code);
    ck_cl(code);
    for (int q = 0; q < 2; q++) {
      ck_cl(clEnqueueWriteBuffer(queues[q], buffer, CL_FALSE, q * HALF, HALF,
                                 contents + q * HALF, 1, &begin, &written[q]));
      ck_cl(clFlush(queues[q]));
    }
    for (int i = 0; i < 24; i++) {
      /* By turns after the first's, the second's, both. */
      size_t length = 2000 + 11 * (size_t)i;
      clb_layout layout = row_of(&length, i % 3 == 1   ? HALF + 50 * (size_t)i
                                          : i % 3 == 2 ? HALF - 1000
                                                       : 50 * (size_t)i);
      clb_bytes *bytes;
      char name[32];

      snprintf(name, sizeof name, "t%d", i);
      ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, &layout,
                                        i % 3 == 2 ? 2 : 1,
                                        i % 3 == 1 ? &written[1] : written,
                                        &bytes));
      parts_add(&parts, name, "U8", bytes, contents + layout.offset, length);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, set_event, begin), 0);
    parts_save(&parts, ".", (clb_file_io)c, 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    parts_free(&parts);
    ck_cl(clReleaseEvent(begin));
    ck_cl(clReleaseEvent(written[0]));
    ck_cl(clReleaseEvent(written[1]));
    ck_cl(clReleaseMemObject(buffer));
  }
  ck_cl(clReleaseCommandQueue(queues[0]));
  ck_cl(clReleaseCommandQueue(queues[1]));
  free(contents);
  free(noise);
}
END_TEST

/* What was enqueued before a save is in it, of each context of its own. */
START_TEST(saves_see_what_was_enqueued_before_on_each_queue)
{
  unsigned char *contents = fixture_bytes(BUFFER, 10);
  unsigned char *noise = fixture_bytes(BUFFER, 11);
  cl_command_queue queue = fixture_queue(0);
  size_t length = BUFFER;
  clb_layout layout = row_of(&length, 0);
  clb_context *other;

  ck_ok(clb_context_create(queue, NULL, &other));
  for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++) {
    cl_mem buffers[2];
    struct parts parts = {0};
    clb_bytes *bytes;

    for (int i = 0; i < 2; i++)
      buffers[i] = fixture_buffer(CL_MEM_READ_WRITE, noise, BUFFER);
    ck_ok(clb_bytes_from_buffer(other, buffers[1], &layout, &bytes));
    parts_add_device(&parts, "here", "U8", buffers[0], contents, &layout);
    parts_add(&parts, "there", "U8", bytes, contents, BUFFER);
    ck_cl(clEnqueueWriteBuffer(fx.queue, buffers[0], CL_FALSE, 0, BUFFER,
                               contents, 0, NULL, NULL));
    ck_cl(clEnqueueWriteBuffer(queue, buffers[1], CL_FALSE, 0, BUFFER, contents,
                               0, NULL, NULL));
    parts_save(&parts, ".", (clb_file_io)io, 0);
    parts_free(&parts);
    ck_cl(clReleaseMemObject(buffers[0]));
    ck_cl(clReleaseMemObject(buffers[1]));
  }
  clb_context_release(other);
  ck_cl(clReleaseCommandQueue(queue));
  free(contents);
  free(noise);
}
END_TEST

/* --- Sources -------------------------------------------------------------- */

START_TEST(tensors_of_devices_files_and_the_host_are_whole_in_every_way)
{
  unsigned char *contents = fixture_bytes(BUFFER, 12);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, BUFFER);

  file_write("source", contents, BUFFER);
  for (size_t c = 0; c < CHUNKS; c++) {
    struct parts parts = {0};
    uint64_t seed = c;

    use_chunk(chunks[c], 0);
    for (int i = 0; i < 48; i++) {
      size_t length = fixture_below(&seed, i % 7 == 0 ? 40000 : 3000);
      size_t offset = fixture_below(&seed, BUFFER - length + 1);
      clb_layout layout = row_of(&length, offset);
      clb_bytes *bytes = NULL;
      const void *data;
      char name[32];

      snprintf(name, sizeof name, "t%d", i);
      switch (fixture_below(&seed, 5)) {
      case 0:
        ck_ok(clb_bytes_from_file("source", offset, length, &bytes));
        break;
      case 1:
        ck_ok(clb_bytes_from_host(contents + offset, length, NULL, NULL,
                                  &bytes));
        break;
      case 2: /* on the host by a read */
        bytes = fixture_handle(buffer, &layout);
        ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
        break;
      default:
        bytes = fixture_handle(buffer, &layout);
      }
      parts_add(&parts, name, i % 5 == 0 ? "I8" : "U8", bytes,
                contents + offset, length);
    }
    parts_save_all(&parts);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("saves from the device");
  TCase *all = files_case_device(suite, "all", 60);

  tcase_add_test(all, lengths_around_pages_and_blocks_are_whole_in_every_way);
  tcase_add_test(all,
                 tensors_larger_than_the_blocks_the_library_chooses_are_whole);
  tcase_add_test(all, thousands_of_tiny_tensors_are_whole_in_every_way);
  tcase_add_test(all, layouts_are_whole_by_every_plan_and_in_every_way);
  tcase_add_test(all, random_layouts_in_random_ways_are_whole);
  tcase_add_test(all, empty_tensors_and_parts_of_bytes_are_whole_in_every_way);
  tcase_add_test(all, tensors_are_saved_as_their_wait_lists_leave_them);
  tcase_add_test(all, saves_see_what_was_enqueued_before_on_each_queue);
  tcase_add_test(all,
                 tensors_of_devices_files_and_the_host_are_whole_in_every_way);
  return files_main(suite, FIXTURE_DEVICE);
}
