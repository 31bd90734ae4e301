/*
 * How fast tensors get from the device into a file, synced or not, beside
 * write(), fsync() and O_DIRECT writes of as many bytes from host memory in the
 * same run; and the host memory it takes.  The first file is checked.
 */
#include "config.h"

#include "contents.h"

#include "../tools/host_memory.h"
#include "../tools/report.h"

#include <clbytes/safetensors.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW = 4096, PADDING = 128, NAME = 32, WRITE = 16 << 20 };

struct tensor {
  char name[NAME];
  struct bench_layout layout;
  cl_mem buffer;
  clb_bytes *bytes;
};

struct save {
  struct bench bench;
  const char *path;
  size_t count, bytes, rounds; /* bytes: of a tensor */
  bool strided;
  clb_file_io io;
  struct tensor *tensors;
  clb_tensor *saved;   /* the same, for the library */
  unsigned char *host; /* WRITE bytes, for write() */
};

static bool no_memory(void)
{
  tool_error("out of memory");
  return false;
}

static bool system_failed(const char *call, const char *path)
{
  tool_error("%s: %s: %s", path, call, strerror(errno));
  return false;
}

/* --- Tensors -------------------------------------------------------------- */

/* With --strided a third is padded and a third transposed. */
static struct bench_layout layout_of(const struct save *save, size_t index)
{
  if (!save->strided || index % 3 == 0)
    return bench_contiguous(save->bytes);
  return index % 3 == 1 ? bench_padded(save->bytes, ROW, PADDING)
                        : bench_transposed(save->bytes);
}

static bool make_tensor(struct save *save, size_t index)
{
  struct tensor *tensor = &save->tensors[index];

  snprintf(tensor->name, sizeof(tensor->name), "tensor.%05zu", index);
  tensor->layout = layout_of(save, index);
  if (!bench_filled_buffer(&save->bench, bench_layout_reach(&tensor->layout),
                           (uint32_t)index, &tensor->buffer) ||
      !bench_handle(&save->bench, tensor->buffer, &tensor->layout,
                    &tensor->bytes))
    return false;
  save->saved[index] = (clb_tensor){.name = tensor->name,
                                    .dtype = "F32",
                                    .bytes = tensor->bytes};
  return true;
}

static bool make_tensors(struct save *save)
{
  if (save->bytes % ROW != 0) {
    tool_error("--bytes: not a multiple of %d", (int)ROW);
    return false;
  }
  save->tensors = calloc(save->count, sizeof(*save->tensors));
  save->saved = calloc(save->count, sizeof(*save->saved));
  save->host = aligned_alloc(ROW, WRITE);
  if (save->tensors == NULL || save->saved == NULL || save->host == NULL)
    return no_memory();
  memset(save->host, 0xee, WRITE);
  for (size_t i = 0; i < save->count; i++)
    if (!make_tensor(save, i))
      return false;
  return true;
}

static void free_tensors(struct save *save)
{
  for (size_t i = 0; save->tensors != NULL && i < save->count; i++) {
    clb_bytes_release(save->tensors[i].bytes);
    if (save->tensors[i].buffer != NULL)
      clReleaseMemObject(save->tensors[i].buffer);
  }
  free(save->tensors);
  free(save->saved);
  free(save->host);
}

/* --- Ways of writing ------------------------------------------------------ */

static bool save_file(struct save *save, bool durable)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;

  options.durable = durable;
  options.io = save->io;
  return bench_ok(
      clb_safetensors_save(save->path, save->saved, save->count, &options),
      "a save");
}

static bool run_save(void *user)
{
  return save_file(user, false);
}

static bool run_save_durable(void *user)
{
  return save_file(user, true);
}

static size_t total_bytes(const struct save *save)
{
  return save->count * save->bytes;
}

static bool write_all(const struct save *save, int file)
{
  for (size_t left = total_bytes(save); left > 0;) {
    ssize_t written = write(file, save->host, left < WRITE ? left : WRITE);

    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return system_failed("write", save->path);
    left -= (size_t)written;
  }
  return true;
}

static bool write_file(const struct save *save, int flags, bool sync)
{
  int file =
      open(save->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0666);
  bool done;

  if (file < 0)
    return system_failed("open", save->path);
  /* As a save has it. */
  if (sync)
    (void)posix_fallocate(file, 0, (off_t)total_bytes(save));
  done = write_all(save, file);
  if (done && sync && fsync(file) != 0)
    done = system_failed("fsync", save->path);
  if (close(file) != 0 && done)
    done = system_failed("close", save->path);
  return done;
}

static bool run_write(void *user)
{
  return write_file(user, 0, false);
}

static bool run_write_sync(void *user)
{
  return write_file(user, 0, true);
}

#ifdef O_DIRECT
static bool run_write_direct(void *user)
{
  return write_file(user, O_DIRECT, true);
}

static bool takes_direct(const struct save *save)
{
  int file = open(save->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_DIRECT, 0666);

  if (file >= 0)
    close(file);
  unlink(save->path);
  return file >= 0;
}
#endif

/* Nothing is left to be written back while the next job runs. */
static void after_file(void *user)
{
  struct save *save = user;

  unlink(save->path);
}

/* --- Checking ------------------------------------------------------------- */

static bool check_tensor(const clb_safetensors *file,
                         const struct tensor *tensor, size_t index)
{
  struct bench_walk walk = {.layout = &tensor->layout,
                            .seed = (uint32_t)index};
  size_t length = bench_layout_bytes(&tensor->layout);
  clb_tensor found;
  clb_status status;

  if (!bench_ok(clb_safetensors_find(file, tensor->name, &found),
                tensor->name))
    return false;
  status = clb_bytes_stream(found.bytes, 0, clb_bytes_length(found.bytes),
                            bench_walk_on, &walk);
  if (walk.at == length && status == CLB_OK)
    return true;
  tool_error("%s: byte %zu of %zu is wrong", tensor->name, walk.at, length);
  return false;
}

static bool check_file(const struct save *save)
{
  clb_safetensors *file;
  bool right = true;

  if (!bench_ok(clb_safetensors_open(save->path, &file), "opening it"))
    return false;
  for (size_t i = 0; right && i < save->count; i++)
    right = check_tensor(file, &save->tensors[i], i);
  clb_safetensors_close(file);
  return right;
}

/* --- Measuring ------------------------------------------------------------ */

static void print_job(const char *way, const struct bench_job *ours,
                      const struct bench_job *raw, size_t bytes)
{
  char ours_text[BENCH_CELL], raw_text[BENCH_CELL], ratio[BENCH_CELL];

  printf("| %s | %s | %s | %s |\n", way, bench_rate_cell(ours, bytes, ours_text),
         bench_rate_cell(raw, bytes, raw_text),
         bench_speed_cell(ours, raw, ratio));
}

static bool measure_time(struct save *save)
{
  static struct bench_job ours = {.run = run_save};
  static struct bench_job durable = {.run = run_save_durable};
  static struct bench_job raw = {.run = run_write};
  static struct bench_job raw_sync = {.run = run_write_sync};
  struct bench_job *jobs[5] = {&ours, &raw, &durable, &raw_sync};
  size_t bytes = total_bytes(save), count = 4;
#ifdef O_DIRECT
  static struct bench_job raw_direct = {.run = run_write_direct};

  if (takes_direct(save))
    jobs[count++] = &raw_direct;
#endif
  for (size_t i = 0; i < count; i++) {
    jobs[i]->user = save;
    jobs[i]->after = after_file;
  }
  if (!bench_interleave(jobs, count, save->rounds))
    return false;
  printf("| saved, GB/s | from the device | write() from host memory | ratio |\n"
         "| --- | --- | --- | --- |\n");
  print_job("not synced", &ours, &raw, bytes);
  print_job("durable", &durable, &raw_sync, bytes);
#ifdef O_DIRECT
  if (count == 5)
    print_job("durable, against O_DIRECT", &durable, &raw_direct, bytes);
#endif
  return true;
}

/* The first save of all, so that its staging counts, and nothing that an
 * earlier one left behind is used again. */
static bool measure_memory(struct save *save)
{
  struct tool_growth growth;
  clb_stats stats;
  uint64_t grown = 0;
  bool known;

  tool_growth_start(&growth);
  if (!save_file(save, false))
    return false;
  known = tool_growth_bytes(&growth, &grown);
  clb_context_stats(save->bench.session.context, &stats, sizeof(stats));
  printf("| host memory grown, MiB | staging peak, MiB | materialised, bytes "
         "|\n| --- | --- | --- |\n| ");
  if (known)
    printf("%.1f", (double)grown / (1 << 20));
  else
    printf("-");
  printf(" | %.1f | %" PRIu64 " |\n\n",
         (double)stats.staging_peak / (1 << 20), stats.host_peak);
  return true;
}

static bool parse_io(const char *word, clb_file_io *io)
{
  static const char *const words[] = {"auto", "buffered", "direct", "mapped"};
  static const clb_file_io values[] = {CLB_FILE_AUTO, CLB_FILE_BUFFERED,
                                       CLB_FILE_DIRECT, CLB_FILE_MAPPED};

  for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
    if (strcmp(word, words[i]) == 0) {
      *io = values[i];
      return true;
    }
  tool_error("--io: %s: not auto, buffered, direct or mapped", word);
  return false;
}

static bool measure(struct save *save)
{
  bool done;

  printf("%zu tensors of %zu bytes%s\n\n", save->count, save->bytes,
         save->strided ? ", a third padded, a third transposed" : "");
  done = make_tensors(save) && measure_memory(save) && check_file(save);
  after_file(save);
  return done && measure_time(save);
}

int main(int argc, char **argv)
{
  struct save save = {.count = 48, .bytes = (size_t)32 << 20, .rounds = 5};
  const char *device = NULL, *io = "auto";
  const struct bench_option options[] = {
      {.name = "device", .what = "index or part of a name", .text = &device},
      {.name = "count", .what = "tensors", .size = &save.count},
      {.name = "bytes", .what = "of each tensor", .size = &save.bytes},
      {.name = "strided", .what = "a third padded, a third transposed",
       .flag = &save.strided},
      {.name = "rounds", .what = "of which the median is taken",
       .size = &save.rounds},
      {.name = "io", .what = "auto, buffered, direct or mapped", .text = &io}};
  int operand;
  bool done;

  operand = bench_parse(argc, argv, "PATH", options,
                        sizeof(options) / sizeof(*options));
  save.path = argv[operand];
  if (!parse_io(io, &save.io))
    return TOOL_USAGE;
  if (access(save.path, F_OK) == 0) {
    tool_error("%s: is there already, and would be removed", save.path);
    return TOOL_FAILED;
  }
  done = bench_start(&save.bench, device) && measure(&save);
  free_tensors(&save);
  bench_stop(&save.bench);
  return done ? TOOL_OK : TOOL_FAILED;
}
