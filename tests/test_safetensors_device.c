/*
 * Saves of what is on the device: every kind of layout is written in its
 * logical order, nothing is materialised, sinks may use the library, and a
 * device that fails names the tensor.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <pthread.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

/* A tensor on the device and its logical bytes by the oracle. */
struct expected {
  clb_tensor tensor;
  unsigned char *logical;
  size_t length;
};

static unsigned char *contents; /* of every buffer here */

static clb_layout layout_of(size_t ndim, const size_t *shape,
                            const ptrdiff_t *strides, size_t elem_size,
                            size_t offset)
{
  clb_layout layout = {ndim, shape, strides, elem_size, offset};

  return layout;
}

static struct expected expect(cl_mem buffer, const char *name,
                              const char *dtype, const clb_layout *layout)
{
  struct expected made = {{name, dtype, layout->ndim, NULL, NULL}, NULL, 0};

  ck_ok(clb_bytes_from_buffer(fx.context, buffer, layout, &made.tensor.bytes));
  made.logical = walk(layout, contents);
  made.length = walk_length(layout);
  return made;
}

/* The file has just these tensors, in this order, with these bytes. */
static void ck_contents(const char *path, const struct expected *all,
                        size_t count)
{
  clb_safetensors *file;

  ck_ok(clb_safetensors_open(path, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), count);
  for (size_t i = 0; i < count; i++) {
    clb_tensor found;
    const void *data;

    ck_ok(clb_safetensors_find(file, all[i].tensor.name, &found));
    ck_assert_str_eq(found.dtype, all[i].tensor.dtype);
    ck_assert_uint_eq(clb_bytes_length(found.bytes), all[i].length);
    ck_ok(clb_bytes_read(found.bytes, CLB_COPY, &data));
    ck_assert_msg(fixture_difference(data, all[i].logical, all[i].length) ==
                    all[i].length, "%s differs", found.name);
  }
  clb_safetensors_close(file);
}

static void save_and_check(const struct expected *all, size_t count)
{
  clb_tensor *tensors = fixture_malloc(count * sizeof *tensors);
  struct gathered sunk = {0};

  for (size_t i = 0; i < count; i++)
    tensors[i] = all[i].tensor;
  ck_ok(clb_safetensors_save("out", tensors, count, NULL));
  ck_contents("out", all, count);
  ck_ok(clb_safetensors_write(gather_sink, &sunk, tensors, count, NULL));
  ck_file("out", sunk.data, sunk.length);
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(clb_bytes_place(tensors[i].bytes), CLB_PLACE_DEVICE);
  free(sunk.data);
  free(tensors);
}

static void give_back(struct expected *all, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    clb_bytes_release(all[i].tensor.bytes);
    free(all[i].logical);
  }
}

static cl_mem known_buffer(void)
{
  contents = fixture_bytes(BUFFER, 8);
  return fixture_buffer(CL_MEM_READ_WRITE, contents, BUFFER);
}

static void give_buffer_back(cl_mem buffer)
{
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}

/* --- Layouts ------------------------------------------------------------- */

START_TEST(layouts_of_every_kind_are_written_in_logical_order)
{
  static const size_t image[] = {2, 3, 4, 4}, matrix[] = {17, 13}, row[] = {5},
                      none[] = {3, 0, 2}, rgb[] = {9, 7}, tall[] = {300, 1},
                      cube[] = {2, 2, 3};
  /* Channels last: stored as (2, 4, 4, 3). */
  static const ptrdiff_t last[] = {192, 4, 48, 12};
  static const ptrdiff_t padded[] = {64, 4}, transposed[] = {4, 68},
                         upside_down[] = {-52, 4}, broadcast[] = {0},
                         reversed[] = {-4}, both[] = {-64, -4},
                         any[] = {1, 1 << 20, -7}, pixels[] = {32, 3},
                         column[] = {8, 1}, odd[] = {7, 3, 1},
                         one_row[] = {0, 2};
  const struct {
    const char *name, *dtype;
    clb_layout layout;
  } kinds[] = {
    {"channels last", "F32", layout_of(4, image, last, 4, 0)},
    {"packed", "F32", layout_of(2, matrix, NULL, 4, 64)},
    {"padded", "F32", layout_of(2, matrix, padded, 4, 4)},
    {"transposed", "I32", layout_of(2, matrix, transposed, 4, 0)},
    {"upside down", "U32", layout_of(2, matrix, upside_down, 4, 16 * 52)},
    {"turned", "U32", layout_of(2, matrix, both, 4, 16 * 64 + 48)},
    {"broadcast", "F32", layout_of(1, row, broadcast, 4, 12)},
    {"broadcast rows", "I16", layout_of(2, matrix, one_row, 2, 100)},
    {"reversed", "F32", layout_of(1, row, reversed, 4, 16)},
    {"scalar", "F64", layout_of(0, NULL, NULL, 8, 8)},
    {"unaligned", "F64", layout_of(1, row, NULL, 8, 3)},
    {"none", "F64", layout_of(3, none, any, 8, BUFFER)},
    {"tall", "U8", layout_of(2, tall, column, 1, 5)},
    {"odd", "BOOL", layout_of(3, cube, odd, 1, 0)},
    {"brain floats", "BF16", layout_of(2, matrix, padded, 2, 2)},
    {"complex", "C64", layout_of(2, matrix, padded, 8, 8)},
    {"small floats", "F8_E4M3", layout_of(2, rgb, pixels, 1, 1)},
  };
  enum { COUNT = sizeof kinds / sizeof *kinds };
  struct expected all[COUNT];
  cl_mem buffer = known_buffer();

  for (size_t i = 0; i < COUNT; i++)
    all[i] = expect(buffer, kinds[i].name, kinds[i].dtype, &kinds[i].layout);
  save_and_check(all, COUNT);
  for (size_t i = 0; i < COUNT; i++)
    save_and_check(&all[i], 1);
  give_back(all, COUNT);
  give_buffer_back(buffer);
}
END_TEST

START_TEST(shape_null_is_the_layouts_shape)
{
  static const size_t image[] = {2, 3, 4, 4};
  static const ptrdiff_t last[] = {192, 4, 48, 12};
  clb_layout layout = {4, image, last, 4, 0}, scalar = {0, NULL, NULL, 8, 0};
  struct expected all[2];
  cl_mem buffer = known_buffer();
  clb_tensor tensors[2];
  struct text file, data = {0};

  all[0] = expect(buffer, "image", "F32", &layout);
  all[1] = expect(buffer, "scalar", "F64", &scalar);
  tensors[0] = all[0].tensor;
  tensors[1] = all[1].tensor;
  text_bytes(&data, all[1].logical, 8);
  text_bytes(&data, all[0].logical, all[0].length);
  file = st_file("{\"scalar\":" ST_ENTRY("\"F64\"", "[]", "[0,8]")
                 ",\"image\":" ST_ENTRY("\"F32\"", "[2,3,4,4]", "[8,392]") "}",
                 data.data, data.length);
  ck_ok(clb_safetensors_save("out", tensors, 2, NULL));
  ck_file("out", file.data, file.length);
  /* A dtype of another size makes another length of the shape. */
  tensors[0].dtype = "F64";
  ck_status(clb_safetensors_save("out", tensors, 2, NULL),
            CLB_INVALID_ARGUMENT);
  ck_message("image");
  ck_file("out", file.data, file.length);
  /* A shape of the caller's may fold the dimensions. */
  tensors[0].dtype = "F64";
  tensors[0].ndim = 1;
  tensors[0].shape = &(size_t){48};
  ck_ok(clb_safetensors_save("out", tensors, 1, NULL));
  ck_contents("out", &(struct expected){tensors[0], all[0].logical, 384}, 1);
  give_back(all, 2);
  give_buffer_back(buffer);
  free(file.data);
  free(data.data);
}
END_TEST

START_TEST(views_of_strided_tensors_are_written)
{
  static const size_t matrix[] = {40, 50};
  static const ptrdiff_t padded[] = {256, 4}, transposed[] = {4, 164};
  clb_layout layouts[] = {{2, matrix, padded, 4, 20},
                          {2, matrix, transposed, 4, 8}};
  cl_mem buffer = known_buffer();

  for (int i = 0; i < 2; i++) {
    struct expected whole = expect(buffer, "whole", "F32", &layouts[i]);
    uint64_t seed = 3;

    for (int round = 0; round < 20; round++) {
      size_t start = fixture_below(&seed, whole.length);
      size_t length = fixture_below(&seed, whole.length - start + 1);
      struct expected part = {{"part", "U8", 0, NULL, NULL},
                              whole.logical + start, length};

      ck_ok(clb_bytes_view(whole.tensor.bytes, start, start + length,
                           &part.tensor.bytes));
      save_and_check(&part, 1);
      clb_bytes_release(part.tensor.bytes);
    }
    give_back(&whole, 1);
  }
  give_buffer_back(buffer);
}
END_TEST

START_TEST(tensors_of_several_contexts_and_sources_are_one_file)
{
  static const size_t matrix[] = {16, 16};
  static const ptrdiff_t transposed[] = {4, 64};
  clb_layout layout = {2, matrix, transposed, 4, 0};
  cl_mem buffer = known_buffer();
  cl_command_queue queue = fixture_queue(0);
  clb_context *other;
  struct expected all[4];

  ck_ok(clb_context_create(queue, NULL, &other));
  all[0] = expect(buffer, "here", "F32", &layout);
  all[1] = all[0];
  all[1].tensor.name = "there";
  ck_ok(clb_bytes_from_buffer(other, buffer, &layout, &all[1].tensor.bytes));
  file_write("source", contents, BUFFER);
  all[2] = (struct expected){{"file", "U8", 0, NULL, NULL}, contents + 5, 1000};
  ck_ok(clb_bytes_from_file("source", 5, 1000, &all[2].tensor.bytes));
  all[3] = (struct expected){{"host", "I8", 0, NULL, NULL}, contents, BUFFER};
  ck_ok(clb_bytes_from_host(contents, BUFFER, NULL, NULL,
                            &all[3].tensor.bytes));
  clb_context_release(other);
  ck_cl(clReleaseCommandQueue(queue));
  {
    clb_tensor tensors[4];

    for (int i = 0; i < 4; i++)
      tensors[i] = all[i].tensor;
    ck_ok(clb_safetensors_save("out", tensors, 4, NULL));
  }
  ck_contents("out", all, 4);
  for (int i = 0; i < 4; i++)
    clb_bytes_release(all[i].tensor.bytes);
  free(all[0].logical);
  give_buffer_back(buffer);
}
END_TEST

/* --- Staging ------------------------------------------------------------- */

START_TEST(tensors_ten_times_the_staging_limit_stay_within_it)
{
  enum { ROWS = 512, COLUMNS = 640 };
  static const size_t matrix[] = {ROWS, COLUMNS};
  static const ptrdiff_t padded[] = {COLUMNS * 4 + 64, 4},
                         transposed[] = {4, ROWS * 4};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 0},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"packed", "padded", "transposed"};
  size_t size = ROWS * (COLUMNS * 4 + 64);
  struct expected all[3];
  cl_mem buffer;

  options.chunk_size = 32768;
  options.staging_limit = 131072;
  fixture_options(&options);
  contents = fixture_bytes(size, 9);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, size);
  for (int i = 0; i < 3; i++)
    all[i] = expect(buffer, names[i], "F32", &layouts[i]);
  save_and_check(all, 3);
  ck_assert_uint_le(fixture_stats().staging_peak, options.staging_limit);
  give_back(all, 3);
  give_buffer_back(buffer);
}
END_TEST

/* --- Sinks and progress that use the library ----------------------------- */

struct reader {
  struct expected *other; /* of the same context */
  clb_tensor *tensors;
  size_t count, calls;
};

static int use_the_library(struct reader *reader)
{
  struct expected *other = reader->other;
  unsigned char *copy = fixture_malloc(other->length);
  struct gathered streamed = {0};
  const void *data;
  clb_bytes *view;

  ck_ok(clb_bytes_view(other->tensor.bytes, 0, other->length, &view));
  ck_ok(clb_bytes_copy_into(view, 0, copy, other->length));
  ck_bytes(copy, other->logical, other->length);
  ck_ok(clb_bytes_read(view, CLB_COPY, &data));
  ck_bytes(data, other->logical, other->length);
  clb_bytes_release(view);
  ck_ok(clb_bytes_stream(other->tensor.bytes, 0, other->length, gather_sink,
                         &streamed));
  ck_assert_uint_eq(streamed.length, other->length);
  ck_bytes(streamed.data, other->logical, other->length);
  free(streamed.data);
  free(copy);
  if (reader->calls++ % 4 == 0) {
    ck_ok(clb_safetensors_save("inner", reader->tensors, reader->count, NULL));
    ck_contents("inner", other, 1);
  }
  return 0;
}

static int using_sink(const void *data, size_t length, void *user)
{
  struct reader *reader = user;
  unsigned char *before = fixture_malloc(length);

  /* What was passed stays as it is meanwhile. */
  memcpy(before, data, length);
  use_the_library(reader);
  ck_bytes(data, before, length);
  free(before);
  return 0;
}

static int using_progress(uint64_t done, uint64_t total, void *user)
{
  (void)done;
  (void)total;
  return use_the_library(user);
}

START_TEST(sinks_and_progress_may_read_stream_and_save)
{
  static const size_t matrix[] = {100, 100};
  static const ptrdiff_t padded[] = {640, 4}, transposed[] = {4, 400};
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 128},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"a", "b", "c"};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_save_options save = CLB_SAVE_OPTIONS_INIT;

  /* With one block of staging and with several. */
  for (size_t blocks = 1; blocks <= 4; blocks += 3) {
    cl_mem buffer = known_buffer();
    struct expected all[3];
    clb_tensor tensors[3];
    struct reader reader = {&all[1], &tensors[1], 1, 0};

    options.chunk_size = 8192;
    options.staging_limit = blocks * 8192;
    fixture_options(&options);
    for (int i = 0; i < 3; i++) {
      all[i] = expect(buffer, names[i], "F32", &layouts[i]);
      tensors[i] = all[i].tensor;
    }
    ck_ok(clb_safetensors_write(using_sink, &reader, tensors, 3, NULL));
    ck_assert_uint_gt(reader.calls, 3);
    save.progress = using_progress;
    save.user = &reader;
    ck_ok(clb_safetensors_save("out", tensors, 3, &save));
    ck_contents("out", all, 3);
    ck_assert_uint_eq(files_in("."), 2);
    ck_assert_uint_le(fixture_stats().staging_peak, options.staging_limit);
    give_back(all, 3);
    give_buffer_back(buffer);
  }
}
END_TEST

static int stop_at_once(uint64_t done, uint64_t total, void *user)
{
  (void)total;
  (void)user;
  return done > 0;
}

/* Chunks that are on their way when a save stops are waited for by somebody,
 * and hold nothing afterwards. */
START_TEST(stopped_saves_leave_nothing_behind)
{
  static const size_t matrix[] = {100, 100};
  static const ptrdiff_t padded[] = {640, 4}, transposed[] = {4, 400};
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 128},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"a", "b", "c"};
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_save_options save = CLB_SAVE_OPTIONS_INIT;
  cl_mem buffer = known_buffer();
  size_t descriptors = fixture_descriptors();

  options.chunk_size = 4096;
  options.staging_limit = 16384;
  save.progress = stop_at_once;
  for (int mapping = 0; mapping < 2; mapping++) {
    struct expected all[3];

    options.plans = mapping ? 0 : CLB_PLAN_READ | CLB_PLAN_RECT |
                                  CLB_PLAN_GATHER;
    fixture_options(&options);
    for (int i = 0; i < 3; i++) {
      all[i] = expect(buffer, names[i], "F32", &layouts[i]);
      file_write("out", "old", 3);
      for (int round = 0; round < 10; round++)
        ck_status(clb_safetensors_save("out", &all[i].tensor, 1, &save),
                  CLB_CANCELLED);
      ck_file("out", "old", 3);
      ck_assert_uint_eq(files_in("."), 1);
      save_and_check(&all[i], 1);
    }
    give_back(all, 3);
    clb_context_release(fx.context);
    fx.context = NULL;
    /* PoCL lets go of its own references a moment late. */
    for (int i = 0; i < 100 && fixture_buffer_refs(buffer) > 1; i++)
      fixture_sleep(0.01);
    ck_assert_uint_eq(fixture_buffer_refs(buffer), 1);
    ck_assert_uint_le(fixture_descriptors(), descriptors);
  }
  give_buffer_back(buffer);
}
END_TEST

START_TEST(a_thousand_saves_keep_nothing)
{
  static const size_t matrix[] = {20, 10};
  static const ptrdiff_t padded[] = {64, 4}, transposed[] = {4, 80};
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 0},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"a", "b", "c"};
  cl_mem buffer = known_buffer();
  struct growth growth = {.times = 220};
  size_t descriptors = 0;
  struct expected all[3];
  clb_tensor tensors[3];

  for (int i = 0; i < 3; i++) {
    all[i] = expect(buffer, names[i], "F32", &layouts[i]);
    tensors[i] = all[i].tensor;
  }
  while (growing(&growth)) {
    if (growth.round == growth.times)
      descriptors = fixture_descriptors();
    ck_ok(clb_safetensors_save("out", tensors, 3, NULL));
  }
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  ck_flat(&growth, 1 << 18);
  ck_contents("out", all, 3);
  give_back(all, 3);
  give_buffer_back(buffer);
}
END_TEST

/* --- What a save sees ---------------------------------------------------- */

START_TEST(write_right_after_a_save_never_shows)
{
  static const size_t matrix[] = {100, 80};
  static const ptrdiff_t padded[] = {512, 4}, transposed[] = {4, 400};
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 0},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"a", "b", "c"};
  cl_mem buffer = known_buffer();
  unsigned char *noise = fixture_bytes(BUFFER, 77);
  struct expected all[3];
  clb_tensor tensors[3];

  for (int i = 0; i < 3; i++) {
    all[i] = expect(buffer, names[i], "F32", &layouts[i]);
    tensors[i] = all[i].tensor;
  }
  for (int i = 0; i < 100; i++) {
    ck_ok(clb_safetensors_save("out", tensors, 3, NULL));
    ck_cl(clEnqueueWriteBuffer(fx.queue, buffer, CL_FALSE, 0, BUFFER, noise, 0,
                               NULL, NULL));
    ck_cl(clFinish(fx.queue));
    ck_contents("out", all, 3);
    fixture_store(buffer, contents, BUFFER);
  }
  give_back(all, 3);
  give_buffer_back(buffer);
  free(noise);
}
END_TEST

START_TEST(save_sees_what_was_enqueued_before_it)
{
  clb_layout layout = {1, &(size_t){BUFFER}, NULL, 1, 0};
  cl_mem buffer = known_buffer();
  unsigned char *noise = fixture_bytes(BUFFER, 77);
  struct expected x = expect(buffer, "x", "U8", &layout);

  ck_cl(clEnqueueWriteBuffer(fx.queue, buffer, CL_FALSE, 0, BUFFER, noise, 0,
                             NULL, NULL));
  ck_ok(clb_safetensors_save("out", &x.tensor, 1, NULL));
  ck_contents("out", &(struct expected){x.tensor, noise, BUFFER}, 1);
  give_back(&x, 1);
  give_buffer_back(buffer);
  free(noise);
}
END_TEST

START_TEST(snapshot_is_saved_as_it_was_taken)
{
  static const size_t matrix[] = {100, 80};
  static const ptrdiff_t transposed[] = {4, 400};
  clb_layout layout = {2, matrix, transposed, 4, 0};
  cl_mem buffer = known_buffer();
  unsigned char *noise = fixture_bytes(BUFFER, 77);
  struct expected x = expect(buffer, "x", "F32", &layout);

  ck_ok(clb_bytes_snapshot(x.tensor.bytes));
  fixture_store(buffer, noise, BUFFER);
  ck_ok(clb_safetensors_save("out", &x.tensor, 1, NULL));
  ck_contents("out", &x, 1);
  give_back(&x, 1);
  give_buffer_back(buffer);
  free(noise);
}
END_TEST

START_TEST(what_is_on_the_host_already_is_saved)
{
  clb_layout layout = {1, &(size_t){1000}, NULL, 4, 12};
  cl_mem buffer = known_buffer();
  unsigned char *noise = fixture_bytes(BUFFER, 77);
  struct expected x = expect(buffer, "x", "F32", &layout);
  const void *data;

  ck_ok(clb_bytes_read(x.tensor.bytes, CLB_COPY, &data));
  fixture_store(buffer, noise, BUFFER);
  ck_ok(clb_safetensors_save("out", &x.tensor, 1, NULL));
  ck_contents("out", &x, 1);
  give_back(&x, 1);
  give_buffer_back(buffer);
  free(noise);
}
END_TEST

/* --- A device that fails ------------------------------------------------- */

START_TEST(failed_event_names_the_tensor_and_keeps_the_old_file)
{
  cl_mem buffer = known_buffer();
  clb_layout layout = {1, &(size_t){BUFFER}, NULL, 1, 0};
  struct expected first = expect(buffer, "first", "U8", &layout);
  clb_tensor tensors[2] = {first.tensor, {"second", "U8", 0, NULL, NULL}};
  size_t descriptors = fixture_descriptors();
  struct gathered sunk = {0};
  cl_event event;
  cl_int code;

  event = clCreateUserEvent(fx.cl, &code);
  ck_cl(code);
  ck_cl(clSetUserEventStatus(event, -5));
  ck_ok(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 1, &event,
                                    &tensors[1].bytes));
  file_write("out", "old", 3);
  for (int i = 0; i < 3; i++) {
    double start = fixture_seconds();

    ck_status(clb_safetensors_save("out", tensors, 2, NULL),
              CLB_DEVICE_ERROR);
    ck_message("second");
    ck_assert_double_lt(fixture_seconds() - start, 1.0);
    ck_file("out", "old", 3);
    ck_assert_uint_eq(files_in("."), 1);
  }
  ck_status(clb_safetensors_write(gather_sink, &sunk, tensors, 2, NULL),
            CLB_DEVICE_ERROR);
  ck_message("second");
  ck_assert_uint_le(fixture_descriptors(), descriptors);
  ck_ok(clb_safetensors_save("out", tensors, 1, NULL));
  ck_contents("out", &first, 1);
  clb_bytes_release(tensors[1].bytes);
  ck_cl(clReleaseEvent(event));
  give_back(&first, 1);
  give_buffer_back(buffer);
  free(sunk.data);
}
END_TEST

/* --- Threads ------------------------------------------------------------- */

struct saver {
  pthread_t thread;
  char path[16];
  struct expected *all;
  size_t count;
};

static void *save_a_few(void *user)
{
  struct saver *saver = user;
  clb_tensor tensors[3];

  for (size_t i = 0; i < saver->count; i++)
    tensors[i] = saver->all[i].tensor;
  for (int i = 0; i < 5; i++) {
    ck_ok(clb_safetensors_save(saver->path, tensors, saver->count, NULL));
    ck_contents(saver->path, saver->all, saver->count);
  }
  return NULL;
}

START_TEST(threads_save_the_same_handles)
{
  static const size_t matrix[] = {100, 80};
  static const ptrdiff_t padded[] = {512, 4}, transposed[] = {4, 400};
  const clb_layout layouts[] = {{2, matrix, NULL, 4, 0},
                                {2, matrix, padded, 4, 0},
                                {2, matrix, transposed, 4, 0}};
  static const char *const names[] = {"a", "b", "c"};
  enum { THREADS = 6 };
  struct saver savers[THREADS];
  struct expected all[3];
  cl_mem buffer;

  FIXTURE_NEEDS_THREADS();
  buffer = known_buffer();
  for (int i = 0; i < 3; i++)
    all[i] = expect(buffer, names[i], "F32", &layouts[i]);
  for (int i = 0; i < THREADS; i++) {
    snprintf(savers[i].path, sizeof savers[i].path, "out%d", i);
    savers[i].all = all;
    savers[i].count = 3;
    ck_assert_int_eq(pthread_create(&savers[i].thread, NULL, save_a_few,
                                    &savers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(savers[i].thread, NULL), 0);
  ck_assert_uint_eq(files_in("."), THREADS);
  give_back(all, 3);
  give_buffer_back(buffer);
}
END_TEST

/* --- Saved, opened, uploaded, saved -------------------------------------- */

START_TEST(what_is_saved_uploads_to_the_same_layout)
{
  static const size_t image[] = {2, 3, 4, 4};
  static const ptrdiff_t last[] = {192, 4, 48, 12};
  clb_layout layout = {4, image, last, 4, 0};
  cl_mem buffer = known_buffer(), copy;
  struct expected x = expect(buffer, "x", "F32", &layout);
  clb_safetensors *file;
  clb_tensor found;
  unsigned char back[384];

  ck_ok(clb_safetensors_save("out", &x.tensor, 1, NULL));
  ck_ok(clb_safetensors_open("out", &file));
  ck_ok(clb_safetensors_find(file, "x", &found));
  copy = fixture_buffer(CL_MEM_READ_WRITE, NULL, sizeof back);
  ck_ok(clb_bytes_upload(found.bytes, fx.context, copy, &layout));
  fixture_fetch(copy, back, sizeof back);
  ck_bytes(back, contents, sizeof back);
  clb_safetensors_close(file);
  ck_cl(clReleaseMemObject(copy));
  give_back(&x, 1);
  give_buffer_back(buffer);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors of the device");
  TCase *layouts = files_case_device(suite, "layouts", 60);
  TCase *calls = files_case_device(suite, "calls", 120);

  tcase_add_test(layouts, layouts_of_every_kind_are_written_in_logical_order);
  tcase_add_test(layouts, shape_null_is_the_layouts_shape);
  tcase_add_test(layouts, views_of_strided_tensors_are_written);
  tcase_add_test(layouts,
                 tensors_of_several_contexts_and_sources_are_one_file);
  tcase_add_test(layouts, tensors_ten_times_the_staging_limit_stay_within_it);
  tcase_add_test(layouts, what_is_saved_uploads_to_the_same_layout);
  tcase_add_test(calls, sinks_and_progress_may_read_stream_and_save);
  tcase_add_test(calls, stopped_saves_leave_nothing_behind);
  tcase_add_test(calls, a_thousand_saves_keep_nothing);
  tcase_add_test(calls, write_right_after_a_save_never_shows);
  tcase_add_test(calls, save_sees_what_was_enqueued_before_it);
  tcase_add_test(calls, snapshot_is_saved_as_it_was_taken);
  tcase_add_test(calls, what_is_on_the_host_already_is_saved);
  tcase_add_test(calls,
                 failed_event_names_the_tensor_and_keeps_the_old_file);
  tcase_add_test(calls, threads_save_the_same_handles);
  return files_main(suite, FIXTURE_DEVICE);
}
