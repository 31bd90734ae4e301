/*
 * Files that are not safetensors files, though many look like one: each is
 * refused with a status, a line that says what is wrong in which file, and
 * nothing left behind.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <unistd.h>

#define F32(shape, offsets) ST_ENTRY("\"F32\"", shape, offsets)
#define U8(shape, offsets) ST_ENTRY("\"U8\"", shape, offsets)
#define WING(entry) "{\"wing\":" entry "}"
#define TWO(first, second) "{\"tail\":" first ",\"wing\":" second "}"
#define META(text) "{\"__metadata__\":" text "}"
#define META_AND_WING(text)                                                    \
  "{\"__metadata__\":" text ",\"wing\":" F32("[1]", "[0,4]") "}"

/* What a header must not be.  In names and messages "wing" is the tensor at
 * fault. */
static const struct bad {
  const char *what;
  const char *header;
  size_t data;      /* bytes after the header */
  const char *says; /* the message has this too; NULL: the file's name alone */
} bad_headers[] = {
  /* Not JSON. */
  {"no JSON", "hello", 0, NULL},
  {"an empty header", "", 0, NULL},
  {"spaces alone", "        ", 0, NULL},
  {"an object that does not end", "{", 0, NULL},
  {"a name that does not end", "{\"wing", 0, NULL},
  {"a name without a value", "{\"wing\"}", 0, NULL},
  {"a name without a value, with a colon", "{\"wing\":}", 0, NULL},
  {"a comma at the end", "{\"wing\":" F32("[1]", "[0,4]") ",}", 4, NULL},
  {"a comma at the start", "{,\"wing\":" F32("[1]", "[0,4]") "}", 4, NULL},
  {"no comma between two",
   "{\"tail\":" U8("[1]", "[0,1]") "\"wing\":" U8("[1]", "[1,2]") "}", 2, NULL},
  {"a comma at the end of an entry",
   WING("{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],}"), 1, NULL},
  {"a comma at the end of a shape", WING(U8("[1,]", "[0,1]")), 1, NULL},
  {"a second value", "{}{}", 0, NULL},
  {"letters behind the object", "{} x", 0, NULL},
  {"a brace too many", "{}}", 0, NULL},
  {"a comment", "{/* none */}", 0, NULL},
  {"a comment to the end of the line", "{}// none", 0, NULL},
  {"single quotes", "{'wing':" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a bare name", "{wing:" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a leading zero", WING(U8("[01]", "[0,1]")), 1, NULL},
  {"a plus sign", WING(U8("[+1]", "[0,1]")), 1, NULL},
  {"a hexadecimal number", WING(U8("[0x1]", "[0,1]")), 1, NULL},
  {"a bare word", WING(U8("[one]", "[0,1]")), 1, NULL},
  {"no number", WING(U8("[NaN]", "[0,1]")), 1, NULL},
  {"a tab in a name", "{\"wi\tng\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a newline in a name", "{\"wi\nng\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"an unknown escape", "{\"wi\\xng\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a byte order mark", "\xef\xbb\xbf{}", 0, NULL},
  /* White space first: the format wants the brace. */
  {"a space before the brace", " {}", 0, NULL},
  {"a newline before the brace", "\n{}", 0, NULL},
  {"a tab before the brace", "\t{}", 0, NULL},
  /* Not an object. */
  {"an array", "[]", 0, NULL},
  {"null", "null", 0, NULL},
  {"a string", "\"wing\"", 0, NULL},
  {"a number", "1", 0, NULL},
  {"true", "true", 0, NULL},
  /* Text that is none. */
  {"invalid UTF-8 in a name", "{\"wi\xffng\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a cut character in a name", "{\"wing\xc3\":" U8("[1]", "[0,1]") "}", 1,
   NULL},
  {"an overlong character", "{\"wing\xc0\xaf\":" U8("[1]", "[0,1]") "}", 1,
   NULL},
  {"a surrogate in UTF-8", "{\"wing\xed\xa0\x80\":" U8("[1]", "[0,1]") "}", 1,
   NULL},
  {"a character past U+10FFFF",
   "{\"wing\xf4\x90\x80\x80\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a lone high surrogate", "{\"wing\\ud800\":" U8("[1]", "[0,1]") "}", 1,
   NULL},
  {"a lone low surrogate", "{\"wing\\udc00\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"a high surrogate and a letter", "{\"\\ud800wing\":" U8("[1]", "[0,1]") "}",
   1, NULL},
  {"two high surrogates", "{\"\\ud800\\ud800\":" U8("[1]", "[0,1]") "}", 1,
   NULL},
  {"U+0000 in a name", "{\"wing\\u0000\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"U+0000 alone as a name", "{\"\\u0000\":" U8("[1]", "[0,1]") "}", 1, NULL},
  {"U+0000 behind __metadata__", "{\"__metadata__\\u0000\":{\"a\":\"b\"}}", 0,
   NULL},
  {"U+0000 in a dtype", WING(ST_ENTRY("\"U8\\u0000\"", "[1]", "[0,1]")), 1,
   NULL},
  {"U+0000 in a metadata key", META("{\"a\\u0000b\":\"c\"}"), 0, NULL},
  {"U+0000 in a metadata value", META("{\"a\":\"b\\u0000c\"}"), 0, NULL},
  {"invalid UTF-8 in a metadata key", META("{\"a\xff\":\"c\"}"), 0, NULL},
  {"invalid UTF-8 in a metadata value", META("{\"a\":\"\xff\"}"), 0, NULL},
  {"a lone surrogate in a metadata value", META("{\"a\":\"\\ud800\"}"), 0,
   NULL},
  /* Given twice. */
  {"a name given twice",
   "{\"wing\":" U8("[1]", "[0,1]") ",\"wing\":" U8("[1]", "[1,2]") "}", 2,
   "wing"},
  {"an entry given twice",
   "{\"wing\":" U8("[1]", "[0,1]") ",\"wing\":" U8("[1]", "[0,1]") "}", 1,
   "wing"},
  {"a name given twice, far apart",
   "{\"wing\":" U8("[1]", "[0,1]") ",\"a\":" U8("[1]", "[1,2]") ",\"b\":" U8(
     "[1]", "[2,3]") ",\"wing\":" U8("[1]", "[3,4]") "}",
   4, "wing"},
  {"a name given twice, once in escapes",
   "{\"wing\":" U8("[1]", "[0,1]") ",\"w\\u0069ng\":" U8("[1]", "[1,2]") "}", 2,
   "wing"},
  {"an empty tensor's name given twice",
   "{\"wing\":" U8("[0]", "[0,0]") ",\"wing\":" U8("[0]", "[0,0]") "}", 0,
   "wing"},
  {"dtype given twice",
   WING("{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[0,1]}"),
   1, NULL},
  {"shape given twice",
   WING("{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],"
        "\"data_offsets\":[0,1]}"),
   1, NULL},
  {"data_offsets given twice",
   WING("{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
        "\"data_offsets\":[0,1]}"),
   1, NULL},
  {"shape given twice, once in escapes",
   WING("{\"dtype\":\"U8\",\"shape\":[1],\"\\u0073hape\":[1],"
        "\"data_offsets\":[0,1]}"),
   1, NULL},
  {"__metadata__ given twice",
   "{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{\"c\":\"d\"}}", 0, NULL},
  {"__metadata__ given twice, once in escapes",
   "{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, NULL},
  {"a metadata key given twice", META("{\"a\":\"b\",\"a\":\"c\"}"), 0, NULL},
  {"a metadata key given twice, once in escapes",
   META("{\"a\":\"b\",\"\\u0061\":\"b\"}"), 0, NULL},
  /* Metadata. */
  {"metadata that is an array", META("[]"), 0, NULL},
  {"metadata that is a string", META("\"a\""), 0, NULL},
  {"metadata that is a number", META("1"), 0, NULL},
  {"a metadata value that is a number", META("{\"a\":1}"), 0, NULL},
  {"a metadata value that is null", META("{\"a\":null}"), 0, NULL},
  {"a metadata value that is true", META("{\"a\":true}"), 0, NULL},
  {"a metadata value that is an object", META("{\"a\":{}}"), 0, NULL},
  {"a metadata value that is an array", META("{\"a\":[\"b\"]}"), 0, NULL},
  {"metadata that looks like a tensor", META(U8("[1]", "[0,1]")), 1, NULL},
  {"a bad metadata value before a tensor", META_AND_WING("{\"a\":2}"), 4, NULL},
  /* Entries. */
  {"an entry that is null", WING("null"), 0, NULL},
  {"an entry that is a number", WING("1"), 0, NULL},
  {"an entry that is a string", WING("\"U8\""), 0, NULL},
  {"an entry that is true", WING("true"), 0, NULL},
  {"an entry that is an empty array", WING("[]"), 0, NULL},
  {"an entry that is empty", WING("{}"), 0, "wing"},
  {"no dtype", WING("{\"shape\":[1],\"data_offsets\":[0,1]}"), 1, "wing"},
  {"no shape", WING("{\"dtype\":\"U8\",\"data_offsets\":[0,1]}"), 1, "wing"},
  {"no data_offsets", WING("{\"dtype\":\"U8\",\"shape\":[1]}"), 1, "wing"},
  {"dtype in capitals",
   WING("{\"DTYPE\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"), 1, "wing"},
  {"dtype with more behind U+0000",
   WING("{\"dtype\\u0000x\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"), 1,
   NULL},
  {"a dtype only within an unknown key",
   WING("{\"x\":{\"dtype\":\"U8\"},\"shape\":[1],\"data_offsets\":[0,1]}"), 1,
   "wing"},
  /* dtype. */
  {"a dtype that is unknown", WING(ST_ENTRY("\"F33\"", "[1]", "[0,4]")), 4,
   "F33"},
  {"a dtype in small letters", WING(ST_ENTRY("\"f32\"", "[1]", "[0,4]")), 4,
   "wing"},
  {"an empty dtype", WING(ST_ENTRY("\"\"", "[1]", "[0,4]")), 4, "wing"},
  {"a dtype and a space", WING(ST_ENTRY("\"F32 \"", "[1]", "[0,4]")), 4,
   "wing"},
  {"the start of a dtype", WING(ST_ENTRY("\"F3\"", "[1]", "[0,4]")), 4,
   "wing"},
  {"a dtype that is a number", WING(ST_ENTRY("32", "[1]", "[0,4]")), 4, NULL},
  {"a dtype that is null", WING(ST_ENTRY("null", "[1]", "[0,4]")), 4, NULL},
  {"a dtype that is an array", WING(ST_ENTRY("[\"F32\"]", "[1]", "[0,4]")), 4,
   NULL},
  /* shape. */
  {"an extent of -1", WING(F32("[-1]", "[0,4]")), 4, NULL},
  {"two negative extents", WING(F32("[-1,-1]", "[0,4]")), 4, NULL},
  {"an extent of 2^64", WING(F32("[18446744073709551616]", "[0,0]")), 0, NULL},
  {"an extent of 2^64 + 1", WING(F32("[18446744073709551617]", "[0,4]")), 4,
   NULL},
  {"an extent of forty digits",
   WING(F32("[1000000000000000000000000000000000000001]", "[0,4]")), 4, NULL},
  {"an extent of 2^63", WING(F32("[9223372036854775808]", "[0,4]")), 4, NULL},
  {"extents whose product is 2^64", WING(F32("[4294967296,4294967296]",
                                             "[0,0]")), 0, "wing"},
  {"extents whose product is 2^64 + 2^32",
   WING(U8("[4294967297,4294967296]", "[0,4294967296]")), 0, "wing"},
  {"bytes whose product is 2^64", WING(F32("[4611686018427387904]", "[0,0]")),
   0, "wing"},
  {"bits whose product is 2^64", WING(U8("[2305843009213693952]", "[0,0]")), 0,
   "wing"},
  {"an extent with a fraction", WING(F32("[1.0]", "[0,4]")), 4, NULL},
  {"an extent with an exponent", WING(F32("[1e0]", "[0,4]")), 4, NULL},
  {"an extent of minus zero", WING(F32("[-0]", "[0,0]")), 0, NULL},
  {"an extent that is a string", WING(F32("[\"1\"]", "[0,4]")), 4, NULL},
  {"an extent that is null", WING(F32("[null]", "[0,4]")), 4, NULL},
  {"an extent that is true", WING(F32("[true]", "[0,4]")), 4, NULL},
  {"an extent that is an array", WING(F32("[[1]]", "[0,4]")), 4, NULL},
  {"an extent that is an empty array", WING(F32("[[]]", "[0,4]")), 4, NULL},
  {"an extent that is an object", WING(F32("[{}]", "[0,4]")), 4, NULL},
  {"a shape that is a number", WING(F32("1", "[0,4]")), 4, NULL},
  {"a shape that is a string", WING(F32("\"[1]\"", "[0,4]")), 4, NULL},
  {"a shape that is null", WING(F32("null", "[0,4]")), 4, NULL},
  {"a shape that is an object", WING(F32("{\"a\":1}", "[0,4]")), 4, NULL},
  {"half a byte", WING(ST_ENTRY("\"F4\"", "[3]", "[0,2]")), 2, "wing"},
  {"half a byte, rounded down", WING(ST_ENTRY("\"F4\"", "[3]", "[0,1]")), 1,
   "wing"},
  {"three quarters of a byte", WING(ST_ENTRY("\"F6_E2M3\"", "[1]", "[0,1]")), 1,
   "wing"},
  /* data_offsets. */
  {"offsets reversed", WING(F32("[1]", "[4,0]")), 4, "wing"},
  {"an empty tensor's offsets reversed", WING(F32("[0]", "[4,0]")), 4, "wing"},
  {"overlapping tensors", TWO(F32("[1]", "[0,4]"), F32("[1]", "[2,6]")), 6,
   NULL},
  {"a tensor within another", TWO(U8("[8]", "[0,8]"), U8("[2]", "[2,4]")), 8,
   NULL},
  {"an empty tensor within another", TWO(U8("[8]", "[0,8]"),
                                         U8("[0]", "[2,2]")), 8, NULL},
  {"two tensors with the same bytes", TWO(U8("[4]", "[0,4]"),
                                          U8("[4]", "[0,4]")), 4, NULL},
  {"a hole between two", TWO(U8("[4]", "[0,4]"), U8("[4]", "[5,9]")), 9,
   "wing"},
  {"a hole between two, last first", TWO(U8("[4]", "[5,9]"),
                                         U8("[4]", "[0,4]")), 9, NULL},
  {"a hole at the start", WING(U8("[4]", "[4,8]")), 8, "wing"},
  {"a hole before an empty tensor", TWO(U8("[4]", "[0,4]"),
                                        U8("[0]", "[6,6]")), 6, "wing"},
  {"an empty tensor past the end", WING(U8("[0]", "[8,8]")), 0, "wing"},
  {"offsets past the end", WING(F32("[2]", "[0,8]")), 7, NULL},
  {"offsets past the end, no data", WING(F32("[2]", "[0,8]")), 0, NULL},
  {"offsets far past the end",
   WING(U8("[9223372036854775807]", "[0,9223372036854775807]")), 8, NULL},
  {"offsets that wrap",
   TWO(U8("[4]", "[0,4]"), U8("[18446744073709551615]",
                              "[4,18446744073709551615]")), 4, NULL},
  {"offsets longer than the shape", WING(F32("[1]", "[0,8]")), 8, "wing"},
  {"offsets shorter than the shape", WING(F32("[2]", "[0,4]")), 4, "wing"},
  {"no bytes for a scalar", WING(F32("[]", "[0,0]")), 0, "wing"},
  {"bytes for an empty tensor", WING(F32("[3,0]", "[0,12]")), 12, "wing"},
  {"a negative start", WING(F32("[1]", "[-4,0]")), 4, NULL},
  {"a negative end", WING(F32("[1]", "[0,-4]")), 4, NULL},
  {"a start of minus zero", WING(F32("[1]", "[-0,4]")), 4, NULL},
  {"an end of 1e3", WING(U8("[1000]", "[0,1e3]")), 1000, NULL},
  {"an end of 4.0", WING(F32("[1]", "[0,4.0]")), 4, NULL},
  {"an end of 2^64 + 4", WING(F32("[1]", "[0,18446744073709551620]")), 4, NULL},
  {"both past 2^64",
   WING(F32("[1]", "[18446744073709551616,18446744073709551620]")), 4, NULL},
  {"a start of -2^63 - 1", WING(F32("[1]", "[-9223372036854775809,4]")), 4,
   NULL},
  {"offsets that are strings", WING(F32("[1]", "[\"0\",\"4\"]")), 4, NULL},
  {"an end that is null", WING(F32("[1]", "[0,null]")), 4, NULL},
  {"an end that is true", WING(U8("[1]", "[0,true]")), 1, NULL},
  {"an end that is an array", WING(F32("[1]", "[0,[4]]")), 4, NULL},
  {"an array of offsets in an array", WING(F32("[1]", "[[0,4]]")), 4, NULL},
  {"no offset", WING(F32("[0]", "[]")), 0, NULL},
  {"one offset", WING(F32("[1]", "[4]")), 4, NULL},
  {"three offsets", WING(F32("[1]", "[0,4,8]")), 4, NULL},
  {"offsets that are a number", WING(F32("[1]", "4")), 4, NULL},
  {"offsets that are a string", WING(F32("[1]", "\"[0,4]\"")), 4, NULL},
  {"offsets that are null", WING(F32("[1]", "null")), 4, NULL},
  {"offsets that are an object", WING(F32("[1]", "{\"0\":4}")), 4, NULL},
  /* Data that no tensor has. */
  {"a byte behind the last tensor", WING(F32("[1]", "[0,4]")), 5, NULL},
  {"much behind the last tensor", WING(F32("[1]", "[0,4]")), 4096, NULL},
  {"data and no tensor", "{}", 1, NULL},
  {"data and metadata alone", META("{\"a\":\"b\"}"), 8, NULL},
};
enum { BAD_HEADERS = sizeof bad_headers / sizeof *bad_headers };

/* Opening the file "bad" fails so, and leaves nothing behind. */
static void refused(const char *what, clb_status status, const char *says)
{
  clb_safetensors *untouched = (clb_safetensors *)(uintptr_t)&status;
  clb_safetensors *file = untouched;
  size_t descriptors = fixture_descriptors();
  const char *message;
  clb_status got = clb_safetensors_open("bad", &file);

  message = clb_error_message();
  ck_assert_msg(got == status, "%s: %s (%s)", what, clb_status_name(got),
                message);
  ck_assert_msg(file == untouched, "%s: the output was written", what);
  ck_assert_msg(strstr(message, "bad") != NULL, "%s: no file in: %s", what,
                message);
  ck_assert_msg(strchr(message, '\n') == NULL, "%s: two lines: %s", what,
                message);
  ck_assert_msg(strlen(message) > strlen("bad") + 4, "%s: no reason in: %s",
                what, message);
  if (says != NULL)
    ck_assert_msg(strstr(message, says) != NULL, "%s: no \"%s\" in: %s", what,
                  says, message);
  ck_assert_int_eq(clb_error_cl(), CL_SUCCESS);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
}

START_TEST(bad_header_is_refused)
{
  const struct bad *bad = &bad_headers[_i];
  unsigned char *data = fixture_bytes(bad->data, 1);

  st_write("bad", bad->header, data, bad->data);
  refused(bad->what, CLB_FORMAT_ERROR, bad->says);
  free(data);
}
END_TEST

START_TEST(bad_header_with_spaces_behind_is_refused)
{
  const struct bad *bad = &bad_headers[_i];
  unsigned char *data = fixture_bytes(bad->data, 1);
  struct text text = st_file(bad->header, data, bad->data);

  file_write("bad", text.data, text.length);
  refused(bad->what, CLB_FORMAT_ERROR, bad->says);
  free(text.data);
  free(data);
}
END_TEST

START_TEST(zero_bytes_in_the_header_are_refused)
{
  static const char behind[] = "{}\0\0\0\0\0";
  static const char within[] = "{\"wing\0\":" U8("[1]", "[0,1]") "}";
  static const char between[] = "{\0}";
  struct text text = st_raw(behind, sizeof behind, NULL, 0);

  file_write("bad", text.data, text.length);
  refused("zeros behind the object", CLB_FORMAT_ERROR, NULL);
  free(text.data);
  text = st_raw(within, sizeof within - 1, "x", 1);
  file_write("bad", text.data, text.length);
  refused("a zero in a name", CLB_FORMAT_ERROR, NULL);
  free(text.data);
  text = st_raw(between, sizeof between - 1, NULL, 0);
  file_write("bad", text.data, text.length);
  refused("a zero in the object", CLB_FORMAT_ERROR, NULL);
  free(text.data);
}
END_TEST

/* --- The length ---------------------------------------------------------- */

START_TEST(too_short_for_a_length_is_refused)
{
  static const unsigned char zeros[8];

  for (size_t length = 0; length < 8; length++) {
    file_write("bad", zeros, length);
    refused("a file of less than eight bytes", CLB_FORMAT_ERROR, NULL);
  }
  file_write("bad", zeros, 8);
  refused("a header of no bytes", CLB_FORMAT_ERROR, NULL);
}
END_TEST

/* A file whose header length says this, and that has "{}" and spaces. */
static void write_length(uint64_t says, size_t header, off_t size)
{
  struct text text = {0};

  text_bytes(&text, &says, sizeof says); /* the host is little-endian */
  if (header >= 2)
    text_add(&text, "{}");
  while (text.length < 8 + header)
    text_add(&text, " ");
  file_write("bad", text.data, text.length);
  free(text.data);
  if (size > 0)
    ck_assert_int_eq(truncate("bad", size), 0);
}

START_TEST(length_past_the_end_is_refused)
{
  static const uint64_t lengths[] = {
    9,
    16,
    4096,
    99999999,
    100000000,
    UINT64_C(1) << 31,
    UINT64_C(1) << 32,
    (UINT64_C(1) << 32) + 8, /* 8 in 32 bits */
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) - 1,
    (UINT64_C(1) << 63) + 8,
    UINT64_MAX - 8, /* 8 + it wraps to 0 and beyond */
    UINT64_MAX - 7,
    UINT64_MAX,
  };

  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    write_length(lengths[i], 8, 0);
    refused("a header length past the end", CLB_FORMAT_ERROR, NULL);
  }
}
END_TEST

START_TEST(length_above_the_limit_is_refused_unread)
{
  size_t before;

  /* The files are as long as they say, and sparse. */
  write_length(100000001, 8, 8 + 100000001);
  before = fixture_rss();
  refused("a header of 100,000,001 bytes", CLB_FORMAT_ERROR, NULL);
  write_length(UINT64_C(1) << 32, 8, (off_t)8 + ((off_t)1 << 32));
  refused("a header of 4 GiB", CLB_FORMAT_ERROR, NULL);
  if (fixture_measures_memory())
    ck_assert_uint_lt(fixture_hwm() - before, (size_t)16 << 20);
}
END_TEST

/* --- Copies that went wrong ---------------------------------------------- */

static const char good_header[] =
  "{\"__metadata__\":{\"made\":\"by \\u00e9\\ud83d\\ude00\"},\"wing\":"
  ST_ENTRY("\"F64\"", "[2,1]", "[0,16]") ",\"tail\":"
  ST_ENTRY("\"I16\"", "[3]", "[16,22]") ",\"none\":"
  ST_ENTRY("\"U8\"", "[0,4]", "[22,22]") "}";

START_TEST(every_truncated_copy_is_refused)
{
  unsigned char *data = fixture_bytes(22, 2);
  struct text text = st_file(good_header, data, 22);
  clb_safetensors *file;

  file_write("bad", text.data, text.length);
  ck_ok(clb_safetensors_open("bad", &file));
  clb_safetensors_close(file);
  for (size_t length = 0; length < text.length; length++) {
    file_write("bad", text.data, length);
    refused("a truncated copy", CLB_FORMAT_ERROR, NULL);
  }
  free(text.data);
  free(data);
}
END_TEST

/* Opens "bad"; what opens can be read to its end. */
static void opened_or_refused(void)
{
  clb_safetensors *file;
  clb_status status = clb_safetensors_open("bad", &file);

  if (status != CLB_OK) {
    ck_assert_msg(status == CLB_FORMAT_ERROR, "%s: %s",
                  clb_status_name(status), clb_error_message());
    return;
  }
  for (size_t i = 0; i < clb_safetensors_count(file); i++) {
    clb_tensor tensor, found;
    const void *data;

    ck_ok(clb_safetensors_tensor(file, i, &tensor));
    ck_ok(clb_safetensors_find(file, tensor.name, &found));
    ck_ok(clb_bytes_read(tensor.bytes, CLB_COPY, &data));
  }
  for (size_t i = 0; i < clb_safetensors_metadata_count(file); i++) {
    clb_pair pair;

    ck_ok(clb_safetensors_metadata_at(file, i, &pair));
    ck_assert_uint_lt(strlen(pair.key) + strlen(pair.value),
                      sizeof good_header);
  }
  clb_safetensors_close(file);
}

START_TEST(any_changed_byte_opens_or_is_refused)
{
  static const unsigned char changes[] = {
    0, '\t', ' ', '"', '\\', '{', '}', '[', ']', ',', ':', '-', '0', '1',
    '9', 'e', '.', 'a', 'u', 0x7f, 0x80, 0xc3, 0xff};
  unsigned char *data = fixture_bytes(22, 2);
  struct text text = st_file(good_header, data, 22);

  for (size_t at = 0; at < text.length - 22; at++) {
    unsigned char kept = text.data[at];

    for (size_t i = 0; i < sizeof changes; i++) {
      text.data[at] = changes[i];
      file_write("bad", text.data, text.length);
      opened_or_refused();
    }
    text.data[at] = kept;
  }
  free(text.data);
  free(data);
}
END_TEST

START_TEST(any_bytes_left_out_or_doubled_open_or_are_refused)
{
  unsigned char *data = fixture_bytes(22, 2);
  uint64_t seed = fixture_number("CLBYTES_TEST_SEED", 25);
  size_t header = sizeof good_header - 1;

  for (int round = 0; round < 2000; round++) {
    size_t from = fixture_below(&seed, header);
    size_t count = fixture_below(&seed, 12);
    size_t to = from + count < header ? from + count : header;
    struct text changed = {0}, text;

    text_bytes(&changed, good_header, round % 2 != 0 ? from : to);
    text_bytes(&changed, good_header + (round % 2 != 0 ? to : from),
               header - (round % 2 != 0 ? to : from));
    text = st_raw(changed.data, changed.length, data, 22);
    file_write("bad", text.data, text.length);
    opened_or_refused();
    free(text.data);
    free(changed.data);
  }
  free(data);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors that are refused");
  TCase *headers = files_case(suite, "headers", 5);
  TCase *lengths = files_case(suite, "lengths", 10);
  TCase *copies = files_case(suite, "copies", 60);

  tcase_add_loop_test(headers, bad_header_is_refused, 0, BAD_HEADERS);
  tcase_add_loop_test(headers, bad_header_with_spaces_behind_is_refused, 0,
                      BAD_HEADERS);
  tcase_add_test(headers, zero_bytes_in_the_header_are_refused);
  tcase_add_test(lengths, too_short_for_a_length_is_refused);
  tcase_add_test(lengths, length_past_the_end_is_refused);
  tcase_add_test(lengths, length_above_the_limit_is_refused_unread);
  tcase_add_test(copies, every_truncated_copy_is_refused);
  tcase_add_test(copies, any_changed_byte_opens_or_is_refused);
  tcase_add_test(copies, any_bytes_left_out_or_doubled_open_or_are_refused);
  return files_main(suite, FIXTURE_HOST);
}
