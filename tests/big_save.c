/*
 * A large save in little memory: 48 tensors of 32 MiB, a third packed, a third
 * with padded rows, a third transposed, from the device to a file.  Host memory
 * grows by less than 64 MiB meanwhile (the peak after the save less what is
 * resident before it, after a small save of the same layouts through another
 * context), the pinned bytes stay within the limit that is set, and nothing is
 * materialised.  Then the file is opened and compared.
 *
 * Environment: CLBYTES_TEST_TENSORS, how many (48); CLBYTES_TEST_TMPDIR, where
 * the file is made, else TMPDIR, else /tmp; those of the fixture.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

enum { ROWS = 2048, COLUMNS = 4096, MOST = 1024, WARM_ROWS = 64 };

static const size_t staging_limit = 32 * MIB, growth_limit = 64 * MIB;

#define NEED(expression)                                                       \
  do {                                                                         \
    if ((expression) != CLB_OK) {                                              \
      fprintf(stderr, "%s: %s\n", #expression, clb_error_message());           \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void need(int good, const char *what)
{
  if (!good) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
  }
}

/* --- Contents ------------------------------------------------------------- */

/* Element i, in logical order, of a tensor. */
static uint32_t pattern(size_t tensor, size_t i)
{
  uint32_t mixed = (uint32_t)i * 2654435761u + (uint32_t)tensor * 40503u;

  return mixed ^ mixed >> 15;
}

struct model {
  size_t count, rows;
  cl_mem buffers[MOST];
  clb_tensor tensors[MOST];
  char names[MOST][16];
  size_t shape[2];
};

enum layout { PACKED, PADDED, TRANSPOSED, LAYOUTS };

static const size_t padding = 64;

/* Bytes from one row to the next as the layout stores them. */
static size_t pitch_of(enum layout layout, size_t rows)
{
  switch (layout) {
  case PADDED:
    return COLUMNS * 4 + padding;
  case TRANSPOSED:
    return rows * 4;
  case PACKED:
  case LAYOUTS:
    break;
  }
  return COLUMNS * 4;
}

/* Makes and fills the buffer of a tensor, and its handle. */
static void make_tensor(struct model *model, clb_context *context, size_t t)
{
  enum layout kind = (enum layout)(t % LAYOUTS);
  size_t pitch = pitch_of(kind, model->rows);
  size_t stored_rows = kind == TRANSPOSED ? COLUMNS : model->rows;
  size_t stored_columns = kind == TRANSPOSED ? model->rows : COLUMNS;
  ptrdiff_t strides[2] = {(ptrdiff_t)pitch, 4};
  clb_layout layout = {2, model->shape, strides, 4, 0};
  unsigned char *image = fixture_malloc(pitch * stored_rows);

  memset(image, 0xee, pitch * stored_rows);
  for (size_t r = 0; r < stored_rows; r++)
    for (size_t c = 0; c < stored_columns; c++) {
      size_t i = kind == TRANSPOSED ? c * COLUMNS + r : r * COLUMNS + c;
      uint32_t element = pattern(t, i);

      memcpy(image + r * pitch + 4 * c, &element, 4);
    }
  if (kind == TRANSPOSED) {
    strides[0] = 4;
    strides[1] = (ptrdiff_t)pitch;
  }
  model->buffers[t] = fixture_buffer(CL_MEM_READ_WRITE, NULL,
                                     pitch * stored_rows);
  fixture_store(model->buffers[t], image, pitch * stored_rows);
  free(image);
  snprintf(model->names[t], sizeof model->names[t], "tensor.%03zu", t);
  model->tensors[t] = (clb_tensor){model->names[t], "U32", 2, model->shape,
                                   NULL};
  NEED(clb_bytes_from_buffer(context, model->buffers[t], &layout,
                             &model->tensors[t].bytes));
}

static void make_model(struct model *model, clb_context *context, size_t count,
                       size_t rows)
{
  model->count = count;
  model->rows = rows;
  model->shape[0] = rows;
  model->shape[1] = COLUMNS;
  for (size_t t = 0; t < count; t++)
    make_tensor(model, context, t);
}

static void give_back(struct model *model)
{
  for (size_t t = 0; t < model->count; t++) {
    clb_bytes_release(model->tensors[t].bytes);
    clReleaseMemObject(model->buffers[t]);
  }
}

/* --- Comparing ------------------------------------------------------------ */

struct compared {
  size_t tensor, at; /* logical bytes so far */
};

/* A sink that knows what comes. */
static int compare(const void *data, size_t length, void *user)
{
  struct compared *so_far = user;
  const unsigned char *bytes = data;

  for (size_t i = 0; i < length;) {
    size_t within = so_far->at % 4;
    size_t part = length - i < 4 - within ? length - i : 4 - within;
    uint32_t element = pattern(so_far->tensor, so_far->at / 4);

    if (memcmp(bytes + i, (unsigned char *)&element + within, part) != 0)
      return 1;
    i += part;
    so_far->at += part;
  }
  return 0;
}

static void check_file(const char *path, const struct model *model)
{
  clb_safetensors *file;

  NEED(clb_safetensors_open(path, &file));
  if (clb_safetensors_count(file) != model->count) {
    fprintf(stderr, "%zu tensors in the file\n", clb_safetensors_count(file));
    exit(1);
  }
  for (size_t t = 0; t < model->count; t++) {
    struct compared so_far = {t, 0};
    clb_tensor tensor;
    clb_status status;

    NEED(clb_safetensors_find(file, model->names[t], &tensor));
    status = clb_bytes_stream(tensor.bytes, 0, clb_bytes_length(tensor.bytes),
                              compare, &so_far);
    if (status != CLB_OK || so_far.at != model->rows * COLUMNS * 4) {
      fprintf(stderr, "%s: %s after %zu bytes: %s\n", model->names[t],
              clb_status_name(status), so_far.at, clb_error_message());
      exit(1);
    }
  }
  clb_safetensors_close(file);
}

/* --- The save ------------------------------------------------------------- */

static int forget_peak(void)
{
  int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  int done = file >= 0 && write(file, "5", 1) == 1;

  if (file >= 0)
    close(file);
  return done;
}

/* The compilers and drivers are loaded by this one. */
static void warm_up(const char *path, const clb_context_options *options)
{
  static struct model model;
  clb_context *context;

  NEED(clb_context_create(fx.queue, options, &context));
  make_model(&model, context, LAYOUTS, WARM_ROWS);
  NEED(clb_safetensors_save(path, model.tensors, model.count, NULL));
  check_file(path, &model);
  give_back(&model);
  clb_context_release(context);
}

/* Prints the figures; how many are past their limits. */
static int judge(const struct model *model, size_t grown, double seconds)
{
  clb_stats stats = fixture_stats();
  double bytes = (double)(model->count * model->rows * COLUMNS * 4);
  int wrong = 0;

  printf("saved %.2f GiB in %zu tensors: %.2f s, %.2f GB/s\n",
         bytes / (1 << 30), model->count, seconds, bytes / seconds / 1e9);
  printf("host memory grown %.1f MiB, staging peak %.1f of %.1f MiB, host peak "
         "%llu bytes, pageable blocks %llu\n", (double)grown / (double)MIB,
         (double)stats.staging_peak / (double)MIB,
         (double)staging_limit / (double)MIB,
         (unsigned long long)stats.host_peak,
         (unsigned long long)stats.pageable_blocks);
  if (fixture_measures_memory() && grown >= growth_limit) {
    fputs("host memory grew by 64 MiB or more\n", stderr);
    wrong++;
  }
  if (stats.staging_peak > staging_limit) {
    fputs("staging passed its limit\n", stderr);
    wrong++;
  }
  if (stats.host_peak != 0) {
    fputs("something was materialised\n", stderr);
    wrong++;
  }
  if (stats.reads < model->count) {
    fputs("the counters saw no reads\n", stderr);
    wrong++;
  }
  return wrong;
}

int main(void)
{
  static struct model model;
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  const char *folder = getenv("CLBYTES_TEST_TMPDIR");
  size_t count = (size_t)fixture_number("CLBYTES_TEST_TENSORS", 48);
  int result = fixture_probe(), file;
  char path[PATH_MAX];
  size_t before;
  double start;

  if (result != 0)
    return result;
  if (count == 0 || count > MOST) {
    fputs("CLBYTES_TEST_TENSORS is out of range\n", stderr);
    return 99;
  }
  if (folder == NULL)
    folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/clbytes-big-XXXXXX",
           folder != NULL ? folder : "/tmp");
  file = mkstemp(path);
  need(file >= 0, path);
  close(file);
  fixture_setup();
  options.staging_limit = staging_limit;
  fixture_options(&options);
  warm_up(path, &options);

  make_model(&model, fx.context, count, ROWS);
  if (!forget_peak())
    fputs("the peak before cannot be forgotten; it counts too\n", stderr);
  before = fixture_rss();
  start = fixture_seconds();
  NEED(clb_safetensors_save(path, model.tensors, model.count, NULL));
  start = fixture_seconds() - start;
  result = judge(&model, fixture_hwm() - before, start);
  check_file(path, &model);
  puts("the file's contents agree");
  unlink(path);
  give_back(&model);
  fixture_teardown();
  return result == 0 ? 0 : 1;
}
