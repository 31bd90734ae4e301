/*
 * A large save in little memory: 48 tensors of 32 MiB, a third packed, a third
 * with padded rows, a third transposed, from the device to a file.  Host memory
 * grows by less than 64 MiB meanwhile (the peak after the save less what is
 * resident before it, after a small save of the same layouts through another
 * context), the pinned bytes stay within the limit that is set, and nothing is
 * materialised.  Then the file is opened and compared.  Once with every plan,
 * once without mapping, which on devices that share memory leaves nothing to
 * the staging blocks.
 *
 * Environment: CLBYTES_TEST_TENSORS, how many (48).
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "files.h"

#define MIB ((size_t)1 << 20)

enum { ROWS = 2048, COLUMNS = 4096, MOST = 1024, WARM_ROWS = 64 };

static const size_t staging_limit = 32 * MIB, growth_limit = 64 * MIB;

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
  ck_ok(clb_bytes_from_buffer(context, model->buffers[t], &layout,
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

  ck_ok(clb_safetensors_open(path, &file));
  ck_assert_uint_eq(clb_safetensors_count(file), model->count);
  for (size_t t = 0; t < model->count; t++) {
    struct compared so_far = {t, 0};
    clb_tensor tensor;
    clb_status status;

    ck_ok(clb_safetensors_find(file, model->names[t], &tensor));
    status = clb_bytes_stream(tensor.bytes, 0, clb_bytes_length(tensor.bytes),
                              compare, &so_far);
    ck_assert_msg(status == CLB_OK, "%s: %s after %zu bytes: %s",
                  model->names[t], clb_status_name(status), so_far.at,
                  clb_error_message());
    ck_assert_uint_eq(so_far.at, model->rows * COLUMNS * 4);
  }
  clb_safetensors_close(file);
}

/* --- The save ------------------------------------------------------------- */

/* The compilers and drivers are loaded by this one. */
static void warm_up(const clb_context_options *options)
{
  static struct model model;
  clb_context *context;

  ck_ok(clb_context_create(fx.queue, options, &context));
  make_model(&model, context, LAYOUTS, WARM_ROWS);
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, NULL));
  check_file("out", &model);
  give_back(&model);
  clb_context_release(context);
}

static const unsigned plans[] = {
  0, CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_PACK | CLB_PLAN_GATHER};

static void print_figures(const struct model *model, size_t grown,
                          double seconds)
{
  clb_stats stats = fixture_stats();
  double bytes = (double)(model->count * model->rows * COLUMNS * 4);

  printf("maps %llu, rects %llu, gathers %llu, plain %llu\n",
         (unsigned long long)stats.maps, (unsigned long long)stats.rects,
         (unsigned long long)stats.gathers,
         (unsigned long long)(stats.reads - stats.maps - stats.rects -
                              stats.packs - stats.gathers));
  printf("saved %.2f GiB in %zu tensors: %.2f s, %.2f GB/s\n",
         bytes / (1 << 30), model->count, seconds, bytes / seconds / 1e9);
  printf("host memory grown %.1f MiB, staging peak %.1f of %.1f MiB, host peak "
         "%llu bytes, pageable blocks %llu\n", (double)grown / (double)MIB,
         (double)stats.staging_peak / (double)MIB,
         (double)staging_limit / (double)MIB,
         (unsigned long long)stats.host_peak,
         (unsigned long long)stats.pageable_blocks);
  fflush(stdout);
}

START_TEST(large_save_takes_little_memory)
{
  static struct model model;
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  size_t count = (size_t)fixture_number("CLBYTES_TEST_TENSORS", 48);
  size_t before, grown;
  clb_stats stats;
  double start;

  ck_assert_msg(count > 0 && count <= MOST, "CLBYTES_TEST_TENSORS is %zu",
                count);
  options.staging_limit = staging_limit;
  options.plans = plans[_i];
  fixture_options(&options);
  warm_up(&options);
  make_model(&model, fx.context, count, ROWS);
  if (!forget_peak())
    fputs("the peak before cannot be forgotten; it counts too\n", stderr);

  before = fixture_rss();
  start = fixture_seconds();
  ck_ok(clb_safetensors_save("out", model.tensors, model.count, NULL));
  start = fixture_seconds() - start;
  grown = fixture_hwm() - before;

  print_figures(&model, grown, start);
  stats = fixture_stats();
  if (fixture_measures_memory())
    ck_assert_uint_lt(grown, growth_limit);
  ck_assert_uint_le(stats.staging_peak, staging_limit);
  if (plans[_i] != 0)
    ck_assert_uint_eq(stats.maps, 0);
  ck_assert_uint_eq(stats.host_peak, 0);
  ck_assert_uint_ge(stats.reads, count);
  check_file("out", &model);
  give_back(&model);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("a large save");
  TCase *save = files_case_device(suite, "save", 1200);

  tcase_add_loop_test(save, large_save_takes_little_memory, 0, 2);
  return files_main(suite, FIXTURE_DEVICE);
}
