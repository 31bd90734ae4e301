/*
 * Opening files that are as the format wants them, written here byte for
 * byte; what their tensors and metadata say, how long it all lives, and what
 * can be opened at all.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define F32(shape, offsets) ST_ENTRY("\"F32\"", shape, offsets)
#define U8(shape, offsets) ST_ENTRY("\"U8\"", shape, offsets)

/* Writes a file of this header and opens it; data: bytes after the header. */
static clb_safetensors *opened(const char *header, const void *data,
                               size_t length)
{
  clb_safetensors *file = NULL;

  st_write("good", header, data, length);
  ck_ok(clb_safetensors_open("good", &file));
  ck_assert_ptr_nonnull(file);
  return file;
}

/* The tensor has this name and dtype, and just these bytes. */
static void ck_tensor(const clb_tensor *tensor, const char *name,
                      const char *dtype, const void *data, size_t length)
{
  unsigned char *copy = fixture_malloc(length);
  const void *read;

  ck_assert_str_eq(tensor->name, name);
  ck_assert_str_eq(tensor->dtype, dtype);
  ck_assert_uint_eq(clb_bytes_length(tensor->bytes), length);
  ck_ok(clb_bytes_copy_into(tensor->bytes, 0, copy, length));
  ck_bytes(copy, data, length);
  ck_ok(clb_bytes_read(tensor->bytes, CLB_COPY, &read));
  ck_bytes(read, data, length);
  free(copy);
}

/* --- What a file says ---------------------------------------------------- */

START_TEST(empty_file_of_the_format_has_nothing)
{
  clb_safetensors *file = opened("{}", NULL, 0);
  clb_tensor tensor;
  clb_pair pair;

  ck_assert_uint_eq(clb_safetensors_count(file), 0);
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 0);
  ck_status(clb_safetensors_tensor(file, 0, &tensor), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_metadata_at(file, 0, &pair), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_find(file, "", &tensor), CLB_NOT_FOUND);
  clb_safetensors_close(file);
  clb_safetensors_close(opened("{}      ", NULL, 0));
  clb_safetensors_close(opened("{ } \n\r\t", NULL, 0));
  clb_safetensors_close(opened("{\"__metadata__\":{}}", NULL, 0));
}
END_TEST

START_TEST(tensors_come_in_the_order_of_their_data)
{
  unsigned char *data = fixture_bytes(30, 1);
  clb_safetensors *file = opened(
    "{\"c\":" U8("[2,3]", "[24,30]") ",\"b\":" F32("[]", "[20,24]") ",\"z\":"
    F32("[5,1]", "[0,20]") "}", data, 30);
  clb_tensor tensor;

  ck_assert_uint_eq(clb_safetensors_count(file), 3);
  ck_ok(clb_safetensors_tensor(file, 0, &tensor));
  ck_tensor(&tensor, "z", "F32", data, 20);
  ck_assert_uint_eq(tensor.ndim, 2);
  ck_assert_uint_eq(tensor.shape[0], 5);
  ck_assert_uint_eq(tensor.shape[1], 1);
  ck_ok(clb_safetensors_tensor(file, 1, &tensor));
  ck_tensor(&tensor, "b", "F32", data + 20, 4);
  ck_assert_uint_eq(tensor.ndim, 0);
  ck_ok(clb_safetensors_tensor(file, 2, &tensor));
  ck_tensor(&tensor, "c", "U8", data + 24, 6);
  ck_assert_uint_eq(tensor.ndim, 2);
  ck_assert_uint_eq(tensor.shape[0], 2);
  ck_assert_uint_eq(tensor.shape[1], 3);
  clb_safetensors_close(file);
  free(data);
}
END_TEST

START_TEST(out_is_written_on_success_alone)
{
  clb_safetensors *file = opened("{\"__metadata__\":{\"a\":\"b\"},\"x\":"
                                 U8("[1]", "[0,1]") "}", "!", 1);
  clb_tensor tensor = {"as", "it", 7, NULL, NULL};
  clb_pair pair = {"as it", "was"};

  ck_status(clb_safetensors_tensor(file, 1, &tensor), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_tensor(file, SIZE_MAX, &tensor), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_find(file, "y", &tensor), CLB_NOT_FOUND);
  ck_status(clb_safetensors_metadata_at(file, 1, &pair), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_metadata_at(file, SIZE_MAX, &pair),
            CLB_OUT_OF_RANGE);
  ck_assert_str_eq(tensor.name, "as");
  ck_assert_uint_eq(tensor.ndim, 7);
  ck_assert_str_eq(pair.value, "was");
  clb_safetensors_close(file);
}
END_TEST

START_TEST(null_is_refused_or_nothing)
{
  clb_safetensors *file = opened("{}", NULL, 0);
  clb_tensor tensor;
  clb_pair pair;

  ck_status(clb_safetensors_open(NULL, &file), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_open("good", NULL), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_tensor(NULL, 0, &tensor), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_tensor(file, 0, NULL), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_find(NULL, "a", &tensor), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_find(file, NULL, &tensor), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_find(file, "a", NULL), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_metadata_at(NULL, 0, &pair), CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_metadata_at(file, 0, NULL), CLB_INVALID_ARGUMENT);
  ck_assert_uint_eq(clb_safetensors_count(NULL), 0);
  ck_assert_uint_eq(clb_safetensors_metadata_count(NULL), 0);
  clb_safetensors_close(NULL);
  clb_safetensors_close(file);
}
END_TEST

START_TEST(every_dtype_opens_with_its_own_size)
{
  static const struct {
    const char *name;
    size_t bytes; /* of eight elements */
  } dtypes[] = {
    {"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16},
    {"F16", 16}, {"BF16", 16}, {"I32", 32}, {"U32", 32}, {"F32", 32},
    {"C64", 64}, {"F64", 64}, {"I64", 64}, {"U64", 64}};
  unsigned char *data = fixture_bytes(64, 2);

  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    struct text header = {0};
    clb_safetensors *file;
    clb_tensor tensor;

    text_format(&header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[2,4],"
                "\"data_offsets\":[0,%zu]}}", dtypes[i].name, dtypes[i].bytes);
    text_bytes(&header, "", 1);
    file = opened((const char *)header.data, data, dtypes[i].bytes);
    ck_ok(clb_safetensors_find(file, "x", &tensor));
    ck_tensor(&tensor, "x", dtypes[i].name, data, dtypes[i].bytes);
    clb_safetensors_close(file);
    free(header.data);
  }
  free(data);
}
END_TEST

START_TEST(keys_come_in_any_order_with_any_space)
{
  clb_safetensors *file = opened(
    "{ \"b\" :\t{ \"data_offsets\" : [ 0 ,\r\n 4 ] , \"shape\" : [ 2 , 2 ] ,"
    "\"dtype\" : \"U8\" } , \"__metadata__\" : { \"k\" : \"v\" } ,\n"
    "\"a\":{\"shape\":[ ],\"dtype\":\"I8\",\"data_offsets\":[4,5]}}\n",
    "12345", 5);
  clb_tensor tensor;
  clb_pair pair;

  ck_ok(clb_safetensors_find(file, "b", &tensor));
  ck_tensor(&tensor, "b", "U8", "1234", 4);
  ck_ok(clb_safetensors_find(file, "a", &tensor));
  ck_tensor(&tensor, "a", "I8", "5", 1);
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 1);
  ck_ok(clb_safetensors_metadata_at(file, 0, &pair));
  ck_assert_str_eq(pair.key, "k");
  ck_assert_str_eq(pair.value, "v");
  clb_safetensors_close(file);
}
END_TEST

START_TEST(unknown_keys_of_an_entry_are_ignored)
{
  clb_safetensors *file = opened(
    "{\"x\":{\"a\":null,\"dtype\":\"U8\","
    "\"b\":[1,-2.5e3,\"[\",{\"shape\":[9]}],"
    "\"shape\":[3],\"c\":{\"dtype\":\"F32\",\"data_offsets\":[7,8],\"d\":{}},"
    "\"data_offsets\":[0,3],\"Shape\":[8],\"\":true,\"e\":false,"
    "\"f\":18446744073709551616,\"g\":1e999,\"h\":[[[[[[[[]]]]]]]],"
    "\"__metadata__\":{\"i\":1},\"j\":\"\\u0000\"}}", "abc", 3);
  clb_tensor tensor;

  ck_assert_uint_eq(clb_safetensors_count(file), 1);
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 0);
  ck_ok(clb_safetensors_tensor(file, 0, &tensor));
  ck_tensor(&tensor, "x", "U8", "abc", 3);
  ck_assert_uint_eq(tensor.ndim, 1);
  ck_assert_uint_eq(tensor.shape[0], 3);
  clb_safetensors_close(file);
}
END_TEST

START_TEST(names_in_escapes_are_names)
{
  static const char *const names[] = {
    "", "a\"b\\c/d", "\b\f\n\r\t\x01\x7f", "\xc3\xa9\xe2\x82\xac",
    "\xf0\x9f\x98\x80", "_metadata__", "data_offsets"};
  clb_safetensors *file = opened(
    "{\"\":" U8("[1]", "[0,1]") ",\"a\\\"b\\\\c\\/d\":" U8("[1]", "[1,2]")
    ",\"\\b\\f\\n\\r\\t\\u0001\x7f\":" U8("[1]", "[2,3]")
    ",\"\\u00e9\xe2\x82\xac\":" U8("[1]", "[3,4]")
    ",\"\\ud83d\\uDE00\":{\"\\u0064type\":\"U\\u0038\",\"shape\":[1],"
    "\"data_offsets\":[4,5]},\"_metadata__\":" U8("[1]", "[5,6]")
    ",\"data_offsets\":" U8("[1]", "[6,7]")
    ",\"\\u005f_metadata__\":{\"\\u00e9\":\"\\\"\",\"\":\"\"}}",
    "0123456", 7);
  clb_tensor tensor;
  clb_pair pair;

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ck_ok(clb_safetensors_tensor(file, i, &tensor));
    ck_tensor(&tensor, names[i], "U8", &"0123456"[i], 1);
    ck_ok(clb_safetensors_find(file, names[i], &tensor));
    ck_tensor(&tensor, names[i], "U8", &"0123456"[i], 1);
  }
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 2);
  ck_ok(clb_safetensors_metadata_at(file, 0, &pair));
  ck_assert_str_eq(pair.key, "\xc3\xa9");
  ck_assert_str_eq(pair.value, "\"");
  ck_ok(clb_safetensors_metadata_at(file, 1, &pair));
  ck_assert_str_eq(pair.key, "");
  ck_assert_str_eq(pair.value, "");
  clb_safetensors_close(file);
}
END_TEST

START_TEST(metadata_keeps_its_order_and_its_bytes)
{
  struct text header = {0};
  clb_safetensors *file;
  clb_pair pair;
  char key[16];

  text_add(&header, "{\"__metadata__\":{");
  for (int i = 99; i >= 0; i--)
    text_format(&header, "\"k%d\":\"%d\\n\",", i * 7 % 100, i);
  text_add(&header, "\"last\":\"\"}}");
  text_bytes(&header, "", 1);
  file = opened((const char *)header.data, NULL, 0);
  ck_assert_uint_eq(clb_safetensors_metadata_count(file), 101);
  for (int i = 99; i >= 0; i--) {
    ck_ok(clb_safetensors_metadata_at(file, (size_t)(99 - i), &pair));
    snprintf(key, sizeof key, "k%d", i * 7 % 100);
    ck_assert_str_eq(pair.key, key);
    snprintf(key, sizeof key, "%d\n", i);
    ck_assert_str_eq(pair.value, key);
  }
  clb_safetensors_close(file);
  free(header.data);
}
END_TEST

START_TEST(empty_tensors_may_stand_at_any_boundary)
{
  clb_safetensors *file = opened(
    "{\"end\":" F32("[0,7]", "[4,4]") ",\"one\":" F32("[1]", "[0,4]")
    ",\"start\":" U8("[0]", "[0,0]") ",\"big\":"
    U8("[0,9223372036854775807]", "[4,4]") "}", "1234", 4);
  static const char *const empty[] = {"end", "start", "big"};
  clb_tensor tensor;

  ck_assert_uint_eq(clb_safetensors_count(file), 4);
  for (int i = 0; i < 3; i++) {
    ck_ok(clb_safetensors_find(file, empty[i], &tensor));
    ck_tensor(&tensor, empty[i], i == 0 ? "F32" : "U8", "", 0);
    ck_assert_uint_eq(tensor.shape[0], 0);
  }
  ck_ok(clb_safetensors_find(file, "one", &tensor));
  ck_tensor(&tensor, "one", "F32", "1234", 4);
  clb_safetensors_close(file);
}
END_TEST

static clb_status open_rank(size_t rank, clb_safetensors **file)
{
  struct text header = {0};

  text_add(&header, "{\"wing\":{\"dtype\":\"U8\",\"shape\":[1");
  text_repeat(&header, ",1", rank - 1);
  text_add(&header, "],\"data_offsets\":[0,1]}}");
  text_bytes(&header, "", 1);
  st_write("rank", (const char *)header.data, "!", 1);
  free(header.data);
  return clb_safetensors_open("rank", file);
}

START_TEST(sixty_four_dimensions_open_and_one_more_does_not)
{
  clb_safetensors *file;
  clb_tensor tensor;

  ck_ok(open_rank(64, &file));
  ck_ok(clb_safetensors_tensor(file, 0, &tensor));
  ck_assert_uint_eq(tensor.ndim, 64);
  ck_assert_uint_eq(tensor.shape[63], 1);
  ck_tensor(&tensor, "wing", "U8", "!", 1);
  clb_safetensors_close(file);
  ck_status(open_rank(65, &file), CLB_FORMAT_ERROR);
  ck_message("wing");
}
END_TEST

/* --- Large files --------------------------------------------------------- */

START_TEST(only_the_header_is_read)
{
  const off_t size = (off_t)5 << 30;
  clb_safetensors *file;
  clb_tensor tensor;
  char end[4];
  int descriptor;

  /* Sparse: 5 GiB and then "tail". */
  st_write("good", "{\"wing\":" U8("[5,1073741824]", "[0,5368709120]")
           ",\"tail\":" U8("[4]", "[5368709120,5368709124]") "}", "", 0);
  descriptor = open("good", O_WRONLY | O_APPEND | O_CLOEXEC);
  ck_assert_int_ge(descriptor, 0);
  if (ftruncate(descriptor, lseek(descriptor, 0, SEEK_END) + size) != 0) {
    close(descriptor);
    FIXTURE_SKIP("no file of 5 GiB here: %s", strerror(errno));
  }
  ck_assert_int_eq(write(descriptor, "tail", 4), 4);
  close(descriptor);
  ck_ok(clb_safetensors_open("good", &file));
  ck_ok(clb_safetensors_find(file, "tail", &tensor));
  ck_tensor(&tensor, "tail", "U8", "tail", 4);
  ck_ok(clb_safetensors_find(file, "wing", &tensor));
  ck_assert_uint_eq(clb_bytes_length(tensor.bytes), (uint64_t)size);
  ck_ok(clb_bytes_copy_into(tensor.bytes, (size_t)size - 4, end, 4));
  ck_bytes(end, "\0\0\0\0", 4);
  clb_safetensors_close(file);
  if (fixture_measures_memory())
    ck_assert_uint_lt(fixture_hwm(), (size_t)256 << 20);
}
END_TEST

/* --- How long things live ------------------------------------------------ */

START_TEST(bytes_retained_outlive_the_file)
{
  unsigned char *data = fixture_bytes(100, 3);
  size_t descriptors = fixture_descriptors();
  clb_safetensors *file = opened("{\"x\":" U8("[100]", "[0,100]") "}", data,
                                 100);
  unsigned char copy[100];
  clb_tensor tensor;
  clb_bytes *view;

  ck_ok(clb_safetensors_find(file, "x", &tensor));
  clb_bytes_retain(tensor.bytes);
  clb_safetensors_close(file);
  ck_assert_int_eq(clb_bytes_place(tensor.bytes), CLB_PLACE_FILE);
  ck_ok(clb_bytes_view(tensor.bytes, 10, 60, &view));
  clb_bytes_release(tensor.bytes);
  ck_ok(clb_bytes_copy_into(view, 0, copy, 50));
  ck_bytes(copy, data + 10, 50);
  clb_bytes_release(view);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
  free(data);
}
END_TEST

START_TEST(replaced_file_keeps_its_old_contents)
{
  clb_safetensors *file = opened("{\"x\":" U8("[3]", "[0,3]") "}", "old", 3);
  clb_tensor tensor;

  st_write("other", "{\"x\":" U8("[3]", "[0,3]") "}", "new", 3);
  ck_assert_int_eq(rename("other", "good"), 0);
  ck_ok(clb_safetensors_find(file, "x", &tensor));
  ck_tensor(&tensor, "x", "U8", "old", 3);
  clb_safetensors_close(file);
}
END_TEST

START_TEST(file_changed_in_place_is_an_error)
{
  clb_safetensors *file = opened("{\"x\":" U8("[3]", "[0,3]") "}", "old", 3);
  clb_tensor tensor;
  const void *data;

  ck_assert_int_eq(truncate("good", 12), 0);
  ck_ok(clb_safetensors_find(file, "x", &tensor));
  ck_status(clb_bytes_read(tensor.bytes, CLB_COPY, &data), CLB_IO_ERROR);
  ck_assert_str_ne(clb_error_message(), "");
  clb_safetensors_close(file);
}
END_TEST

START_TEST(many_tensors_share_one_descriptor)
{
  size_t before = fixture_descriptors();
  struct text header = {0};
  clb_safetensors *file;
  clb_tensor tensor;
  char data[2000];

  text_add(&header, "{");
  for (int i = 0; i < 2000; i++) {
    data[i] = (char)(i % 251);
    text_format(&header, "%s\"n%d\":{\"dtype\":\"U8\",\"shape\":[1],"
                "\"data_offsets\":[%d,%d]}", i > 0 ? "," : "", i, i, i + 1);
  }
  text_add(&header, "}");
  text_bytes(&header, "", 1);
  file = opened((const char *)header.data, data, sizeof data);
  ck_assert_uint_le(fixture_descriptors(), before + 1);
  for (int i = 0; i < 2000; i++) {
    char name[16];

    snprintf(name, sizeof name, "n%d", i);
    ck_ok(clb_safetensors_find(file, name, &tensor));
    ck_tensor(&tensor, name, "U8", data + i, 1);
  }
  ck_assert_uint_le(fixture_descriptors(), before + 1);
  clb_safetensors_close(file);
  ck_assert_uint_eq(fixture_descriptors(), before);
  free(header.data);
}
END_TEST

START_TEST(opening_a_thousand_times_keeps_no_descriptor)
{
  size_t before = fixture_descriptors();

  st_write("bad", "{\"x\":" U8("[3]", "[0,3]") "}", "ab", 2);
  for (int i = 0; i < 1000; i++) {
    clb_safetensors *file;

    clb_safetensors_close(opened("{\"x\":" U8("[1]", "[0,1]") "}", "!", 1));
    ck_status(clb_safetensors_open("bad", &file), CLB_FORMAT_ERROR);
  }
  ck_assert_uint_eq(fixture_descriptors(), before);
}
END_TEST

START_TEST(descriptors_are_not_inherited)
{
  clb_safetensors *file = opened("{\"x\":" U8("[1]", "[0,1]") "}", "!", 1);
  int seen = 0;

  for (int i = 3; i < 256; i++) {
    struct stat ours, theirs;

    if (fstat(i, &ours) != 0 || stat("good", &theirs) != 0 ||
        ours.st_ino != theirs.st_ino)
      continue;
    seen++;
    ck_assert_int_ne(fcntl(i, F_GETFD) & FD_CLOEXEC, 0);
  }
  ck_assert_int_eq(seen, 1);
  clb_safetensors_close(file);
}
END_TEST

/* --- What can be opened -------------------------------------------------- */

static void not_opened(const char *path, clb_status status, const char *says)
{
  clb_safetensors *untouched = (clb_safetensors *)(uintptr_t)&status;
  clb_safetensors *file = untouched;
  size_t descriptors = fixture_descriptors();

  ck_status(clb_safetensors_open(path, &file), status);
  ck_assert_ptr_eq(file, untouched);
  ck_message(path);
  if (says != NULL)
    ck_message(says);
  ck_assert_uint_eq(fixture_descriptors(), descriptors);
}

START_TEST(what_is_no_regular_file_is_refused_at_once)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);

  ck_assert_int_eq(mkfifo("pipe", 0600), 0);
  not_opened("pipe", CLB_INVALID_ARGUMENT, NULL);
  ck_assert_int_eq(symlink("pipe", "link"), 0);
  not_opened("link", CLB_INVALID_ARGUMENT, NULL);
  not_opened(".", CLB_INVALID_ARGUMENT, NULL);
  not_opened("/", CLB_INVALID_ARGUMENT, NULL);
  not_opened("/dev/zero", CLB_INVALID_ARGUMENT, NULL);
  not_opened("/dev/null", CLB_INVALID_ARGUMENT, NULL);
  ck_assert_int_eq(bind(descriptor, (struct sockaddr *)&address,
                        sizeof address), 0);
  ck_assert_int_ne(clb_safetensors_open("socket", &(clb_safetensors *){NULL}),
                   CLB_OK);
  close(descriptor);
}
END_TEST

START_TEST(what_is_not_there_is_an_io_error)
{
  char longest[400];

  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  not_opened("missing", CLB_IO_ERROR, strerror(ENOENT));
  not_opened("missing/good", CLB_IO_ERROR, strerror(ENOENT));
  not_opened("", CLB_IO_ERROR, strerror(ENOENT));
  not_opened(longest, CLB_IO_ERROR, strerror(ENAMETOOLONG));
  ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
  not_opened("dangling", CLB_IO_ERROR, strerror(ENOENT));
  ck_assert_int_eq(symlink("loop", "loop"), 0);
  not_opened("loop", CLB_IO_ERROR, strerror(ELOOP));
  st_write("good", "{}", NULL, 0);
  not_opened("good/", CLB_IO_ERROR, strerror(ENOTDIR));
}
END_TEST

START_TEST(what_may_not_be_read_is_an_io_error)
{
  st_write("good", "{}", NULL, 0);
  ck_assert_int_eq(chmod("good", 0), 0);
  ck_assert_int_eq(mkdir("closed", 0700), 0);
  st_write("closed/good", "{}", NULL, 0);
  become_nobody();
  if (access("good", R_OK) == 0)
    FIXTURE_SKIP("this user may read everything");
  not_opened("good", CLB_IO_ERROR, strerror(EACCES));
  if (access("closed/good", R_OK) != 0)
    not_opened("closed/good", CLB_IO_ERROR, strerror(EACCES));
}
END_TEST

START_TEST(no_descriptor_left_is_an_io_error)
{
  struct rlimit limit;
  clb_safetensors *file;

  st_write("good", "{}", NULL, 0);
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 0;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ck_status(clb_safetensors_open("good", &file), CLB_IO_ERROR);
  ck_message(strerror(EMFILE));
  limit.rlim_cur = limit.rlim_max;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ck_ok(clb_safetensors_open("good", &file));
  clb_safetensors_close(file);
}
END_TEST

START_TEST(paths_of_every_kind_are_opened)
{
  struct text path = {0};
  clb_safetensors *file;

  st_write("a b\n\xff.safetensors", "{}", NULL, 0);
  ck_ok(clb_safetensors_open("a b\n\xff.safetensors", &file));
  clb_safetensors_close(file);
  ck_assert_int_eq(symlink("a b\n\xff.safetensors", "link"), 0);
  ck_ok(clb_safetensors_open("link", &file));
  clb_safetensors_close(file);
  ck_ok(clb_safetensors_open(".//link", &file));
  clb_safetensors_close(file);
  text_format(&path, "%s/link", files_here());
  text_bytes(&path, "", 1);
  ck_ok(clb_safetensors_open((const char *)path.data, &file));
  clb_safetensors_close(file);
  free(path.data);
}
END_TEST

START_TEST(not_found_leaves_the_message)
{
  clb_safetensors *file = opened("{\"x\":" U8("[1]", "[0,1]") "}", "!", 1);
  clb_tensor tensor;
  char *message;

  ck_status(clb_safetensors_tensor(file, 5, &tensor), CLB_OUT_OF_RANGE);
  ck_message("5");
  message = strdup(clb_error_message());
  ck_status(clb_safetensors_find(file, "missing", &tensor), CLB_NOT_FOUND);
  ck_status(clb_safetensors_find(file, "", &tensor), CLB_NOT_FOUND);
  ck_status(clb_safetensors_find(file, "x ", &tensor), CLB_NOT_FOUND);
  ck_assert_str_eq(clb_error_message(), message);
  free(message);
  clb_safetensors_close(file);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("safetensors that are opened");
  TCase *contents = files_case(suite, "contents", 10);
  TCase *lives = files_case(suite, "lives", 10);
  TCase *kinds = files_case(suite, "kinds", 10);

  tcase_add_test(contents, empty_file_of_the_format_has_nothing);
  tcase_add_test(contents, tensors_come_in_the_order_of_their_data);
  tcase_add_test(contents, out_is_written_on_success_alone);
  tcase_add_test(contents, null_is_refused_or_nothing);
  tcase_add_test(contents, every_dtype_opens_with_its_own_size);
  tcase_add_test(contents, keys_come_in_any_order_with_any_space);
  tcase_add_test(contents, unknown_keys_of_an_entry_are_ignored);
  tcase_add_test(contents, names_in_escapes_are_names);
  tcase_add_test(contents, metadata_keeps_its_order_and_its_bytes);
  tcase_add_test(contents, empty_tensors_may_stand_at_any_boundary);
  tcase_add_test(contents, sixty_four_dimensions_open_and_one_more_does_not);
  tcase_add_test(contents, only_the_header_is_read);
  tcase_add_test(contents, not_found_leaves_the_message);
  tcase_add_test(lives, bytes_retained_outlive_the_file);
  tcase_add_test(lives, replaced_file_keeps_its_old_contents);
  tcase_add_test(lives, file_changed_in_place_is_an_error);
  tcase_add_test(lives, many_tensors_share_one_descriptor);
  tcase_add_test(lives, opening_a_thousand_times_keeps_no_descriptor);
  tcase_add_test(lives, descriptors_are_not_inherited);
  tcase_add_test(kinds, what_is_no_regular_file_is_refused_at_once);
  tcase_add_test(kinds, what_is_not_there_is_an_io_error);
  tcase_add_test(kinds, what_may_not_be_read_is_an_io_error);
  tcase_add_test(kinds, no_descriptor_left_is_an_io_error);
  tcase_add_test(kinds, paths_of_every_kind_are_opened);
  return files_main(suite, FIXTURE_HOST);
}
