/*
 * The C side of the comparison with the format's own Python package: it knows
 * no contents, only how to make the buffers that it is told to make.
 *
 *   save_samples --save OUT < TABLE   saves what the table says
 *   save_samples --again IN OUT       opens IN and saves all of it as OUT
 *   save_samples --shards SIZE IN OUT  the same, in shards of SIZE bytes
 *   save_samples --list IN            prints each tensor and its contents
 *
 * A line of the table is a pair of metadata, "@ KEY VALUE", or a tensor:
 *
 *   NAME DTYPE KIND START END SEED SIZE ELEM OFFSET NDIM SHAPE... STRIDES...
 *   FILE_NDIM FILE_SHAPE...
 *
 * Strings are in hexadecimal, "-" if empty.  KIND is buffer, view (bytes START
 * to END of the tensor) or host (SIZE bytes, the layout unused).  FILE_NDIM is
 * -1 for the handle's own shape.  Byte i of the memory of SIZE bytes is that of
 * pattern().  tests/safetensors_oracle.py writes the table.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "fixture.h"

#include <inttypes.h>

enum { MOST = 256, LONGEST = 4096, RANK = 64 };

#define NEED(expression)                                                       \
  do {                                                                         \
    if ((expression) != CLB_OK) {                                              \
      fprintf(stderr, "%s: %s\n", #expression, clb_error_message());           \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#define NEED_CL(code)                                                          \
  do {                                                                         \
    cl_int code_ = (code);                                                     \
    if (code_ != CL_SUCCESS) {                                                 \
      fprintf(stderr, "%s is %d\n", #code, (int)code_);                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void stop(const char *why)
{
  fprintf(stderr, "save_samples: %s\n", why);
  exit(1);
}

static unsigned char pattern(uint64_t seed, size_t i)
{
  return (unsigned char)(seed * 131 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29);
}

static void *checked_malloc(size_t length)
{
  void *memory = malloc(length > 0 ? length : 1);

  if (memory == NULL)
    stop("no memory");
  return memory;
}

/* --- The device ----------------------------------------------------------- */

static cl_context cl;
static clb_context *context;

/* Of the platform that the tests are for; fixture_probe() has seen it. */
static cl_device_id find_device(void)
{
  const char *wanted = getenv("CLBYTES_TEST_PLATFORM");
  cl_platform_id platforms[16];
  cl_device_id device;
  cl_uint count = 0;

  NEED_CL(clGetPlatformIDs(16, platforms, &count));
  for (cl_uint i = 0; i < count && i < 16; i++) {
    char name[256] = "";

    clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name - 1, name,
                      NULL);
    if (strstr(name, wanted != NULL ? wanted : "Portable Computing Language") !=
          NULL &&
        clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) ==
          CL_SUCCESS)
      return device;
  }
  stop("no device");
  return NULL;
}

static void make_context(void)
{
  cl_device_id device = find_device();
  cl_command_queue queue;
  cl_int code;

  cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  NEED_CL(code);
  queue = clCreateCommandQueue(cl, device, 0, &code);
  NEED_CL(code);
  NEED(clb_context_create(queue, NULL, &context));
  clReleaseCommandQueue(queue);
}

/* --- Saving --------------------------------------------------------------- */

static clb_tensor tensors[MOST];
static size_t shapes[MOST][RANK];
static clb_pair pairs[MOST];
static size_t tensor_count, pair_count;

static char *read_word(void)
{
  static char word[LONGEST + 1];

  return scanf(" %4096s", word) == 1 ? word : NULL;
}

static int64_t read_number(void)
{
  int64_t number;

  if (scanf(" %" SCNd64, &number) != 1)
    stop("a number is missing");
  return number;
}

static size_t read_size(void)
{
  return (size_t)read_number();
}

static char *unhex(const char *word)
{
  size_t length = strcmp(word, "-") == 0 ? 0 : strlen(word) / 2;
  char *text = checked_malloc(length + 1);

  for (size_t i = 0; i < length; i++) {
    unsigned byte;

    if (sscanf(word + 2 * i, "%2x", &byte) != 1)
      stop("no hexadecimal string");
    text[i] = (char)byte;
  }
  text[length] = '\0';
  return text;
}

static void free_data(void *data, void *user)
{
  (void)user;
  free(data);
}

/* The rest of a tensor's line, from KIND on. */
static clb_bytes *read_handle(void)
{
  char kind = *read_word();
  size_t start = read_size(), end = read_size();
  uint64_t seed = read_size();
  size_t size = read_size(), shape[RANK];
  ptrdiff_t strides[RANK];
  clb_layout layout = {0, shape, strides, 0, 0};
  unsigned char *data = checked_malloc(size);
  clb_bytes *bytes, *view;

  layout.elem_size = read_size();
  layout.offset = read_size();
  layout.ndim = read_size();
  if (layout.ndim > RANK)
    stop("too many dimensions");
  for (size_t d = 0; d < layout.ndim; d++)
    shape[d] = read_size();
  for (size_t d = 0; d < layout.ndim; d++)
    strides[d] = (ptrdiff_t)read_number();
  for (size_t i = 0; i < size; i++)
    data[i] = pattern(seed, i);
  if (kind == 'h') {
    NEED(clb_bytes_from_host(data, size, free_data, NULL, &bytes));
  } else {
    cl_int code;
    cl_mem buffer = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, size, data,
                                   &code);

    NEED_CL(code);
    NEED(clb_bytes_from_buffer(context, buffer, &layout, &bytes));
    clReleaseMemObject(buffer);
    free(data);
  }
  if (kind != 'v')
    return bytes;
  NEED(clb_bytes_view(bytes, start, end, &view));
  clb_bytes_release(bytes);
  return view;
}

static void read_tensor(const char *word)
{
  clb_tensor *tensor = &tensors[tensor_count];
  int64_t ndim;

  tensor->name = unhex(word);
  tensor->dtype = strdup(read_word());
  tensor->bytes = read_handle();
  ndim = read_number();
  if (ndim >= 0) {
    tensor->ndim = (size_t)ndim;
    tensor->shape = shapes[tensor_count];
    for (int64_t d = 0; d < ndim && d < RANK; d++)
      shapes[tensor_count][d] = read_size();
  }
  tensor_count++;
}

static void give_back(void)
{
  for (size_t i = 0; i < tensor_count; i++) {
    free((void *)(uintptr_t)tensors[i].name);
    free((void *)(uintptr_t)tensors[i].dtype);
    clb_bytes_release(tensors[i].bytes);
  }
  for (size_t i = 0; i < pair_count; i++) {
    free((void *)(uintptr_t)pairs[i].key);
    free((void *)(uintptr_t)pairs[i].value);
  }
}

static int save_table(const char *out)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  int result = fixture_probe();
  char *word;

  if (result != 0)
    return result;
  make_context();
  while ((word = read_word()) != NULL) {
    if (tensor_count == MOST || pair_count == MOST)
      stop("too many lines");
    if (strcmp(word, "@") != 0) {
      read_tensor(word);
      continue;
    }
    pairs[pair_count].key = unhex(read_word());
    pairs[pair_count++].value = unhex(read_word());
  }
  options.metadata = pairs;
  options.metadata_count = pair_count;
  NEED(clb_safetensors_save(out, tensors, tensor_count, &options));
  give_back();
  clb_context_release(context);
  clReleaseContext(cl);
  return 0;
}

/* --- Opening -------------------------------------------------------------- */

static int save_again(const char *in, const char *out, uint64_t shard_size)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_safetensors *file;

  NEED(clb_safetensors_open(in, &file));
  tensor_count = clb_safetensors_count(file);
  pair_count = clb_safetensors_metadata_count(file);
  if (tensor_count > MOST || pair_count > MOST)
    stop("too many tensors");
  for (size_t i = 0; i < tensor_count; i++)
    NEED(clb_safetensors_tensor(file, i, &tensors[i]));
  for (size_t i = 0; i < pair_count; i++)
    NEED(clb_safetensors_metadata_at(file, i, &pairs[i]));
  options.metadata = pairs;
  options.metadata_count = pair_count;
  options.max_shard_size = shard_size;
  NEED(clb_safetensors_save(out, tensors, tensor_count, &options));
  clb_safetensors_close(file);
  return 0;
}

static void print_hex(const void *data, size_t length)
{
  const unsigned char *bytes = data;

  if (length == 0)
    putchar('-');
  for (size_t i = 0; i < length; i++)
    printf("%02x", bytes[i]);
}

static int list(const char *in)
{
  clb_safetensors *file;

  NEED(clb_safetensors_open(in, &file));
  for (size_t i = 0; i < clb_safetensors_metadata_count(file); i++) {
    clb_pair pair;

    NEED(clb_safetensors_metadata_at(file, i, &pair));
    fputs("@ ", stdout);
    print_hex(pair.key, strlen(pair.key));
    putchar(' ');
    print_hex(pair.value, strlen(pair.value));
    putchar('\n');
  }
  for (size_t i = 0; i < clb_safetensors_count(file); i++) {
    clb_tensor tensor;
    const void *data;

    NEED(clb_safetensors_tensor(file, i, &tensor));
    NEED(clb_bytes_read(tensor.bytes, CLB_COPY, &data));
    print_hex(tensor.name, strlen(tensor.name));
    printf(" %s %zu", tensor.dtype, tensor.ndim);
    for (size_t d = 0; d < tensor.ndim; d++)
      printf(" %zu", tensor.shape[d]);
    putchar(' ');
    print_hex(data, clb_bytes_length(tensor.bytes));
    putchar('\n');
  }
  clb_safetensors_close(file);
  return 0;
}

int main(int argc, char **argv)
{
  if (argc == 3 && strcmp(argv[1], "--save") == 0)
    return save_table(argv[2]);
  if (argc == 4 && strcmp(argv[1], "--again") == 0)
    return save_again(argv[2], argv[3], 0);
  if (argc == 5 && strcmp(argv[1], "--shards") == 0)
    return save_again(argv[3], argv[4], strtoull(argv[2], NULL, 10));
  if (argc == 3 && strcmp(argv[1], "--list") == 0)
    return list(argv[2]);
  stop("see the first lines of its source");
  return 1;
}
