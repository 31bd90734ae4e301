/*
 * What a save refuses, and that it does so before it writes anything.
 */
#include "config.h"

#include "saves.h"

static const size_t one = 1, two = 2, three = 3, four = 4, zero = 0;

static int never_sink(const void *data, size_t length, void *user)
{
  (void)data;
  (void)length;
  (void)user;
  ck_abort_msg("something was written");
  return 1;
}

static int never_progress(uint64_t done, uint64_t total, void *user)
{
  (void)done;
  (void)total;
  (void)user;
  ck_abort_msg("something was begun");
  return 1;
}

/* Save and write fail so before they write anything. */
static void refused(const clb_tensor *tensors, size_t count,
                    const clb_save_options *options, clb_status status,
                    const char *says)
{
  clb_save_options own = CLB_SAVE_OPTIONS_INIT;

  if (options == NULL) {
    own.progress = never_progress;
    options = &own;
  }
  file_write("out", "old", 3);
  ck_status(clb_safetensors_save("out", tensors, count, options), status);
  if (says != NULL)
    ck_message(says);
  ck_assert_ptr_null(strchr(clb_error_message(), '\n'));
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
  ck_status(clb_safetensors_save("new", tensors, count, options), status);
  ck_assert_uint_eq(files_in("."), 1);
  ck_status(clb_safetensors_write(never_sink, NULL, tensors, count, options),
            status);
  if (says != NULL)
    ck_message(says);
}

/* A good tensor, then one that is refused. */
static void second_refused(const char *name, const char *dtype, size_t ndim,
                           const size_t *shape, size_t length,
                           const char *says)
{
  unsigned char *data = fixture_bytes(length, 1);
  struct model model = {0};

  model_add_row(&model, "first", "U8", &four, "good", 4);
  model_add(&model, name, dtype, ndim, shape, data, length);
  refused(model.tensors, 2, NULL, CLB_INVALID_ARGUMENT, says);
  model_give_back(&model);
  free(data);
}

START_TEST(bad_names_are_refused)
{
  second_refused("first", "F64", 0, &one, 8, "first");
  second_refused("__metadata__", "U8", 1, &one, 1, "__metadata__");
  second_refused(NULL, "U8", 1, &one, 1, NULL);
}
END_TEST

START_TEST(messages_are_one_line_whatever_the_name)
{
  struct model model = {0};

  model_add_row(&model, "wing\n\x1b[2J\r", "U8", &one, "!", 1);
  model_add_row(&model, "wing\n\x1b[2J\r", "U8", &one, "!", 1);
  refused(model.tensors, 2, NULL, CLB_INVALID_ARGUMENT, "wing");
  model.tensors[1].name = "other\nline";
  model.tensors[1].dtype = "F\n33";
  refused(model.tensors, 2, NULL, CLB_INVALID_ARGUMENT, "other");
  model_give_back(&model);
}
END_TEST

START_TEST(lengths_whose_sum_overflows_are_refused)
{
  static const size_t huge = SIZE_MAX / 8;
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                      "i", "j"};
  struct model model = {0};
  unsigned char byte = 0;

  /* Never read. */
  for (size_t i = 0; i < 10; i++) {
    model.tensors[i] = (clb_tensor){names[i], "U8", 1, &huge, NULL};
    ck_ok(clb_bytes_from_host(&byte, huge, NULL, NULL,
                              &model.tensors[i].bytes));
    model.count++;
  }
  refused(model.tensors, model.count, NULL, CLB_INVALID_ARGUMENT, NULL);
  model_give_back(&model);
}
END_TEST

START_TEST(names_alike_far_apart_are_refused)
{
  static const char *const names[] = {"b", "twice", "c", "a", "d", "twice"};
  static const char *const dtypes[] = {"U8", "U8", "I8", "U8", "BOOL", "I8"};
  struct model model = {0};

  for (size_t i = 0; i < 6; i++)
    model_add_row(&model, names[i], dtypes[i], &one, "!", 1);
  refused(model.tensors, model.count, NULL, CLB_INVALID_ARGUMENT, "twice");
  model.tensors[5].name = "";
  model.tensors[2].name = "";
  refused(model.tensors, model.count, NULL, CLB_INVALID_ARGUMENT, NULL);
  model_give_back(&model);
}
END_TEST

/* Everything but text in UTF-8; the start is of the message too. */
static const char *const no_text[] = {
  "wing\xff", "wing\xc3", "wing\xc3g", "wing\x80", "wing\xc0\xaf",
  "wing\xe0\x80\xaf", "wing\xf0\x80\x80\xaf", "wing\xed\xa0\x80",
  "wing\xed\xbf\xbf", "wing\xf4\x90\x80\x80", "wing\xf5\x80\x80\x80",
  "wing\xf8\x88\x80\x80\x80", "wing\xe2\x82", "wing\xf0\x9f\x98", "\xff",
  "wing\xfe"};
enum { NO_TEXT = sizeof no_text / sizeof *no_text };

START_TEST(names_that_are_no_text_are_refused)
{
  const char *name = no_text[_i];

  second_refused(name, "U8", 1, &one, 1, *name == 'w' ? "wing" : NULL);
}
END_TEST

START_TEST(unknown_dtypes_are_refused)
{
  static const char *const dtypes[] = {
    "F33", "f32", "F32 ", " F32", "F3", "", "float32", "F8", "C128", "F6",
    "F8_E4M3FN", "BF16\n", "I4"};

  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    second_refused("wing", dtypes[i], 1, &zero, 0, "wing");
  second_refused("wing", "F33", 1, &zero, 0, "F33");
  second_refused("wing", NULL, 1, &zero, 0, "wing");
}
END_TEST

START_TEST(shapes_that_differ_from_the_length_are_refused)
{
  static const size_t wraps[] = {(size_t)1 << 63, 2};
  static const size_t wraps_in_bytes[] = {(size_t)1 << 62};
  static const size_t wraps_to_four[] = {((size_t)1 << 62) + 1};
  static const size_t five_threes[] = {5, 3};

  second_refused("wing", "F32", 1, &three, 11, "wing");
  second_refused("wing", "F32", 1, &three, 13, "wing");
  second_refused("wing", "F32", 1, &three, 0, "wing");
  second_refused("wing", "F32", 1, &zero, 4, "wing");
  second_refused("wing", "F32", 0, &one, 0, "wing");
  second_refused("wing", "F32", 0, &one, 8, "wing");
  second_refused("wing", "U8", 2, five_threes, 16, "wing");
  second_refused("wing", "U8", 2, wraps, 0, "wing");
  second_refused("wing", "F32", 1, wraps_in_bytes, 0, "wing");
  second_refused("wing", "F32", 1, wraps_to_four, 4, "wing");
  /* The handle's own shape, of bytes, is no shape of floats. */
  second_refused("wing", "F32", 0, NULL, 4, "wing");
  /* Not whole bytes. */
  second_refused("wing", "F4", 1, &three, 1, "wing");
  second_refused("wing", "F4", 1, &three, 2, "wing");
  second_refused("wing", "F6_E2M3", 1, &two, 1, "wing");
  second_refused("wing", "F6_E3M2", 1, &two, 2, "wing");
}
END_TEST

START_TEST(null_where_something_must_be_is_refused)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = {0};
  clb_bytes *bytes;

  model_add_row(&model, "wing", "U8", &one, "!", 1);
  refused(NULL, 1, NULL, CLB_INVALID_ARGUMENT, NULL);
  bytes = model.tensors[0].bytes;
  model.tensors[0].bytes = NULL;
  refused(model.tensors, 1, NULL, CLB_INVALID_ARGUMENT, "wing");
  model.tensors[0].bytes = bytes;
  ck_status(clb_safetensors_save(NULL, model.tensors, 1, NULL),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_write(NULL, NULL, model.tensors, 1, NULL),
            CLB_INVALID_ARGUMENT);
  options.metadata_count = 1;
  refused(model.tensors, 1, &options, CLB_INVALID_ARGUMENT, NULL);
  model_give_back(&model);
}
END_TEST

START_TEST(bad_metadata_is_refused)
{
  clb_pair pairs[] = {{"wing", "1"}, {"other", "2"}, {"wing", "1"}};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;

  options.metadata = pairs;
  options.metadata_count = 3;
  options.progress = never_progress;
  refused(NULL, 0, &options, CLB_INVALID_ARGUMENT, "wing");
  pairs[2].key = NULL;
  refused(NULL, 0, &options, CLB_INVALID_ARGUMENT, NULL);
  pairs[2].key = "third";
  pairs[1].value = NULL;
  refused(NULL, 0, &options, CLB_INVALID_ARGUMENT, "metadata");
  for (size_t i = 0; i < NO_TEXT; i++) {
    pairs[1].value = no_text[i];
    refused(NULL, 0, &options, CLB_INVALID_ARGUMENT, "other");
    pairs[1].value = "2";
    pairs[2].key = no_text[i];
    refused(NULL, 0, &options, CLB_INVALID_ARGUMENT, NULL);
    pairs[2].key = "third";
  }
}
END_TEST

START_TEST(header_above_the_formats_limit_is_refused)
{
  const size_t length = 100000001;
  char *name = fixture_malloc(length + 1);
  struct model model = {0};
  clb_status status;

  memset(name, 'n', length);
  name[length] = '\0';
  model_add_row(&model, name, "U8", &one, "!", 1);
  file_write("out", "old", 3);
  status = clb_safetensors_save("out", model.tensors, 1, NULL);
  ck_assert_msg(status == CLB_INVALID_ARGUMENT || status == CLB_UNSUPPORTED,
                "%s", clb_status_name(status));
  ck_assert_uint_lt(strlen(clb_error_message()), 100000);
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
  model_give_back(&model);
  free(name);
}
END_TEST

/* --- Options ------------------------------------------------------------- */

START_TEST(options_of_another_size_are_read_as_far_as_they_go)
{
  struct {
    clb_save_options known;
    unsigned char later[24];
  } options;
  struct model model = {0};

  model_add_row(&model, "x", "U8", &one, "!", 1);
  /* An older header's: what is beyond it is not looked at. */
  memset(&options, 0xff, sizeof options);
  options.known.struct_size = offsetof(clb_save_options, durable);
  options.known.metadata = NULL;
  options.known.metadata_count = 0;
  ck_saved(&model, &options.known,
           "{\"x\":" ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}", "!", 1);
  /* A newer one's: fine while what is new is not used. */
  memset(&options, 0, sizeof options);
  options.known.struct_size = sizeof options;
  ck_saved(&model, &options.known,
           "{\"x\":" ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}", "!", 1);
  for (size_t i = 0; i < sizeof options.later; i++) {
    options.later[i] = 1;
    refused(model.tensors, 1, &options.known, CLB_UNSUPPORTED, NULL);
    options.later[i] = 0;
  }
  model_give_back(&model);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("saves that are refused");
  TCase *refusals = files_case(suite, "refusals", 20);

  tcase_add_test(refusals, bad_names_are_refused);
  tcase_add_test(refusals, messages_are_one_line_whatever_the_name);
  tcase_add_test(refusals, lengths_whose_sum_overflows_are_refused);
  tcase_add_test(refusals, names_alike_far_apart_are_refused);
  tcase_add_loop_test(refusals, names_that_are_no_text_are_refused, 0,
                      NO_TEXT);
  tcase_add_test(refusals, unknown_dtypes_are_refused);
  tcase_add_test(refusals, shapes_that_differ_from_the_length_are_refused);
  tcase_add_test(refusals, null_where_something_must_be_is_refused);
  tcase_add_test(refusals, bad_metadata_is_refused);
  tcase_add_test(refusals, header_above_the_formats_limit_is_refused);
  tcase_add_test(refusals,
                 options_of_another_size_are_read_as_far_as_they_go);
  return files_main(suite, FIXTURE_HOST);
}
