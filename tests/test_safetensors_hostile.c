/*
 * Headers that are large, deep or many: opening one takes time and memory
 * linear in its length, whatever it says; memory at most 16 times the length
 * and 16 MiB.  CLBYTES_TEST_HEADER is the length of the large ones in MiB.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <unistd.h>

static size_t header_length(void)
{
  return (size_t)fixture_number("CLBYTES_TEST_HEADER", 2) << 20;
}

/* A header that is written in pieces, so that building it costs no memory. */
struct header {
  FILE *file;
  uint64_t length;
};

static struct header header_begin(const char *start)
{
  struct header header = {fopen("header", "wb+"), 0};

  ck_assert_ptr_nonnull(header.file);
  fwrite(&header.length, 8, 1, header.file);
  fputs(start, header.file);
  return header;
}

/* The last of the header, then length zero bytes as data. */
static void header_end(struct header *header, const char *end, size_t data)
{
  fputs(end, header->file);
  header->length = (uint64_t)ftell(header->file) - 8;
  rewind(header->file);
  fwrite(&header->length, 8, 1, header->file); /* the host is little-endian */
  ck_assert_int_eq(ferror(header->file), 0);
  ck_assert_int_eq(fclose(header->file), 0);
  ck_assert_int_eq(truncate("header", (off_t)(8 + header->length + data)), 0);
}

static void repeat(struct header *header, const char *string, size_t times)
{
  while (times-- > 0)
    fputs(string, header->file);
}

/* As often as makes the header's wanted length. */
static void fill(struct header *header, const char *string)
{
  repeat(header, string, header_length() / strlen(string));
}

/* Opens the header and measures; if it is to open, it has count tensors. */
static void measured(const struct header *header, clb_status status,
                     size_t count)
{
  clb_safetensors *file = NULL;
  int measures = fixture_measures_memory() && forget_peak();
  size_t before = fixture_rss(), grown;
  double start = fixture_seconds(), spent;

  ck_status(clb_safetensors_open("header", &file), status);
  spent = fixture_seconds() - start;
  grown = fixture_hwm() - before;
  printf("header of %.1f MiB: %s in %.3f s, %.1f MiB, %.1f times\n",
         (double)header->length / (1 << 20), clb_status_name(status), spent,
         (double)grown / (1 << 20), (double)grown / (double)header->length);
  if (status == CLB_OK) {
    ck_assert_uint_eq(clb_safetensors_count(file), count);
    clb_safetensors_close(file);
  } else {
    ck_message("header");
  }
  if (measures)
    ck_assert_msg(grown <= 16 * header->length + ((size_t)16 << 20),
                  "%zu bytes for a header of %zu", grown,
                  (size_t)header->length);
}

START_TEST(shape_of_ones_without_end)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1");

  fill(&header, ",1");
  header_end(&header, "]}}", 1);
  measured(&header, CLB_FORMAT_ERROR, 0);
  ck_message("wing");
}
END_TEST

START_TEST(offsets_without_end)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0");

  fill(&header, ",1");
  header_end(&header, "]}}", 1);
  measured(&header, CLB_FORMAT_ERROR, 0);
}
END_TEST

START_TEST(objects_without_end_in_an_unknown_key)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
    "\"x\":[{}");

  fill(&header, ",{}");
  header_end(&header, "]}}", 1);
  measured(&header, CLB_OK, 1);
}
END_TEST

START_TEST(unknown_keys_without_end)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]");

  fill(&header, ",\"\":0");
  header_end(&header, "}}", 1);
  measured(&header, CLB_OK, 1);
}
END_TEST

START_TEST(string_without_end_in_an_unknown_key)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
    "\"x\":\"");

  fill(&header, "\\u0041");
  header_end(&header, "\"}}", 1);
  measured(&header, CLB_OK, 1);
}
END_TEST

START_TEST(number_without_end)
{
  struct header header = header_begin(
    "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1");

  fill(&header, "0");
  header_end(&header, "],\"data_offsets\":[0,1]}}", 1);
  measured(&header, CLB_FORMAT_ERROR, 0);
}
END_TEST

START_TEST(name_without_end)
{
  struct header header = header_begin("{\"");

  fill(&header, "n\\n");
  header_end(&header,
             "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
  measured(&header, CLB_OK, 1);
}
END_TEST

START_TEST(spaces_without_end)
{
  struct header header = header_begin("{");

  fill(&header, " ");
  header_end(&header, "}", 0);
  measured(&header, CLB_OK, 0);
}
END_TEST

START_TEST(tiny_tensors_without_end)
{
  struct header header = header_begin("{");
  size_t count = header_length() / 64;

  for (size_t i = 0; i < count; i++)
    fprintf(header.file, "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[1],"
            "\"data_offsets\":[%zu,%zu]}", i > 0 ? "," : "", i, i, i + 1);
  header_end(&header, "}", count);
  measured(&header, CLB_OK, count);
}
END_TEST

START_TEST(tiny_tensors_without_end_backwards)
{
  struct header header = header_begin("{");
  size_t count = header_length() / 64;

  for (size_t i = count; i-- > 0;)
    fprintf(header.file, "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[1],"
            "\"data_offsets\":[%zu,%zu]}", i + 1 < count ? "," : "", i, i,
            i + 1);
  header_end(&header, "}", count);
  measured(&header, CLB_OK, count);
}
END_TEST

START_TEST(empty_tensors_without_end)
{
  struct header header = header_begin("{");
  size_t count = header_length() / 56;

  for (size_t i = 0; i < count; i++)
    fprintf(header.file, "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[0],"
            "\"data_offsets\":[0,0]}", i > 0 ? "," : "", i);
  header_end(&header, "}", 0);
  measured(&header, CLB_OK, count);
}
END_TEST

/* The last of many is the first again: no look through all for each. */
START_TEST(names_alike_without_end)
{
  struct header header = header_begin("{");
  size_t count = header_length() / 64;

  for (size_t i = 0; i <= count; i++)
    fprintf(header.file, "%s\"%08zx\":{\"dtype\":\"U8\",\"shape\":[0],"
            "\"data_offsets\":[0,0]}", i > 0 ? "," : "", i % count);
  header_end(&header, "}", 0);
  measured(&header, CLB_FORMAT_ERROR, 0);
  ck_message("00000000");
}
END_TEST

START_TEST(one_name_without_end)
{
  struct header header = header_begin("{");

  fill(&header, "\"\":{},");
  header_end(&header, "\"\":{}}", 0);
  measured(&header, CLB_FORMAT_ERROR, 0);
}
END_TEST

START_TEST(metadata_without_end)
{
  struct header header = header_begin("{\"__metadata__\":{\"k\":\"\"");
  size_t count = header_length() / 12;

  for (size_t i = 0; i < count; i++)
    fprintf(header.file, ",\"%zx\":\"\"", i);
  header_end(&header, "}}", 0);
  measured(&header, CLB_OK, 0);
}
END_TEST

/* --- Depth --------------------------------------------------------------- */

/* A good entry but for what x is. */
#define WING                                                                   \
  "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":"

/* Opens start, then open times depth, middle, close times depth, end. */
static void nested(size_t depth, const char *start, const char *open,
                   const char *middle, const char *close, const char *end,
                   clb_status status)
{
  struct header header = header_begin(start);

  repeat(&header, open, depth);
  fputs(middle, header.file);
  repeat(&header, close, depth);
  header_end(&header, end, strcmp(start, WING) == 0 ? 1 : 0);
  measured(&header, status, 1);
}

START_TEST(nested_a_hundred_thousand_deep_is_refused)
{
  static const size_t depths[] = {100000, 10000000};
  size_t count = header_length() < (size_t)20 << 20 ? 1 : 2;

  for (size_t i = 0; i < count; i++) {
    size_t depth = depths[i];

    nested(depth, "", "[", "", "]", "", CLB_FORMAT_ERROR);
    nested(depth, "", "[", "", "", "", CLB_FORMAT_ERROR);
    nested(depth, "", "{\"a\":", "1", "}", "", CLB_FORMAT_ERROR);
    nested(depth, "", "{\"a\":", "", "", "", CLB_FORMAT_ERROR);
    nested(depth, "{\"wing\":", "[", "", "]", "}", CLB_FORMAT_ERROR);
    nested(depth, "{\"__metadata__\":", "{\"a\":", "1", "}", "}",
           CLB_FORMAT_ERROR);
    nested(depth, "{\"__metadata__\":", "[", "", "]", "}", CLB_FORMAT_ERROR);
    nested(depth, WING, "[", "", "]", "}}", CLB_FORMAT_ERROR);
    nested(depth, WING, "{\"a\":", "1", "}", "}}", CLB_FORMAT_ERROR);
    nested(depth, WING, "[", "", "", "", CLB_FORMAT_ERROR);
    nested(depth, WING, "[{\"a\":", "1", "}]", "}}", CLB_FORMAT_ERROR);
    nested(depth, "{\"wing\":{\"shape\":", "[", "", "]", "}}",
           CLB_FORMAT_ERROR);
  }
}
END_TEST

START_TEST(nested_a_little_opens)
{
  nested(20, WING, "[", "", "]", "}}", CLB_OK);
  nested(20, WING, "{\"a\":", "1", "}", "}}", CLB_OK);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors headers meant to harm");
  TCase *large = files_case(suite, "large", 60);
  TCase *deep = files_case(suite, "deep", 120);

  tcase_add_test(large, shape_of_ones_without_end);
  tcase_add_test(large, offsets_without_end);
  tcase_add_test(large, objects_without_end_in_an_unknown_key);
  tcase_add_test(large, unknown_keys_without_end);
  tcase_add_test(large, string_without_end_in_an_unknown_key);
  tcase_add_test(large, number_without_end);
  tcase_add_test(large, name_without_end);
  tcase_add_test(large, spaces_without_end);
  tcase_add_test(large, tiny_tensors_without_end);
  tcase_add_test(large, tiny_tensors_without_end_backwards);
  tcase_add_test(large, empty_tensors_without_end);
  tcase_add_test(large, names_alike_without_end);
  tcase_add_test(large, one_name_without_end);
  tcase_add_test(large, metadata_without_end);
  tcase_add_test(deep, nested_a_hundred_thousand_deep_is_refused);
  tcase_add_test(deep, nested_a_little_opens);
  return files_main(suite, FIXTURE_HOST);
}
