/* What a failure says: which call, which dimension, which numbers. */
#include "config.h"

#include "fixture.h"

#include <clbytes/safetensors.h>

enum { SIZE = 4096 };

static cl_mem buffer;
static clb_bytes *whole;
static unsigned char memory[2 * SIZE];

static void setup(void)
{
  fixture_setup();
  buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  whole = fixture_handle(buffer, NULL);
}

static void teardown(void)
{
  clb_bytes_release(whole);
  ck_cl(clReleaseMemObject(buffer));
  fixture_teardown();
}

/* The message is exactly that. */
#define ck_says(expression, status, words)                                     \
  do {                                                                         \
    ck_status(expression, status);                                             \
    ck_assert_str_eq(clb_error_message(), words);                              \
  } while (0)

static int take(const void *data, size_t length, void *user)
{
  (void)data;
  (void)length;
  (void)user;
  return 0;
}

static int stop(uint64_t done, uint64_t total, void *user)
{
  (void)done;
  (void)total;
  (void)user;
  return 1;
}

#define ck_names(call, missing)                                                \
  do {                                                                         \
    ck_status(call, CLB_INVALID_ARGUMENT);                                     \
    ck_starts(#call, missing);                                                 \
  } while (0)

/* "clb_bytes_read(...)" has the message "clb_bytes_read: MISSING is NULL". */
static void ck_starts(const char *call, const char *missing)
{
  char words[128];

  snprintf(words, sizeof words, "%.*s: %s", (int)strcspn(call, "("), call,
           missing);
  ck_message(words);
  ck_assert_ptr_eq(strstr(clb_error_message(), words), clb_error_message());
}

START_TEST(what_is_missing_is_named_with_its_call)
{
  clb_save_options pairs = CLB_SAVE_OPTIONS_INIT;
  clb_context *context;
  clb_bytes *out;
  const void *data;
  void *room;
  size_t size;
  int equal;
  cl_mem mem;
  char text[8];

  pairs.metadata_count = 2;
  ck_names(clb_context_create(NULL, NULL, &context), "queue is NULL");
  ck_names(clb_context_create(fx.queue, NULL, NULL), "out is NULL");
  ck_names(clb_host_alloc(NULL, 1, &room), "context is NULL");
  ck_names(clb_bytes_from_buffer(NULL, buffer, NULL, &out), "context is NULL");
  ck_names(clb_bytes_from_buffer(fx.context, NULL, NULL, &out),
           "buffer is NULL");
  ck_names(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 0, NULL, NULL),
           "out is NULL");
  ck_names(clb_bytes_from_buffer_after(fx.context, buffer, NULL, 3, NULL, &out),
           "num_events is 3, and wait_list is NULL");
  ck_names(clb_bytes_from_file(NULL, 0, 0, &out), "path is NULL");
  ck_names(clb_bytes_from_host(memory, 1, NULL, NULL, NULL), "out is NULL");
  ck_names(clb_bytes_from_copy(NULL, 1, &out), "data is NULL");
  ck_names(clb_bytes_set_label(NULL, "x"), "bytes is NULL");
  ck_names(clb_bytes_layout(whole, NULL), "out is NULL");
  ck_names(clb_bytes_plan(whole, NULL, 8), "text is NULL");
  ck_names(clb_bytes_plan(whole, text, 0), "size is 0");
  ck_names(clb_bytes_read(whole, CLB_COPY, NULL), "data is NULL");
  ck_names(clb_bytes_read(whole, (clb_access)9, &data), "no such access: 9");
  ck_names(clb_bytes_write(NULL, CLB_COPY, &room), "bytes is NULL");
  ck_names(clb_bytes_write(whole, CLB_MAP, &room), "access 2 is not CLB_COPY");
  ck_names(clb_bytes_copy_into(whole, 0, NULL, 1), "dst is NULL");
  ck_names(clb_bytes_copy_into_layout(NULL, memory, 1, NULL), "bytes is NULL");
  ck_names(clb_bytes_stream(whole, 0, 0, NULL, NULL), "sink is NULL");
  ck_names(clb_bytes_prefetch(NULL, NULL), "bytes is NULL");
  ck_names(clb_bytes_wait(NULL, 0), "bytes is NULL");
  ck_names(clb_bytes_evict(NULL), "bytes is NULL");
  ck_names(clb_bytes_snapshot(NULL), "bytes is NULL");
  ck_names(clb_bytes_view(whole, 0, 0, NULL), "out is NULL");
  ck_names(clb_bytes_slice(whole, NULL, NULL, NULL, NULL), "out is NULL");
  ck_names(clb_bytes_reshape(NULL, 0, NULL, 1, &out), "bytes is NULL");
  ck_names(clb_bytes_clone(NULL, &out), "bytes is NULL");
  ck_names(clb_bytes_split(whole, 0, CLB_SPLIT_SHARED, &out, NULL),
           "right is NULL");
  ck_names(clb_bytes_split(whole, 0, (clb_split)7, &out, &out),
           "no such split: 7");
  ck_names(clb_bytes_detach(whole, NULL, &size), "data is NULL");
  ck_names(clb_bytes_equal(whole, NULL, &equal), "the second handle is NULL");
  ck_names(clb_bytes_buffer(whole, &mem, NULL), "offset is NULL");
  ck_names(clb_bytes_upload(whole, NULL, buffer, NULL), "context is NULL");
  ck_names(clb_safetensors_save(NULL, NULL, 0, NULL), "path is NULL");
  ck_names(clb_safetensors_save("x", NULL, 2, NULL),
           "count is 2, and tensors is NULL");
  ck_names(clb_safetensors_save("x", NULL, 0, &pairs),
           "metadata_count is 2, and metadata is NULL");
  ck_names(clb_safetensors_write(NULL, NULL, NULL, 0, NULL), "sink is NULL");
  ck_names(clb_safetensors_write(take, NULL, NULL, 1, NULL),
           "count is 1, and tensors is NULL");
  ck_names(clb_safetensors_open(NULL, NULL), "path is NULL");
  ck_names(clb_safetensors_tensor(NULL, 0, NULL), "file is NULL");
  ck_names(clb_safetensors_find(NULL, "x", NULL), "file is NULL");
  ck_names(clb_safetensors_metadata_at(NULL, 0, NULL), "file is NULL");
}
END_TEST

START_TEST(ranges_are_told_as_they_are)
{
  clb_bytes *out;

  ck_says(clb_bytes_view(whole, 9, 3, &out), CLB_OUT_OF_RANGE,
          "start 9 is past end 3");
  ck_says(clb_bytes_view(whole, 9, 5000, &out), CLB_OUT_OF_RANGE,
          "range [9, 5000) is not inside 4096 bytes");
  ck_ok(clb_bytes_set_label(whole, "w"));
  ck_status(clb_bytes_copy_into(whole, SIZE_MAX, memory, 2), CLB_OUT_OF_RANGE);
  ck_message("w: start ");
  ck_message(" plus length 2 overflows");
}
END_TEST

START_TEST(a_destination_of_another_length_has_both_numbers)
{
  clb_bytes *large;

  ck_ok(clb_bytes_from_copy(memory, sizeof memory, &large));
  ck_status(clb_bytes_upload(large, fx.context, buffer, NULL),
            CLB_INVALID_ARGUMENT);
  ck_message("8192 bytes, but the destination has 4096");
  ck_status(clb_bytes_copy_into_layout(large, memory, SIZE, NULL),
            CLB_INVALID_ARGUMENT);
  ck_message("8192 bytes, but the destination has 4096");
  clb_bytes_release(large);
}
END_TEST

/* Refused by an upload and by a copy into host memory alike. */
static void overlaps(const clb_layout *layout, size_t length, const char *words)
{
  clb_bytes *bytes;

  ck_ok(clb_bytes_from_copy(memory, length, &bytes));
  ck_status(clb_bytes_upload(bytes, fx.context, buffer, layout),
            CLB_INVALID_LAYOUT);
  ck_message(words);
  ck_status(clb_bytes_copy_into_layout(bytes, memory, SIZE, layout),
            CLB_INVALID_LAYOUT);
  ck_message(words);
  clb_bytes_release(bytes);
}

START_TEST(elements_that_share_bytes_name_the_dimension)
{
  clb_layout narrow = {2, SHAPE(3, 5), STRIDES(16, 4), 4, 0};
  clb_layout turned = {2, SHAPE(5, 3), STRIDES(-4, -19), 4, 1024};
  clb_layout same = {3, SHAPE(2, 1, 2), STRIDES(64, 1, 0), 8, 0};
  clb_layout dense = {1, SHAPE(6), STRIDES(3), 4, 0};

  overlaps(&narrow, 60, "layout: dimension 0 has a stride of 16 bytes; in a "
                        "destination, whose elements may not share bytes, it "
                        "needs 20");
  overlaps(&turned, 60, "dimension 1 has a stride of -19 bytes");
  overlaps(&turned, 60, "it needs 20");
  overlaps(&same, 32, "dimension 2 has a stride of 0 bytes");
  overlaps(&same, 32, "it needs 8");
  overlaps(&dense, 24, "dimension 0 has a stride of 3 bytes");
  overlaps(&dense, 24, "it needs 4");
}
END_TEST

START_TEST(options_of_another_header_are_told_in_one_wording)
{
  struct {
    clb_context_options known;
    unsigned char more[16];
  } context = {CLB_CONTEXT_OPTIONS_INIT, {0}};
  struct {
    clb_save_options known;
    unsigned char more[16];
  } save = {CLB_SAVE_OPTIONS_INIT, {0}};
  clb_context *out;
  char words[128];

  context.known.struct_size = sizeof context;
  save.known.struct_size = sizeof save;
  ck_ok(clb_context_create(fx.queue, &context.known, &out));
  clb_context_release(out);
  ck_ok(clb_safetensors_write(take, NULL, NULL, 0, &save.known));
  context.more[3] = save.more[3] = 1;
  snprintf(words, sizeof words,
           "options: struct_size %zu has non-zero bytes past the %zu that this "
           "library knows",
           sizeof context, sizeof context.known);
  ck_status(clb_context_create(fx.queue, &context.known, &out),
            CLB_UNSUPPORTED);
  ck_message(words);
  snprintf(words, sizeof words,
           "options: struct_size %zu has non-zero bytes past the %zu that this "
           "library knows",
           sizeof save, sizeof save.known);
  ck_status(clb_safetensors_write(take, NULL, NULL, 0, &save.known),
            CLB_UNSUPPORTED);
  ck_message(words);
  context.known.struct_size = save.known.struct_size = 0;
  ck_status(clb_context_create(fx.queue, &context.known, &out),
            CLB_INVALID_ARGUMENT);
  ck_message("struct_size 0 is too small; start from "
             "CLB_CONTEXT_OPTIONS_INIT");
  ck_status(clb_safetensors_write(take, NULL, NULL, 0, &save.known),
            CLB_INVALID_ARGUMENT);
  ck_message("struct_size 0 is too small; start from CLB_SAVE_OPTIONS_INIT");
}
END_TEST

START_TEST(a_save_tells_shape_dtype_and_path)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_tensor tensor = {"w", "U64", 0, NULL, whole};

  ck_says(clb_safetensors_write(take, NULL, &tensor, 1, NULL),
          CLB_INVALID_ARGUMENT,
          "tensor \"w\": shape is NULL, and the handle's own shape [4096] of "
          "U64 has 32768 bytes, the handle has 4096");
  tensor.ndim = 1;
  tensor.shape = SHAPE(3);
  ck_says(clb_safetensors_write(take, NULL, &tensor, 1, NULL),
          CLB_INVALID_ARGUMENT,
          "tensor \"w\": shape [3] of U64 has 24 bytes, the handle has 4096");
  tensor.dtype = "float32";
  ck_status(clb_safetensors_write(take, NULL, &tensor, 1, NULL),
            CLB_INVALID_ARGUMENT);
  ck_message("the format has no dtype \"float32\"; it has BOOL, ");
  ck_message(" BF16, ");
  ck_message(" F32, ");
  ck_assert_str_eq(strrchr(clb_error_message(), ','), ", U64");
  tensor.dtype = "U8";
  tensor.shape = SHAPE(SIZE);
  options.progress = stop;
  ck_status(clb_safetensors_write(take, NULL, &tensor, 1, &options),
            CLB_CANCELLED);
  ck_says(clb_safetensors_write(take, NULL, &tensor, 1, &options),
          CLB_CANCELLED,
          "progress stopped the save at 4096 of 4096 bytes");
  remove("test_messages.out");
  ck_says(clb_safetensors_save("test_messages.out", &tensor, 1, &options),
          CLB_CANCELLED,
          "test_messages.out: progress stopped the save at 4096 of 4096 bytes");
  ck_status(clb_safetensors_save("no-such-folder/out", &tensor, 1, NULL),
            CLB_IO_ERROR);
  ck_message("no-such-folder/out: cannot open its directory");
  ck_assert_ptr_null(strstr(clb_error_message() + 1, "no-such-folder"));
}
END_TEST

START_TEST(an_image_is_named)
{
  const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
  const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                              .image_width = 4, .image_height = 4};
  clb_bytes *out;
  cl_int err;
  cl_mem image =
      clCreateImage(fx.cl, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);

  if (err != CL_SUCCESS)
    FIXTURE_SKIP("the device has no images");
  ck_status(clb_bytes_from_buffer(fx.context, image, NULL, &out),
            CLB_INVALID_ARGUMENT);
  ck_message("the memory object is CL_MEM_OBJECT_IMAGE2D");
  ck_cl(clReleaseMemObject(image));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("messages");
  TCase *all = tcase_create("all");

  tcase_set_timeout(all, 60);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, what_is_missing_is_named_with_its_call);
  tcase_add_test(all, ranges_are_told_as_they_are);
  tcase_add_test(all, a_destination_of_another_length_has_both_numbers);
  tcase_add_test(all, elements_that_share_bytes_name_the_dimension);
  tcase_add_test(all, options_of_another_header_are_told_in_one_wording);
  tcase_add_test(all, a_save_tells_shape_dtype_and_path);
  tcase_add_test(all, an_image_is_named);
  return fixture_main(suite, FIXTURE_DEVICE);
}
