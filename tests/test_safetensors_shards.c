/*
 * Sets of files: how tensors are divided, what the index says, what a save
 * that fails or is killed leaves, and indices that are wrong or hostile.
 */
#include "config.h"

#include "saves.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INDEX "m.safetensors.index.json"
#define SHARD(i, n) "m-0000" #i "-of-0000" #n ".safetensors"
#define SUM(map) "{\"metadata\":{\"total_size\":1},\"weight_map\":{" map "}}"

/* --- What is saved -------------------------------------------------------- */

static const size_t extents[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static const char *const letters[] = {"a", "b", "c", "d", "e", "f",
                                      "g", "h", "i", "j"};

/* A tensor of U8 for each digit of sizes, named in order, its bytes value. */
static struct model make_model(const char *sizes, int value)
{
  struct model model = {.count = 0};
  unsigned char data[10];

  memset(data, value, sizeof data);
  for (size_t i = 0; sizes[i] != '\0'; i++) {
    size_t length = (size_t)(sizes[i] - '0');

    model_add_row(&model, letters[i], "U8", &extents[length], data, length);
  }
  return model;
}

static clb_status save_sizes(const char *path, const char *sizes, int value,
                             uint64_t most)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model(sizes, value);
  clb_status status;

  options.max_shard_size = most;
  status = clb_safetensors_save(path, model.tensors, model.count, &options);
  model_give_back(&model);
  return status;
}

static int exists(const char *path)
{
  return access(path, F_OK) == 0;
}

/* The value of every byte of the set's tensors, each of which has some. */
static int set_value(clb_safetensors *set)
{
  int value = -1;

  for (size_t i = 0; i < clb_safetensors_count(set); i++) {
    unsigned char data[10];
    clb_tensor tensor;
    size_t length;

    ck_ok(clb_safetensors_tensor(set, i, &tensor));
    length = clb_bytes_length(tensor.bytes);
    ck_ok(clb_bytes_copy_into(tensor.bytes, 0, data, length));
    ck_assert_uint_gt(length, 0);
    for (size_t j = 0; j < length; j++) {
      if (value < 0)
        value = data[j];
      ck_assert_msg(value == data[j], "%s is of another save", tensor.name);
    }
  }
  return value;
}

static int saved_set(const char *path, size_t count)
{
  clb_safetensors *set;
  int value;

  ck_ok(clb_safetensors_open(path, &set));
  ck_assert_uint_eq(clb_safetensors_count(set), count);
  value = set_value(set);
  clb_safetensors_close(set);
  return value;
}

/* --- Division and names --------------------------------------------------- */

START_TEST(tensors_fill_a_shard_until_one_would_pass_the_size)
{
  /* shards: that of each tensor, counted from 1. */
  static const struct {
    const char *sizes;
    uint64_t most;
    const char *shards;
  } cases[] = {
    {"44", 7, "12"},     {"444", 8, "112"},     {"662622", 10, "122333"},
    {"1111", 1, "1234"}, {"4940", 8, "2122"},   {"90", 8, "12"},
    {"919", 8, "132"},   {"00900", 8, "22122"}, {"4493", 8, "2213"},
    {"00010", 1, ""},    {"99", 8, "12"},       {"3333", 9, "1112"},
    {"1", 9, ""},        {"", 1, ""},           {"9", 1, ""},
    {"12345", 15, ""},   {"12345", 14, "11112"}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t count = 0;
    char path[64];

    fixture_input = cases[i].sizes;
    for (const char *s = cases[i].shards; *s != '\0'; s++)
      if ((size_t)(*s - '0') > count)
        count = (size_t)(*s - '0');
    ck_ok(save_sizes("m.safetensors", cases[i].sizes, 1, cases[i].most));
    ck_assert_int_eq(exists("m.safetensors"), count == 0);
    ck_assert_int_eq(exists(INDEX), count > 0);
    ck_assert_uint_eq(files_in("."), count == 0 ? 1 : count + 1);
    for (size_t s = 1; s <= count; s++) {
      clb_safetensors *file;

      snprintf(path, sizeof path, "m-0000%zu-of-0000%zu.safetensors", s, count);
      ck_ok(clb_safetensors_open(path, &file));
      for (size_t t = 0; cases[i].shards[t] != '\0'; t++) {
        clb_tensor tensor;

        ck_status(clb_safetensors_find(file, letters[t], &tensor),
                  (size_t)(cases[i].shards[t] - '0') == s ? CLB_OK
                                                          : CLB_NOT_FOUND);
      }
      clb_safetensors_close(file);
      ck_assert_int_eq(unlink(path), 0);
    }
    unlink(INDEX);
    unlink("m.safetensors");
  }
}
END_TEST

START_TEST(index_is_what_python_writes)
{
  static const char *const names[] = {"z", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                      "a\"\\/\b\f\n\r\t\x01\x7f", "\xe2\x82\xac",
                                      "", "z.10", "z.2"};
  static const char expected[] =
    "{\n"
    "  \"metadata\": {\n"
    "    \"total_size\": 24\n"
    "  },\n"
    "  \"weight_map\": {\n"
    "    \"\": \"w \\u00e9-00002-of-00003.safetensors\",\n"
    "    \"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\": "
    "\"w \\u00e9-00002-of-00003.safetensors\",\n"
    "    \"z\": \"w \\u00e9-00001-of-00003.safetensors\",\n"
    "    \"z.10\": \"w \\u00e9-00003-of-00003.safetensors\",\n"
    "    \"z.2\": \"w \\u00e9-00003-of-00003.safetensors\",\n"
    "    \"\\u00e9\": \"w \\u00e9-00001-of-00003.safetensors\",\n"
    "    \"\\u20ac\": \"w \\u00e9-00002-of-00003.safetensors\",\n"
    "    \"\\ud83d\\ude00\": \"w \\u00e9-00001-of-00003.safetensors\"\n"
    "  }\n"
    "}\n";
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = {.count = 0};
  clb_safetensors *set;

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    model_add_row(&model, names[i], "U8", &extents[3], "xyz", 3);
  options.max_shard_size = 9;
  ck_assert_int_eq(mkdir("d.d", 0755), 0);
  /* The ending is the format's, whether the path has it or not. */
  ck_ok(clb_safetensors_save("d.d/w \xc3\xa9", model.tensors, model.count,
                             &options));
  ck_file("d.d/w \xc3\xa9.safetensors.index.json", expected,
          sizeof expected - 1);
  ck_assert_uint_eq(files_in("d.d"), 4);
  ck_ok(clb_safetensors_open("d.d/w \xc3\xa9.safetensors.index.json", &set));
  for (size_t i = 0; i < model.count; i++) {
    clb_tensor tensor;

    ck_ok(clb_safetensors_find(set, names[i], &tensor));
    ck_assert_str_eq(tensor.name, names[i]);
  }
  clb_safetensors_close(set);
  model_give_back(&model);
}
END_TEST

START_TEST(shards_are_saves_of_their_tensors_with_all_metadata)
{
  static const clb_pair pairs[] = {{"format", "pt"}, {"b", ""}};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = {.count = 0};
  struct text alone, expected;
  clb_safetensors *set;
  clb_tensor tensor;
  clb_pair pair;

  model_add_row(&model, "x", "U8", &extents[4], "1234", 4);
  model_add_row(&model, "y", "F32", &extents[1], "5678", 4);
  model_add_row(&model, "w", "I16", &extents[2], "abcd", 4);
  options.metadata = pairs;
  options.metadata_count = 2;
  options.durable = 1;
  options.max_shard_size = 8;
  ck_ok(clb_safetensors_save("m.safetensors", model.tensors, 3, &options));
  ck_ok(clb_safetensors_save("alone", model.tensors, 2, &(clb_save_options){
    .struct_size = sizeof options, .metadata = pairs, .metadata_count = 2}));
  alone = file_read("alone");
  ck_file(SHARD(1, 2), alone.data, alone.length);
  expected = st_file("{\"__metadata__\":{\"format\":\"pt\",\"b\":\"\"},\"w\":"
                     ST_ENTRY("\"I16\"", "[2]", "[0,4]") "}", "abcd", 4);
  ck_file(SHARD(2, 2), expected.data, expected.length);
  ck_ok(clb_safetensors_open(INDEX, &set));
  ck_assert_uint_eq(clb_safetensors_count(set), 3);
  ck_assert_uint_eq(clb_safetensors_metadata_count(set), 2);
  for (size_t i = 0; i < 2; i++) {
    ck_ok(clb_safetensors_metadata_at(set, i, &pair));
    ck_assert_str_eq(pair.key, pairs[i].key);
    ck_assert_str_eq(pair.value, pairs[i].value);
  }
  /* By shard, then as in the file: the wider first there. */
  for (size_t i = 0; i < 3; i++) {
    ck_ok(clb_safetensors_tensor(set, i, &tensor));
    ck_assert_str_eq(tensor.name, &"y\0x\0w"[2 * i]);
  }
  ck_status(clb_safetensors_tensor(set, 3, &tensor), CLB_OUT_OF_RANGE);
  ck_status(clb_safetensors_find(set, "v", &tensor), CLB_NOT_FOUND);
  clb_safetensors_close(set);
  free(alone.data);
  free(expected.data);
  model_give_back(&model);
}
END_TEST

START_TEST(writes_to_a_sink_are_one_file)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model("444", 1);
  struct gathered whole = {0}, limited = {0};

  ck_ok(clb_safetensors_write(gather_sink, &whole, model.tensors, 3, NULL));
  options.max_shard_size = 4;
  ck_ok(clb_safetensors_write(gather_sink, &limited, model.tensors, 3,
                              &options));
  ck_assert_uint_eq(whole.length, limited.length);
  ck_bytes(limited.data, whole.data, whole.length);
  free(whole.data);
  free(limited.data);
  model_give_back(&model);
}
END_TEST

START_TEST(options_of_an_older_header_save_one_file)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model("444", 1);

  options.struct_size = offsetof(clb_save_options, max_shard_size);
  options.max_shard_size = 4;
  ck_ok(clb_safetensors_save("m.safetensors", model.tensors, 3, &options));
  ck_assert_uint_eq(files_in("."), 1);
  model_give_back(&model);
}
END_TEST

START_TEST(what_is_wrong_is_refused_before_anything_is_written)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model("444", 1);

  options.max_shard_size = 4;
  ck_status(clb_safetensors_save("./", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_save("", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_save("\xff", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  ck_status(clb_safetensors_save("no/m", model.tensors, 3, &options),
            CLB_IO_ERROR);
  ck_message("no/m.safetensors.index.json");
  /* In different shards. */
  model.tensors[2].name = "a";
  ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  ck_message("tensor \"a\" is given twice");
  model.tensors[2].name = NULL;
  ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  model.tensors[2].name = "c";
  ck_assert_uint_eq(files_in("."), 0);
  ck_assert_int_eq(mkdir(SHARD(2, 3), 0755), 0);
  ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
            CLB_INVALID_ARGUMENT);
  ck_message(SHARD(2, 3));
  ck_assert_uint_eq(files_in("."), 1);
  model_give_back(&model);
}
END_TEST

/* --- Progress, failures, deaths ------------------------------------------- */

struct steps {
  uint64_t last;
  int calls, stop;
};

static int count_steps(uint64_t done, uint64_t total, void *user)
{
  struct steps *steps = user;

  ck_assert_uint_eq(total, 12);
  ck_assert_uint_ge(done, steps->last);
  steps->last = done;
  return ++steps->calls == steps->stop;
}

START_TEST(progress_counts_and_cancels_over_all_shards)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model("444", 1);
  struct steps steps = {0};
  int calls;

  options.max_shard_size = 4;
  options.progress = count_steps;
  options.user = &steps;
  ck_ok(clb_safetensors_save("new", model.tensors, 3, &options));
  ck_assert_uint_eq(steps.last, 12);
  calls = steps.calls;
  ck_assert_int_ge(calls, 3);
  ck_ok(save_sizes("m", "444", 7, 4));
  ck_assert_uint_eq(files_in("."), 8);
  for (int i = 1; i <= calls; i++) {
    steps = (struct steps){.stop = i};
    ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
              CLB_CANCELLED);
    ck_assert_uint_eq(files_in("."), 8);
    ck_assert_int_eq(saved_set(INDEX, 3), 7);
  }
  model_give_back(&model);
}
END_TEST

START_TEST(sets_are_replaced_and_open_ones_stay)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_tensor tensors[3];
  clb_safetensors *set;

  ck_ok(save_sizes("m.safetensors", "444", 1, 4));
  ck_assert_int_eq(chmod(SHARD(2, 3), 0640), 0);
  ck_ok(clb_safetensors_open(INDEX, &set));
  ck_ok(save_sizes("m.safetensors", "444", 2, 4));
  ck_assert_uint_eq(files_in("."), 4);
  ck_assert_uint_eq(file_mode(SHARD(2, 3)), 0640);
  ck_assert_int_eq(saved_set(INDEX, 3), 2);
  ck_assert_int_eq(set_value(set), 1);
  /* Other counts leave the old shards alone, one file also the index. */
  ck_ok(save_sizes("m.safetensors", "444", 3, 8));
  ck_assert_int_eq(saved_set(INDEX, 3), 3);
  ck_assert_uint_eq(files_in("."), 6);
  ck_ok(save_sizes("m.safetensors", "444", 4, 12));
  ck_assert_uint_eq(files_in("."), 7);
  ck_assert_int_eq(saved_set(INDEX, 3), 3);
  ck_assert_int_eq(saved_set("m.safetensors", 3), 4);
  /* From the very set. */
  clb_safetensors_close(set);
  ck_ok(clb_safetensors_open(INDEX, &set));
  for (size_t i = 0; i < 3; i++)
    ck_ok(clb_safetensors_tensor(set, i, &tensors[i]));
  options.max_shard_size = 8;
  ck_ok(clb_safetensors_save("m.safetensors", tensors, 3, &options));
  clb_safetensors_close(set);
  ck_assert_int_eq(saved_set(INDEX, 3), 3);
  ck_assert_uint_eq(files_in("."), 7);
}
END_TEST

START_TEST(failed_writes_leave_the_old_set)
{
  struct rlimit limit = {SAVE_LARGE / 2, RLIM_INFINITY};
  unsigned char *data = fixture_bytes(SAVE_LARGE, 1);
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  struct model model = make_model("44", 1);
  size_t length = SAVE_LARGE;

  ck_ok(save_sizes("m", "444", 5, 4));
  model_add_row(&model, "large", "U8", &length, data, length);
  options.max_shard_size = 4;
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
            CLB_IO_ERROR);
  ck_assert_uint_eq(files_in("."), 4);
  ck_assert_int_eq(saved_set(INDEX, 3), 5);
  model_give_back(&model);
  free(data);
}
END_TEST

/* At the last of 12 bytes: where all but the last shard are sealed. */
static int block_rename(uint64_t done, uint64_t total, void *user)
{
  const char *path = user;

  if (done == total) {
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    file_write("inside", "x", 1);
    ck_assert_int_eq(chdir(path), 0);
    file_write("inside", "x", 1);
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_int_eq(unlink("inside"), 0);
  }
  return 0;
}

static void remove_block(const char *path)
{
  ck_assert_int_eq(chdir(path), 0);
  ck_assert_int_eq(unlink("inside"), 0);
  ck_assert_int_eq(chdir(".."), 0);
  ck_assert_int_eq(rmdir(path), 0);
}

/* A file that the old index names has no second name as it is a directory. */
START_TEST(failed_renames_leave_no_mixture)
{
  static const char *const paths[] = {SHARD(1, 3), SHARD(2, 3)};

  for (size_t i = 0; i < 2; i++) {
    clb_save_options options = CLB_SAVE_OPTIONS_INIT;
    struct model model = make_model("444", 1);
    clb_safetensors *set;

    ck_ok(save_sizes("m", "444", 5, 4));
    options.max_shard_size = 4;
    options.progress = block_rename;
    options.user = (void *)paths[i];
    ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
              CLB_IO_ERROR);
    ck_message(paths[i]);
    ck_message(INDEX " is removed");
    ck_assert_uint_eq(files_in("."), 3);
    ck_status(clb_safetensors_open(INDEX, &set), CLB_IO_ERROR);
    remove_block(paths[i]);
    model_give_back(&model);
    ck_ok(save_sizes("m", "444", 6, 4));
    ck_assert_uint_eq(files_in("."), 4);
    ck_assert_int_eq(saved_set(INDEX, 3), 6);
  }
}
END_TEST

/* The first shard is replaced, the second, which is not the old set's, cannot
 * be. */
START_TEST(old_sets_stay_while_their_shards_are_replaced)
{
  static const char text[] = "{\"weight_map\":{\"a\":\"" SHARD(1, 3)
                             "\",\"c\":\"" SHARD(3, 3) "\"}}";

  for (int durable = 0; durable < 2; durable++) {
    clb_save_options options = CLB_SAVE_OPTIONS_INIT;
    struct model model = make_model("444", 1);

    ck_ok(save_sizes("m", "444", 5, 4));
    file_write(INDEX, text, sizeof text - 1);
    ck_assert_int_eq(chmod(INDEX, 0640), 0);
    options.max_shard_size = 4;
    options.durable = durable;
    options.progress = block_rename;
    options.user = (void *)(uintptr_t)SHARD(2, 3);
    ck_status(clb_safetensors_save("m", model.tensors, 3, &options),
              CLB_IO_ERROR);
    ck_message(SHARD(2, 3));
    ck_assert_int_eq(saved_set(INDEX, 2), 5);
    ck_assert_uint_eq(file_mode(INDEX), 0640);
    ck_assert_int_eq(saved_set(SHARD(1, 3), 1), 1);
    ck_assert_uint_eq(files_in("."), 6);
    remove_block(SHARD(2, 3));
    ck_ok(save_sizes("m", "444", 6, 4));
    ck_assert_uint_eq(files_in("."), 4);
    ck_assert_int_eq(saved_set(INDEX, 3), 6);
    ck_assert_int_eq(unlink(INDEX), 0);
    model_give_back(&model);
  }
}
END_TEST

static int kill_me(uint64_t done, uint64_t total, void *user)
{
  if (done == *(uint64_t *)user || done == total)
    raise(SIGKILL);
  return 0;
}

START_TEST(killed_saves_leave_the_old_set_and_are_cleaned_up_after)
{
  ck_ok(save_sizes("m", "444", 5, 4));
  for (uint64_t at = 4; at <= 12; at += 4) {
    pid_t child = fork();
    int status;

    if (child == 0) {
      clb_save_options options = CLB_SAVE_OPTIONS_INIT;
      struct model model = make_model("444", 1);

      options.max_shard_size = 4;
      options.progress = kill_me;
      options.user = &at;
      clb_safetensors_save("m", model.tensors, 3, &options);
      _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_uint_gt(files_in("."), 4);
    ck_assert_int_eq(saved_set(INDEX, 3), 5);
    ck_ok(save_sizes("m", "444", 5, 4));
    ck_assert_uint_eq(files_in("."), 4);
  }
}
END_TEST

START_TEST(saves_killed_at_any_time_leave_a_set)
{
  enum { KILLS = 100 };

  ck_ok(save_sizes("m", "444", 200, 4));
  for (int i = 0; i < KILLS; i++) {
    pid_t child = fork();
    int status;

    if (child == 0)
      for (int value = 1;; value = value % 199 + 1)
        if (save_sizes("m", "444", value, 4) != CLB_OK)
          _exit(1);
    usleep((useconds_t)(137 * i % 4001));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_gt(saved_set(INDEX, 3), 0);
  }
  ck_ok(save_sizes("m", "444", 200, 4));
  ck_assert_uint_eq(files_in("."), 4);
  ck_assert_int_eq(saved_set(INDEX, 3), 200);
}
END_TEST

START_TEST(readers_never_see_shards_of_two_saves)
{
  enum { SAVES = 300 };
  clb_safetensors *set;
  pid_t child;
  int status, opened = 0;

  ck_ok(save_sizes("m", "444", 1, 4));
  child = fork();
  if (child == 0) {
    for (int i = 0; i < SAVES; i++)
      if (save_sizes("m", "444", 1 + i % 200, 4) != CLB_OK)
        _exit(1);
    _exit(0);
  }
  while (waitpid(child, &status, WNOHANG) == 0) {
    clb_status got = clb_safetensors_open(INDEX, &set);

    if (got != CLB_OK) {
      ck_status(got, CLB_IO_ERROR);
      ck_message("again and again");
      continue;
    }
    opened++;
    ck_assert_int_gt(set_value(set), 0);
    clb_safetensors_close(set);
  }
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ck_assert_int_gt(opened, 0);
  ck_assert_int_eq(saved_set(INDEX, 3), 1 + (SAVES - 1) % 200);
}
END_TEST

START_TEST(processes_that_save_at_once_leave_one_set)
{
  enum { SAVERS = 3, SAVES = 20 };
  pid_t children[SAVERS];

  for (int i = 0; i < SAVERS; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      for (int j = 0; j < SAVES; j++)
        if (save_sizes("m", "444", 1 + i, 4) != CLB_OK)
          _exit(1);
      _exit(0);
    }
  }
  for (int i = 0; i < SAVERS; i++)
    child_ended_well(children[i]);
  ck_assert_uint_eq(files_in("."), 4);
  ck_assert_int_gt(saved_set(INDEX, 3), 0);
}
END_TEST

/* --- Indices -------------------------------------------------------------- */

/* Two files of one byte each: tensor "a" in "one", "b" in "two". */
static void write_files(void)
{
  st_write("one", "{\"__metadata__\":{\"k\":\"1\",\"l\":\"3\"},\"a\":"
           ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}", "\1", 1);
  st_write("two", "{\"__metadata__\":{\"m\":\"4\",\"k\":\"2\"},\"b\":"
           ST_ENTRY("\"U8\"", "[1]", "[0,1]") "}", "\1", 1);
}

static clb_status open_text(const char *text, size_t length)
{
  clb_safetensors *set = NULL;
  clb_status status;

  file_write("x.index.json", text, length);
  status = clb_safetensors_open("x.index.json", &set);
  if (status != CLB_OK)
    ck_message("x.index.json");
  clb_safetensors_close(set);
  return status;
}

START_TEST(indices_of_other_writers_open)
{
  static const char *const texts[] = {
    "{\"weight_map\":{\"a\":\"one\",\"b\":\"two\"}}",
    "{ \"weight_map\" : {\"b\":\"two\", \"\\u0061\":\"\\u006fne\"}, \"metadata\": "
    "{\"total_size\": 1.5e3, \"x\": [{\"weight_map\": {}}, null, true]} }\n\n",
    "{\"metadata\":null,\"weight_map\":{\"b\":\"two\",\"a\":\"one\"},\"z\":[]}"};

  write_files();
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    fixture_input = texts[i];
    ck_ok(open_text(texts[i], strlen(texts[i])));
    ck_assert_int_eq(saved_set("x.index.json", 2), 1);
  }
  ck_ok(open_text("{\"weight_map\":{}}", 17));
}
END_TEST

START_TEST(metadata_of_a_set_has_each_key_once)
{
  static const clb_pair expected[] = {{"k", "1"}, {"l", "3"}, {"m", "4"}};
  static const char text[] = SUM("\"a\":\"one\",\"b\":\"two\"");
  clb_safetensors *set;

  write_files();
  file_write("x.index.json", text, sizeof text - 1);
  ck_ok(clb_safetensors_open("x.index.json", &set));
  ck_assert_uint_eq(clb_safetensors_metadata_count(set), 3);
  for (size_t i = 0; i < 3; i++) {
    clb_pair pair;

    ck_ok(clb_safetensors_metadata_at(set, i, &pair));
    ck_assert_str_eq(pair.key, expected[i].key);
    ck_assert_str_eq(pair.value, expected[i].value);
  }
  clb_safetensors_close(set);
}
END_TEST

START_TEST(shards_may_be_links_and_are_beside_the_index_as_named)
{
  ck_ok(save_sizes("m", "444", 6, 4));
  ck_assert_int_eq(mkdir("snapshot", 0755), 0);
  ck_assert_int_eq(chdir("snapshot"), 0);
  ck_assert_int_eq(symlink("../" INDEX, INDEX), 0);
  ck_assert_int_eq(symlink("../" SHARD(1, 3), SHARD(1, 3)), 0);
  ck_assert_int_eq(symlink("../" SHARD(2, 3), SHARD(2, 3)), 0);
  ck_assert_int_eq(symlink("../" SHARD(3, 3), SHARD(3, 3)), 0);
  ck_assert_int_eq(chdir(".."), 0);
  ck_assert_int_eq(saved_set("snapshot/" INDEX, 3), 6);
}
END_TEST

START_TEST(texts_that_are_no_index_are_refused)
{
  static const struct {
    const char *text, *message;
  } cases[] = {
    {"", "does not begin with {"},
    {"[]", "does not begin with {"},
    {"{", "x.index.json"},
    {"{}", "has no \"weight_map\""},
    {"{\"metadata\":{\"weight_map\":{}}}", "has no \"weight_map\""},
    {"{\"weight_map\":[]}", "is not an object"},
    {"{\"weight_map\":\"one\"}", "is not an object"},
    {"{\"weight_map\":1}", "is not an object"},
    {"{\"weight_map\":null}", "is not an object"},
    {"{\"weight_map\":{},\"weight_map\":{}}", "given twice"},
    {SUM("\"a\":\"one\",\"b\":\"two\"") "x", "trailing garbage"},
    {SUM("\"a\":\"one\",\"b\":\"two\"") "{}", "x.index.json"},
    {SUM("\"a\":\"one\",\"b\":\"two\","), "x.index.json"},
    {SUM("\"a\":1"), "tensor \"a\": its file is not a string"},
    {SUM("\"a\":true"), "tensor \"a\": its file is not a string"},
    {SUM("\"a\":[\"one\"]"), "tensor \"a\": its file is not a string"},
    {SUM("\"a\":{\"b\":\"one\"}"), "tensor \"a\": its file is not a string"},
    {SUM("\"a\":\"\""), "tensor \"a\": its file is not one beside"},
    {SUM("\"a\":\".\""), "tensor \"a\": its file is not one beside"},
    {SUM("\"a\":\"..\""), "tensor \"a\": its file is not one beside"},
    {SUM("\"a\":\"../one\""), "tensor \"a\": its file is not one beside"},
    {SUM("\"a\":\"./one\""), "tensor \"a\": its file is not one beside"},
    {SUM("\"a\":\"\\/etc\\/passwd\""), "its file is not one beside"},
    {SUM("\"a\":\"\\u002e\\u002e\""), "its file is not one beside"},
    {SUM("\"a\":\"one\\u0000\""), "U+0000"},
    {SUM("\"a\\u0000\":\"one\""), "U+0000"},
    {SUM("\"a\":\"\xff\""), "not UTF-8"},
    {SUM("\"a\":\"\\ud800\""), "surrogate"},
    {SUM("\"a\":\"one\",\"a\":\"one\",\"b\":\"two\""), "\"a\" is given twice"},
    /* What the files have is something else. */
    {SUM("\"a\":\"one\",\"a\":\"two\",\"b\":\"two\""), "tensor \"a\""},
    {SUM("\"a\":\"two\",\"b\":\"one\""), "one: tensor \"a\" is in it"},
    {SUM("\"a\":\"one\",\"c\":\"one\",\"b\":\"two\""),
     "one: tensor \"c\" is not in it"},
    {SUM("\"0\":\"one\",\"a\":\"one\""), "one: tensor \"0\" is not in it"},
    {SUM("\"a\":\"one\",\"c\":\"two\""), "two: tensor \"b\" is in it"},
    {SUM("\"a\":\"one\",\"b\":\"two\",\"x\":\"x.index.json\""),
     "tensor \"x\": x.index.json: "},
    {SUM("\"a\":\"one\",\"b\":\"pipe\""), "tensor \"b\": pipe: "},
    {SUM("\"a\":\"one\",\"b\":\"short\""), "tensor \"b\": short: "},
    {SUM("\"a\":\"one\",\"b\":\"empty\""), "tensor \"b\": empty: "}};

  write_files();
  file_write("empty", "", 0);
  st_write("short", "{\"b\":" ST_ENTRY("\"U8\"", "[2]", "[0,2]") "}", "\1", 1);
  ck_assert_int_eq(mkfifo("pipe", 0600), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture_input = cases[i].text;
    ck_status(open_text(cases[i].text, strlen(cases[i].text)),
              CLB_FORMAT_ERROR);
    ck_message(cases[i].message);
  }
}
END_TEST

START_TEST(names_in_two_files_are_refused)
{
  static const char text[] = SUM("\"a\":\"one\",\"b\":\"two\",\"a\":\"two\"");

  write_files();
  st_write("two", "{\"a\":" ST_ENTRY("\"U8\"", "[1]", "[0,1]") ",\"b\":"
           ST_ENTRY("\"U8\"", "[1]", "[1,2]") "}", "\1\1", 2);
  ck_status(open_text(text, sizeof text - 1), CLB_FORMAT_ERROR);
  ck_message("tensor \"a\" is given twice");
}
END_TEST

START_TEST(missing_and_cut_shards_are_named)
{
  clb_safetensors *set;

  ck_ok(save_sizes("m", "444", 5, 4));
  ck_assert_int_eq(truncate(SHARD(3, 3), 80), 0);
  ck_status(clb_safetensors_open(INDEX, &set), CLB_FORMAT_ERROR);
  ck_message("tensor \"c\": " SHARD(3, 3) ": ");
  ck_assert_int_eq(unlink(SHARD(2, 3)), 0);
  ck_status(clb_safetensors_open(INDEX, &set), CLB_IO_ERROR);
  ck_message("tensor \"b\": " SHARD(2, 3) ": ");
  ck_assert_int_eq(unlink(INDEX), 0);
  ck_status(clb_safetensors_open(INDEX, &set), CLB_IO_ERROR);
  ck_assert_int_eq(mkdir(INDEX, 0755), 0);
  ck_status(clb_safetensors_open(INDEX, &set), CLB_INVALID_ARGUMENT);
}
END_TEST

START_TEST(large_and_deep_indices_cost_no_more_than_their_length)
{
  enum { MANY = 2 << 20 };
  struct text text = {0};
  size_t before, peak;

  write_files();
  file_write("x.index.json", "{", 1);
  ck_assert_int_eq(truncate("x.index.json", 100000001), 0);
  ck_status(clb_safetensors_open("x.index.json", &(clb_safetensors *){NULL}),
            CLB_FORMAT_ERROR);
  ck_message("100000001 bytes");
  for (int deep = 125; deep <= 126; deep++) {
    text.length = 0;
    text_add(&text, "{\"x\":");
    text_repeat(&text, "[", (size_t)deep + 1);
    text_repeat(&text, "]", (size_t)deep + 1);
    text_add(&text, ",\"weight_map\":{}}");
    ck_status(open_text((char *)text.data, text.length),
              deep == 125 ? CLB_OK : CLB_FORMAT_ERROR);
  }
  text.length = 0;
  text_add(&text, "{\"weight_map\":{\"a\":\"b\"");
  text_repeat(&text, ",\"\":\"b\"", MANY / 7);
  text_add(&text, "}}");
  file_write("x.index.json", text.data, text.length);
  if (!forget_peak())
    return;
  before = fixture_hwm();
  ck_status(clb_safetensors_open("x.index.json", &(clb_safetensors *){NULL}),
            CLB_FORMAT_ERROR);
  peak = fixture_hwm() - before;
  ck_assert_msg(peak <= 16 * text.length + ((size_t)16 << 20),
                "%zu bytes for an index of %zu", peak, text.length);
  free(text.data);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("sets of safetensors files");
  TCase *saved = files_case(suite, "saved", 20);
  TCase *trust = files_case(suite, "trust", 60);
  TCase *opened = files_case(suite, "opened", 20);

  tcase_add_test(saved, tensors_fill_a_shard_until_one_would_pass_the_size);
  tcase_add_test(saved, index_is_what_python_writes);
  tcase_add_test(saved, shards_are_saves_of_their_tensors_with_all_metadata);
  tcase_add_test(saved, writes_to_a_sink_are_one_file);
  tcase_add_test(saved, options_of_an_older_header_save_one_file);
  tcase_add_test(saved, what_is_wrong_is_refused_before_anything_is_written);
  tcase_add_test(trust, progress_counts_and_cancels_over_all_shards);
  tcase_add_test(trust, sets_are_replaced_and_open_ones_stay);
  tcase_add_test(trust, failed_writes_leave_the_old_set);
  tcase_add_test(trust, failed_renames_leave_no_mixture);
  tcase_add_test(trust, old_sets_stay_while_their_shards_are_replaced);
  tcase_add_test(trust, saves_killed_at_any_time_leave_a_set);
  tcase_add_test(trust, killed_saves_leave_the_old_set_and_are_cleaned_up_after);
  tcase_add_test(trust, readers_never_see_shards_of_two_saves);
  tcase_add_test(trust, processes_that_save_at_once_leave_one_set);
  tcase_add_test(opened, indices_of_other_writers_open);
  tcase_add_test(opened, metadata_of_a_set_has_each_key_once);
  tcase_add_test(opened, shards_may_be_links_and_are_beside_the_index_as_named);
  tcase_add_test(opened, texts_that_are_no_index_are_refused);
  tcase_add_test(opened, names_in_two_files_are_refused);
  tcase_add_test(opened, missing_and_cut_shards_are_named);
  tcase_add_test(opened,
                 large_and_deep_indices_cost_no_more_than_their_length);
  return files_main(suite, FIXTURE_HOST);
}
