/*
 * Loads: every tensor is on the device afterwards, where it was placed, and
 * what cannot be placed is refused before anything is read.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <unistd.h>

#define HEADER                                                                 \
  "{\"__metadata__\":{\"k\":\"v\"},"                                           \
  "\"a.x\":" ST_ENTRY("\"F32\"", "[4,6]", "[0,96]") ","                        \
  "\"a.y\":" ST_ENTRY("\"U8\"", "[5]", "[96,101]") ","                         \
  "\"b\":" ST_ENTRY("\"I16\"", "[0,3]", "[101,101]") ","                       \
  "\"c\":" ST_ENTRY("\"U8\"", "[]", "[101,102]") "}"

enum { DATA = 102 };

static unsigned char *data;

static void write_file(void)
{
  struct text file;

  data = fixture_bytes(DATA, 5);
  file = st_file(HEADER, data, DATA);
  file_write("in", file.data, file.length);
  free(file.data);
}

static void ck_tensor(const clb_safetensors *file, const char *name,
                      const void *expected, size_t length)
{
  clb_tensor found;
  cl_mem buffer;
  size_t offset;

  ck_ok(clb_safetensors_find(file, name, &found));
  ck_assert_int_eq(clb_bytes_place(found.bytes), CLB_PLACE_DEVICE);
  ck_assert_uint_eq(clb_bytes_length(found.bytes), length);
  expect_copy_into(found.bytes, expected, length);
  if (clb_bytes_buffer(found.bytes, &buffer, &offset) == CLB_OK)
    ck_cl(clReleaseMemObject(buffer));
}

/* What places a.x; the others are skipped where only is set. */
struct where {
  clb_placement of;
  int only, stop;
  size_t calls;
};

static int put(clb_placement *placement, void *user)
{
  struct where *where = user;
  const clb_tensor *tensor = placement->tensor;

  where->calls++;
  if (strcmp(tensor->name, "a.x") == 0) {
    *placement = where->of;
    placement->tensor = tensor;
    return where->stop;
  }
  placement->skip = where->only;
  return 0;
}

START_TEST(a_whole_file_is_loaded)
{
  clb_safetensors *file;
  clb_pair pair;
  clb_tensor found;

  write_file();
  ck_ok(clb_safetensors_load("in", fx.context, NULL, NULL, NULL, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 4);
  ck_tensor(file, "a.x", data, 96);
  ck_tensor(file, "a.y", data + 96, 5);
  ck_tensor(file, "b", data, 0);
  ck_tensor(file, "c", data + 101, 1);
  ck_ok(clb_safetensors_find(file, "a.x", &found));
  ck_assert_uint_eq(found.ndim, 2);
  ck_assert_uint_eq(found.shape[1], 6);
  ck_ok(clb_safetensors_metadata_at(file, 0, &pair));
  ck_assert_str_eq(pair.value, "v");
  clb_safetensors_close(file);
  free(data);
}
END_TEST

START_TEST(names_and_a_prefix_choose)
{
  static const char *const names[] = {"c", "a.y"}, *const wrong[] = {"zz"};
  clb_load_options options = CLB_LOAD_OPTIONS_INIT;
  clb_safetensors *file;

  write_file();
  options.names = names;
  options.name_count = 2;
  ck_ok(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 2);
  ck_tensor(file, "c", data + 101, 1);
  ck_tensor(file, "a.y", data + 96, 5);
  clb_safetensors_close(file);
  options.prefix = "a.";
  ck_ok(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 1);
  clb_safetensors_close(file);
  options.names = wrong;
  options.name_count = 1;
  ck_status(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file),
            CLB_NOT_FOUND);
  ck_message("zz");
  ck_assert_ptr_null(file);
  free(data);
}
END_TEST

START_TEST(a_part_goes_into_a_transposed_layout_with_padding)
{
  /* Rows 3 and 1, every other column from the last on, backwards. */
  static const size_t start[] = {3, 5}, count[] = {2, 3}, shape[] = {2, 3};
  static const ptrdiff_t step[] = {-2, -2}, strides[] = {4, 12};
  clb_layout layout = {2, shape, strides, 4, 8};
  unsigned char before[64], after[64], expected[64], part[24];
  struct where where = {.of = {.start = start, .count = count, .step = step,
                               .layout = &layout},
                        .only = 1};
  clb_safetensors *file;
  size_t n = 0;

  write_file();
  for (int r = 3; r >= 1; r -= 2)
    for (int c = 5; c >= 1; c -= 2)
      memcpy(part + 4 * n++, data + 4 * (6 * r + c), 4);
  memset(before, 0xab, sizeof before);
  memcpy(expected, before, sizeof before);
  walk_back(&layout, expected, part);
  where.of.buffer = fixture_buffer(CL_MEM_READ_WRITE, before, sizeof before);
  ck_ok(clb_safetensors_load("in", fx.context, put, &where, NULL, &file));
  ck_assert_uint_eq(where.calls, 4);
  ck_assert_uint_eq(clb_safetensors_count(file), 1);
  ck_tensor(file, "a.x", part, sizeof part);
  fixture_fetch(where.of.buffer, after, sizeof after);
  ck_bytes(after, expected, sizeof after);
  clb_safetensors_close(file);
  ck_refs(where.of.buffer, 1);
  ck_cl(clReleaseMemObject(where.of.buffer));
  free(data);
}
END_TEST

static void refused(struct where *where, clb_status expected)
{
  clb_safetensors *file;

  ck_status(clb_safetensors_load("in", fx.context, put, where, NULL, &file),
            expected);
  ck_message("a.x");
  ck_assert_ptr_null(file);
}

START_TEST(what_does_not_fit_is_refused)
{
  static const size_t few[] = {4, 5}, all[] = {4, 6}, far[] = {5, 0};
  static const ptrdiff_t same[] = {0, 4};
  clb_layout wrong = {2, few, NULL, 4, 0}, repeats = {2, all, same, 4, 0};
  struct where where = {.of = {.layout = &wrong}};

  write_file();
  refused(&where, CLB_INVALID_ARGUMENT);
  where.of.layout = &repeats;
  refused(&where, CLB_INVALID_LAYOUT);
  where.of.layout = NULL;
  where.of.start = far;
  refused(&where, CLB_INVALID_ARGUMENT);
  where.of.start = NULL;
  where.of.buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, 95);
  refused(&where, CLB_INVALID_LAYOUT);
  ck_refs(where.of.buffer, 1);
  ck_cl(clReleaseMemObject(where.of.buffer));
  where.of.buffer = NULL;
  where.stop = 1;
  refused(&where, CLB_CANCELLED);
  free(data);
}
END_TEST

static int stop(uint64_t done, uint64_t total, void *user)
{
  (void)user;
  ck_assert_uint_eq(total, DATA);
  return done >= 96;
}

START_TEST(progress_cancels)
{
  clb_load_options options = CLB_LOAD_OPTIONS_INIT;
  clb_safetensors *file;

  write_file();
  options.progress = stop;
  ck_status(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file),
            CLB_CANCELLED);
  ck_assert_ptr_null(file);
  free(data);
}
END_TEST

static int cut_short(clb_placement *placement, void *user)
{
  (void)placement;
  (void)user;
  ck_assert_int_eq(truncate("in", 120), 0);
  return 0;
}

START_TEST(file_that_is_cut_short_meanwhile_is_an_error)
{
  clb_safetensors *file;

  write_file();
  ck_status(clb_safetensors_load("in", fx.context, cut_short, NULL, NULL, &file),
            CLB_IO_ERROR);
  ck_message("a.x");
  ck_assert_ptr_null(file);
  free(data);
}
END_TEST

START_TEST(part_that_names_a_start_alone_is_a_slices)
{
  static const size_t start[] = {1, 4};
  struct where where = {.of = {.start = start}, .only = 1};
  clb_bytes *whole, *part;
  clb_tensor tensor;
  clb_safetensors *read, *file;
  clb_status sliced, loaded;

  write_file();
  ck_ok(clb_safetensors_open("in", &read));
  ck_ok(clb_safetensors_find(read, "a.x", &tensor));
  ck_ok(clb_bytes_reshape(tensor.bytes, 2, tensor.shape, 4, &whole));
  sliced = clb_bytes_slice(whole, start, NULL, NULL, &part);
  loaded =
    clb_safetensors_load("in", fx.context, put, &where, NULL, &file);
  ck_assert_int_eq(sliced == CLB_OK, loaded == CLB_OK);
  if (sliced == CLB_OK) {
    ck_assert_uint_eq(clb_bytes_length(part), 3 * 2 * 4);
    clb_bytes_release(part);
    clb_safetensors_close(file);
  }
  clb_bytes_release(whole);
  clb_safetensors_close(read);
  free(data);
}
END_TEST

START_TEST(file_without_tensors_is_loaded)
{
  clb_safetensors *file;

  st_write("none", "{}", "", 0);
  ck_ok(clb_safetensors_load("none", fx.context, NULL, NULL, NULL, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 0);
  clb_safetensors_close(file);
}
END_TEST

START_TEST(set_is_loaded_by_its_index)
{
  static const char *const names[] = {"one", "two", "three"};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  unsigned char *bytes = fixture_bytes(3000, 8);
  clb_tensor tensors[3] = {{0}};
  size_t rows[2] = {10, 100};
  clb_safetensors *file;

  for (int i = 0; i < 3; i++) {
    tensors[i] = (clb_tensor){.name = names[i], .dtype = "U8", .ndim = 2,
                              .shape = rows};
    ck_ok(clb_bytes_from_copy(bytes + 1000 * i, 1000, &tensors[i].bytes));
  }
  options.max_shard_size = 1500;
  ck_ok(clb_safetensors_save("m.safetensors", tensors, 3, &options));
  ck_ok(clb_safetensors_load("m.safetensors.index.json", fx.context, NULL, NULL,
                             NULL, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), 3);
  for (int i = 0; i < 3; i++) {
    ck_tensor(file, names[i], bytes + 1000 * i, 1000);
    clb_bytes_release(tensors[i].bytes);
  }
  clb_safetensors_close(file);
  free(bytes);
}
END_TEST

/* The handles outlive the object. */
START_TEST(handles_that_are_retained_stay)
{
  clb_safetensors *file;
  clb_tensor found;
  clb_bytes *kept;

  write_file();
  ck_ok(clb_safetensors_load("in", fx.context, NULL, NULL, NULL, &file));
  ck_ok(clb_safetensors_find(file, "a.x", &found));
  kept = clb_bytes_retain(found.bytes);
  clb_safetensors_close(file);
  expect_copy_into(kept, data, 96);
  clb_bytes_release(kept);
  free(data);
}
END_TEST

START_TEST(arguments_are_checked_first)
{
  clb_load_options options = CLB_LOAD_OPTIONS_INIT;
  clb_safetensors *file = NULL;

  write_file();
  ck_status(clb_safetensors_load(NULL, fx.context, NULL, NULL, NULL, &file),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_load("in", NULL, NULL, NULL, NULL, &file),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_load("in", fx.context, NULL, NULL, NULL, NULL),
            CLB_INVALID_ARGUMENT);
  options.name_count = 1;
  ck_status(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file),
            CLB_INVALID_ARGUMENT);
  ck_message("name_count is 1");
  options.name_count = 0;
  options.io = CLB_FILE_DIRECT;
  ck_status(clb_safetensors_load("in", fx.context, NULL, NULL, &options, &file),
            CLB_UNSUPPORTED);
  ck_status(clb_safetensors_load("none", fx.context, NULL, NULL, NULL, &file),
            CLB_IO_ERROR);
  ck_assert_ptr_null(file);
  free(data);
}
END_TEST

START_TEST(buffer_of_another_context_is_refused)
{
  cl_context other;
  cl_int code;
  struct where where = {.only = 1};

  write_file();
  other = clCreateContext(NULL, 1, &fx.device, NULL, NULL, &code);
  ck_cl(code);
  where.of.buffer = clCreateBuffer(other, CL_MEM_READ_WRITE, 96, NULL, &code);
  ck_cl(code);
  refused(&where, CLB_INVALID_ARGUMENT);
  ck_cl(clReleaseMemObject(where.of.buffer));
  ck_cl(clReleaseContext(other));
  free(data);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors_load");
  TCase *all = files_case_device(suite, "all", 20);

  tcase_add_test(all, a_whole_file_is_loaded);
  tcase_add_test(all, names_and_a_prefix_choose);
  tcase_add_test(all, a_part_goes_into_a_transposed_layout_with_padding);
  tcase_add_test(all, what_does_not_fit_is_refused);
  tcase_add_test(all, progress_cancels);
  tcase_add_test(all, file_that_is_cut_short_meanwhile_is_an_error);
  tcase_add_test(all, part_that_names_a_start_alone_is_a_slices);
  tcase_add_test(all, file_without_tensors_is_loaded);
  tcase_add_test(all, set_is_loaded_by_its_index);
  tcase_add_test(all, handles_that_are_retained_stay);
  tcase_add_test(all, arguments_are_checked_first);
  tcase_add_test(all, buffer_of_another_context_is_refused);
  return files_main(suite, FIXTURE_DEVICE);
}
