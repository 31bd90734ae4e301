/*
 * What a save writes, byte for byte, and what progress and sinks see.  The
 * contents come from host memory; the files that are expected are put together
 * here from literal headers.
 */
#include "config.h"

#include "saves.h"

static const size_t one = 1, two = 2, three = 3, four = 4, zero = 0;

/* --- The bytes of a file ------------------------------------------------- */

START_TEST(no_tensors_make_an_empty_object)
{
  struct model none = {0};

  ck_saved(&none, NULL, "{}", NULL, 0);
  ck_ok(clb_safetensors_save("out", NULL, 0, NULL));
  ck_file("out", "\x08\0\0\0\0\0\0\0{}      ", 16);
}
END_TEST

START_TEST(odd_bytes_before_floats_leave_no_hole)
{
  struct model model = {0};

  model_add_row(&model, "a", "U8", &three, "abc", 3);
  model_add_row(&model, "b", "F32", &two, "12345678", 8);
  ck_saved(&model, NULL,
           "{\"b\":" ST_ENTRY("\"F32\"", "[2]", "[0,8]")
           ",\"a\":" ST_ENTRY("\"U8\"", "[3]", "[8,11]") "}",
           "12345678abc", 11);
  model_give_back(&model);
}
END_TEST

START_TEST(dtypes_are_laid_down_widest_first)
{
  /* The format's own order, descending. */
  static const struct {
    const char *dtype;
    size_t bytes; /* of eight elements */
  } order[] = {
    {"U64", 64}, {"I64", 64}, {"F64", 64}, {"C64", 64}, {"F32", 32},
    {"U32", 32}, {"I32", 32}, {"BF16", 16}, {"F16", 16}, {"U16", 16},
    {"I16", 16}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8},
    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8}, {"U8", 8}, {"F6_E3M2", 6},
    {"F6_E2M3", 6}, {"F4", 4}, {"BOOL", 8}};
  enum { COUNT = sizeof order / sizeof *order };
  static const size_t shape[] = {2, 4};
  struct text header = {0}, data = {0};
  struct model model = {0};
  char names[COUNT][8];

  text_add(&header, "{");
  for (size_t i = 0; i < COUNT; i++) {
    unsigned char *bytes = fixture_bytes(order[i].bytes, i);

    /* Names in the other direction. */
    snprintf(names[i], sizeof names[i], "n%02zu", COUNT - i);
    text_format(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[2,4],"
                "\"data_offsets\":[%zu,%zu]}", i > 0 ? "," : "", names[i],
                order[i].dtype, data.length, data.length + order[i].bytes);
    text_bytes(&data, bytes, order[i].bytes);
    free(bytes);
  }
  text_bytes(&header, "}", 2);
  for (size_t i = 0; i < COUNT; i++) {
    size_t pick = (i * 7 + 3) % COUNT; /* given in no order */
    unsigned char *bytes = fixture_bytes(order[pick].bytes, pick);

    model_add(&model, names[pick], order[pick].dtype, 2, shape, bytes,
        order[pick].bytes);
    free(bytes);
  }
  ck_saved(&model, NULL, (const char *)header.data, data.data, data.length);
  model_give_back(&model);
  free(header.data);
  free(data.data);
}
END_TEST

START_TEST(names_of_a_dtype_are_laid_down_by_their_bytes)
{
  struct model model = {0};

  model_add_row(&model, "\xc3\xa9", "U8", &one, "8", 1);
  model_add_row(&model, "a", "U8", &one, "3", 1);
  model_add_row(&model, "\xf0\x9f\x98\x80", "U8", &one, "9", 1);
  model_add_row(&model, "a1", "U8", &one, "4", 1);
  model_add_row(&model, "Z", "U8", &one, "2", 1);
  model_add_row(&model, "", "U8", &one, "0", 1);
  model_add_row(&model, "aa", "U8", &one, "5", 1);
  model_add_row(&model, "z", "U8", &one, "6", 1);
  model_add_row(&model, "10", "U8", &one, "1", 1);
  model_add_row(&model, "\x7f", "U8", &one, "7", 1);
#define U8(from, to) ST_ENTRY("\"U8\"", "[1]", "[" from "," to "]")
  ck_saved(&model, NULL,
           "{\"\":" U8("0", "1") ",\"10\":" U8("1", "2") ",\"Z\":" U8("2", "3")
           ",\"a\":" U8("3", "4") ",\"a1\":" U8("4", "5") ",\"aa\":"
           U8("5", "6") ",\"z\":" U8("6", "7") ",\"\x7f\":" U8("7", "8")
           ",\"\xc3\xa9\":" U8("8", "9") ",\"\xf0\x9f\x98\x80\":" U8("9", "10")
           "}", "0123456789", 10);
#undef U8
  model_give_back(&model);
}
END_TEST

START_TEST(header_is_padded_to_eight_at_every_length)
{
  for (size_t length = 0; length < 16; length++) {
    struct model model = {0};
    struct text header = {0};
    char name[17] = {0};

    memset(name, 'n', length);
    model_add_row(&model, name, "U64", &one, "12345678", 8);
    text_format(&header, "{\"%s\":" ST_ENTRY("\"U64\"", "[1]", "[0,8]") "}",
                name);
    text_bytes(&header, "", 1);
    ck_saved(&model, NULL, (const char *)header.data, "12345678", 8);
    model_give_back(&model);
    free(header.data);
  }
}
END_TEST

START_TEST(scalars_and_empty_tensors_are_written)
{
  static const size_t shape[] = {3, 0, 2};
  struct model model = {0};

  model_add(&model, "scalar", "F32", 0, &one, "1234", 4);
  model_add(&model, "none", "F64", 3, shape, "", 0);
  model_add_row(&model, "empty", "U8", &zero, NULL, 0);
  model_add_row(&model, "tail", "U8", &one, "!", 1);
  ck_saved(&model, NULL,
           "{\"none\":" ST_ENTRY("\"F64\"", "[3,0,2]", "[0,0]")
           ",\"scalar\":" ST_ENTRY("\"F32\"", "[]", "[0,4]")
           ",\"empty\":" ST_ENTRY("\"U8\"", "[0]", "[4,4]")
           ",\"tail\":" ST_ENTRY("\"U8\"", "[1]", "[4,5]") "}",
           "1234!", 5);
  model_give_back(&model);
}
END_TEST

START_TEST(empty_tensors_alone_are_written)
{
  struct model model = {0};

  model_add_row(&model, "a", "BF16", &zero, NULL, 0);
  ck_saved(&model, NULL, "{\"a\":" ST_ENTRY("\"BF16\"", "[0]", "[0,0]") "}",
           NULL, 0);
  model_give_back(&model);
}
END_TEST

START_TEST(sixty_four_dimensions_are_written_and_one_more_is_not)
{
  struct model model = {0};
  struct text header = {0};
  size_t shape[65];

  for (size_t i = 0; i < 65; i++)
    shape[i] = i == 40 ? 4 : 1;
  model_add(&model, "wing", "U8", 64, shape, "1234", 4);
  text_add(&header, "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1");
  for (int i = 1; i < 64; i++)
    text_add(&header, i == 40 ? ",4" : ",1");
  text_add(&header, "],\"data_offsets\":[0,4]}}");
  text_bytes(&header, "", 1);
  ck_saved(&model, NULL, (const char *)header.data, "1234", 4);
  model.tensors[0].ndim = 65;
  ck_status(clb_safetensors_save("more", model.tensors, 1, NULL),
            CLB_INVALID_ARGUMENT);
  ck_message("wing");
  model_give_back(&model);
  free(header.data);
}
END_TEST

START_TEST(shape_null_is_the_handles_own)
{
  struct model model = {0};
  clb_bytes *whole;

  model_add(&model, "bytes", "U8", 0, NULL, "12345", 5);
  /* A view is a dimension of bytes. */
  ck_ok(clb_bytes_from_copy("abcdef", 6, &whole));
  ck_ok(clb_bytes_view(whole, 2, 5, &model.tensors[1].bytes));
  clb_bytes_release(whole);
  model.tensors[1].name = "view";
  model.tensors[1].dtype = "I8";
  model.count = 2;
  ck_saved(&model, NULL,
           "{\"view\":" ST_ENTRY("\"I8\"", "[3]", "[0,3]")
           ",\"bytes\":" ST_ENTRY("\"U8\"", "[5]", "[3,8]") "}",
           "cde12345", 8);
  model_give_back(&model);
}
END_TEST

START_TEST(one_handle_may_be_two_tensors)
{
  struct model model = {0};

  model_add_row(&model, "a", "F32", &one, "1234", 4);
  model_add_row(&model, "b", "U8", &four, "", 0);
  clb_bytes_release(model.tensors[1].bytes);
  model.tensors[1].bytes = clb_bytes_retain(model.tensors[0].bytes);
  ck_saved(&model, NULL,
           "{\"a\":" ST_ENTRY("\"F32\"", "[1]", "[0,4]")
           ",\"b\":" ST_ENTRY("\"U8\"", "[4]", "[4,8]") "}",
           "12341234", 8);
  model_give_back(&model);
}
END_TEST

/* --- Names and metadata -------------------------------------------------- */

START_TEST(names_are_escaped_as_json_wants)
{
  struct model model = {0};

  model_add_row(&model,
                "q\"b\\s/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9\xf0\x9f\x98\x80", "U8",
                &one, "!", 1);
  ck_saved(&model, NULL,
           "{\"q\\\"b\\\\s/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9"
           "\xf0\x9f\x98\x80\":" ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}",
           "!", 1);
  model_give_back(&model);
}
END_TEST

START_TEST(names_like_metadata_are_names)
{
  struct model model = {0};

  model_add_row(&model, "__metadata__ ", "U8", &one, "2", 1);
  model_add_row(&model, "__metadata_", "U8", &one, "0", 1);
  model_add_row(&model, "__metadata___", "U8", &one, "3", 1);
  model_add_row(&model, "__METADATA__", "U8", &one, "1", 1);
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, NULL));
  for (size_t i = 0; i < model.count; i++) {
    clb_safetensors *file;
    clb_tensor found;

    ck_ok(clb_safetensors_open("out", &file));
    ck_assert_uint_eq(clb_safetensors_metadata_count(file), 0);
    ck_ok(clb_safetensors_find(file, model.tensors[i].name, &found));
    clb_safetensors_close(file);
  }
  model_give_back(&model);
}
END_TEST

START_TEST(long_names_come_back)
{
  const size_t length = 1 << 20;
  char *name = fixture_malloc(length + 1);
  struct model model = {0};
  clb_safetensors *file;
  clb_tensor found;

  for (size_t i = 0; i < length; i++)
    name[i] = (char)(i % 127 + 1);
  name[length] = '\0';
  model_add_row(&model, name, "U8", &one, "!", 1);
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, NULL));
  ck_ok(clb_safetensors_open("out", &file));
  ck_ok(clb_safetensors_tensor(file, 0, &found));
  ck_assert_uint_eq(strlen(found.name), length);
  ck_bytes(found.name, name, length);
  clb_safetensors_close(file);
  model_give_back(&model);
  free(name);
}
END_TEST

START_TEST(metadata_is_written_first_and_in_order)
{
  static const clb_pair pairs[] = {
    {"z", "1"}, {"a", "x\"\n\xc3\xa9"}, {"", ""}, {"__metadata__", "2"}};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = {0};
  clb_safetensors *file;

  options.metadata = pairs;
  options.metadata_count = 4;
  ck_saved(&model, &options,
           "{\"__metadata__\":{\"z\":\"1\",\"a\":\"x\\\"\\n\xc3\xa9\","
           "\"\":\"\",\"__metadata__\":\"2\"}}", NULL, 0);
  model_add_row(&model, "x", "U8", &one, "!", 1);
  ck_saved(&model, &options,
           "{\"__metadata__\":{\"z\":\"1\",\"a\":\"x\\\"\\n\xc3\xa9\","
           "\"\":\"\",\"__metadata__\":\"2\"},\"x\":"
           ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}", "!", 1);
  ck_ok(clb_safetensors_open("out", &file));
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 4);
  for (size_t i = 0; i < 4; i++) {
    clb_pair pair;

    ck_ok(clb_safetensors_metadata_at(file, i, &pair));
    ck_assert_str_eq(pair.key, pairs[i].key);
    ck_assert_str_eq(pair.value, pairs[i].value);
  }
  clb_safetensors_close(file);
  model_give_back(&model);
}
END_TEST

START_TEST(no_pairs_make_no_metadata)
{
  static const clb_pair unread = {NULL, NULL};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model none = {0};

  options.metadata = &unread;
  ck_saved(&none, &options, "{}", NULL, 0);
}
END_TEST

START_TEST(text_at_the_edges_of_utf8_is_written)
{
  static const char *const texts[] = {
    "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
    "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};

  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct model model = {0};
    struct text header = {0};

    model_add_row(&model, texts[i], "U8", &one, "!", 1);
    text_format(&header, "{\"%s\":" ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}",
                texts[i]);
    text_bytes(&header, "", 1);
    ck_saved(&model, NULL, (const char *)header.data, "!", 1);
    model_give_back(&model);
    free(header.data);
  }
}
END_TEST

/* --- Progress and sinks -------------------------------------------------- */

struct seen {
  uint64_t done, total;
  size_t calls, stop_at;
};

static int watch(uint64_t done, uint64_t total, void *user)
{
  struct seen *seen = user;

  ck_assert_uint_ge(done, seen->done);
  ck_assert_uint_le(done, total);
  if (seen->calls > 0)
    ck_assert_uint_eq(total, seen->total);
  seen->done = done;
  seen->total = total;
  return ++seen->calls == seen->stop_at ? 7 : 0;
}

/* Three tensors of which one needs many pieces. */
static struct model pieces_model(void)
{
  static const size_t large = (3 << 20) + 5;
  unsigned char *data = fixture_bytes(large, 4);
  struct model model = {0};

  model_add_row(&model, "large", "U8", &large, data, large);
  model_add_row(&model, "none", "F64", &zero, NULL, 0);
  model_add_row(&model, "small", "F32", &two, "12345678", 8);
  free(data);
  return model;
}

START_TEST(progress_counts_tensor_bytes_to_the_end)
{
  struct model model = pieces_model();
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct seen seen = {0};

  options.progress = watch;
  options.user = &seen;
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, &options));
  ck_assert_uint_eq(seen.total, (3 << 20) + 5 + 8);
  ck_assert_uint_eq(seen.done, seen.total);
  ck_assert_uint_gt(seen.calls, 2);
  memset(&seen, 0, sizeof seen);
  ck_ok(clb_safetensors_save("out", model.tensors + 1, 1, &options));
  ck_assert_uint_ge(seen.calls, 1);
  ck_assert_uint_eq(seen.total, 0);
  memset(&seen, 0, sizeof seen);
  ck_ok(clb_safetensors_save("out", NULL, 0, &options));
  ck_assert_uint_ge(seen.calls, 1);
  model_give_back(&model);
}
END_TEST

START_TEST(progress_cancels_at_every_call)
{
  struct model model = pieces_model();
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct seen seen = {0}, whole = {0};

  options.progress = watch;
  options.user = &whole;
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, &options));
  file_write("out", "old", 3);
  options.user = &seen;
  for (size_t stop = 1; stop <= whole.calls; stop++) {
    struct gathered sunk = {0};

    memset(&seen, 0, sizeof seen);
    seen.stop_at = stop;
    ck_status(clb_safetensors_save("out", model.tensors, model.count,
                                   &options), CLB_CANCELLED);
    ck_assert_uint_eq(seen.calls, stop);
    ck_file("out", "old", 3);
    ck_assert_uint_eq(files_in("."), 1);
    memset(&seen, 0, sizeof seen);
    seen.stop_at = 1;
    ck_status(clb_safetensors_write(gather_sink, &sunk, model.tensors,
                                    model.count, &options), CLB_CANCELLED);
    ck_assert_uint_eq(seen.calls, 1);
    free(sunk.data);
  }
  model_give_back(&model);
}
END_TEST

static int stopping_sink(const void *data, size_t length, void *user)
{
  ck_assert_ptr_nonnull(data);
  ck_assert_uint_gt(length, 0);
  return watch(0, 0, user);
}

START_TEST(sink_stops_at_every_call)
{
  struct model model = pieces_model();
  struct seen seen = {0};
  size_t calls;

  ck_ok(clb_safetensors_write(stopping_sink, &seen, model.tensors, model.count,
                              NULL));
  calls = seen.calls;
  ck_assert_uint_gt(calls, 3);
  for (size_t stop = 1; stop <= calls; stop++) {
    memset(&seen, 0, sizeof seen);
    seen.stop_at = stop;
    ck_status(clb_safetensors_write(stopping_sink, &seen, model.tensors,
                                    model.count, NULL), CLB_CANCELLED);
    ck_assert_uint_eq(seen.calls, stop);
    ck_assert_str_ne(clb_error_message(), "");
  }
  model_give_back(&model);
}
END_TEST

START_TEST(save_leaves_its_handles_as_they_were)
{
  struct model model = pieces_model();
  struct model before = model;

  ck_ok(clb_safetensors_save("out", model.tensors, model.count, NULL));
  ck_assert_int_eq(memcmp(&model, &before, sizeof model), 0);
  model_give_back(&model);
  ck_assert_uint_eq(files_in("."), 1);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors that are saved");
  TCase *bytes = files_case(suite, "bytes", 20);
  TCase *calls = files_case(suite, "progress and sinks", 20);

  tcase_add_test(bytes, no_tensors_make_an_empty_object);
  tcase_add_test(bytes, odd_bytes_before_floats_leave_no_hole);
  tcase_add_test(bytes, dtypes_are_laid_down_widest_first);
  tcase_add_test(bytes, names_of_a_dtype_are_laid_down_by_their_bytes);
  tcase_add_test(bytes, header_is_padded_to_eight_at_every_length);
  tcase_add_test(bytes, scalars_and_empty_tensors_are_written);
  tcase_add_test(bytes, empty_tensors_alone_are_written);
  tcase_add_test(bytes, sixty_four_dimensions_are_written_and_one_more_is_not);
  tcase_add_test(bytes, shape_null_is_the_handles_own);
  tcase_add_test(bytes, one_handle_may_be_two_tensors);
  tcase_add_test(bytes, names_are_escaped_as_json_wants);
  tcase_add_test(bytes, names_like_metadata_are_names);
  tcase_add_test(bytes, long_names_come_back);
  tcase_add_test(bytes, metadata_is_written_first_and_in_order);
  tcase_add_test(bytes, no_pairs_make_no_metadata);
  tcase_add_test(bytes, text_at_the_edges_of_utf8_is_written);
  tcase_add_test(calls, progress_counts_tensor_bytes_to_the_end);
  tcase_add_test(calls, progress_cancels_at_every_call);
  tcase_add_test(calls, sink_stops_at_every_call);
  tcase_add_test(calls, save_leaves_its_handles_as_they_were);
  return files_main(suite, FIXTURE_HOST);
}
