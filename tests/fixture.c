/*
 * See fixture.h.  Nothing here may include a header of lib/: what the tests
 * compare with has to be independent of what they test.
 */
#include "config.h"

#include "fixture.h"

#include <dirent.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

struct fixture fx;
const char *fixture_input = "-";

/* --- The device and the context ------------------------------------------ */

static const char *wanted_platform(void)
{
  const char *name = getenv("CLBYTES_TEST_PLATFORM");

  return name != NULL ? name : "Portable Computing Language";
}

/* Finds platform and device; 0 if there are none. */
static int find_device(cl_platform_id *platform, cl_device_id *device)
{
  cl_platform_id platforms[16];
  cl_uint count = 0;

  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
    return 0;
  for (cl_uint i = 0; i < count && i < 16; i++) {
    char name[256] = "";

    clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name - 1, name,
                      NULL);
    if (strstr(name, wanted_platform()) == NULL)
      continue;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, device, NULL) !=
        CL_SUCCESS)
      continue;
    *platform = platforms[i];
    return 1;
  }
  return 0;
}

void fixture_setup_cl(void)
{
  cl_int code;

  memset(&fx, 0, sizeof fx);
  ck_assert_msg(find_device(&fx.platform, &fx.device), "no platform like %s",
                wanted_platform());
  fx.cl = clCreateContext(NULL, 1, &fx.device, NULL, NULL, &code);
  ck_cl(code);
  fx.queue = clCreateCommandQueue(fx.cl, fx.device, 0, &code);
  ck_cl(code);
}

void fixture_teardown_cl(void)
{
  /* A test may give these back itself and leave NULL. */
  if (fx.queue != NULL)
    ck_cl(clReleaseCommandQueue(fx.queue));
  if (fx.cl != NULL)
    ck_cl(clReleaseContext(fx.cl));
  memset(&fx, 0, sizeof fx);
}

void fixture_setup(void)
{
  fixture_setup_cl();
  ck_ok(clb_context_create(fx.queue, NULL, &fx.context));
}

void fixture_teardown(void)
{
  clb_context_release(fx.context);
  fixture_teardown_cl();
}

void fixture_options(const clb_context_options *options)
{
  clb_context_release(fx.context);
  fx.context = NULL;
  ck_ok(clb_context_create(fx.queue, options, &fx.context));
}

cl_command_queue fixture_queue(cl_command_queue_properties properties)
{
  cl_command_queue queue;
  cl_int code;

  queue = clCreateCommandQueue(fx.cl, fx.device, properties, &code);
  if (properties != 0 &&
      (code == CL_INVALID_QUEUE_PROPERTIES || code == CL_INVALID_VALUE))
    return NULL;
  ck_cl(code);
  return queue;
}

int fixture_is(const char *part)
{
  char name[256] = "";

  ck_cl(clGetPlatformInfo(fx.platform, CL_PLATFORM_NAME, sizeof name - 1, name,
                          NULL));
  return strstr(name, part) != NULL;
}

int fixture_compiles(void)
{
  cl_bool available = CL_FALSE;

  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_COMPILER_AVAILABLE,
                        sizeof available, &available, NULL));
  return available;
}

size_t fixture_sub_buffer_align(void)
{
  cl_uint bits = 0;

  ck_cl(clGetDeviceInfo(fx.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits,
                        &bits, NULL));
  return bits / 8;
}

int fixture_measures_memory(void)
{
#ifdef SANITIZED
  return 0;
#else
  /* Valgrind's allocator and shadow memory count as the program's. */
  const char *preload = getenv("LD_PRELOAD");

  return fixture_rss() != 0 &&
         (preload == NULL || strstr(preload, "vgpreload") == NULL);
#endif
}

/* --- Running ------------------------------------------------------------- */

static TCase *make_case(Suite *suite, const char *name, double seconds,
                        SFun setup, SFun teardown)
{
  TCase *tcase = tcase_create(name);

  tcase_set_timeout(tcase, seconds);
  tcase_add_checked_fixture(tcase, setup, teardown);
  suite_add_tcase(suite, tcase);
  return tcase;
}

TCase *fixture_case(Suite *suite, const char *name, double seconds)
{
  return make_case(suite, name, seconds, fixture_setup, fixture_teardown);
}

TCase *fixture_case_cl(Suite *suite, const char *name, double seconds)
{
  return make_case(suite, name, seconds, fixture_setup_cl,
                   fixture_teardown_cl);
}

int fixture_probe(void)
{
  const char *require = getenv("CLBYTES_TEST_REQUIRE");
  int status = 0;
  pid_t child;

  fflush(NULL);
  child = fork();
  if (child == 0) {
    cl_platform_id platform;
    cl_device_id device;

    _exit(find_device(&platform, &device) ? 0 : 1);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror("looking for a platform");
    return 99;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return 0;
  fprintf(stderr, "no OpenCL platform with \"%s\" in its name%s\n",
          wanted_platform(),
          WIFSIGNALED(status) ? " (looking for it crashed)" : "");
  return require != NULL && strcmp(require, "1") == 0 ? 1 : 77;
}

int fixture_main(Suite *suite, int needs)
{
  SRunner *runner = srunner_create(suite);
  int result = needs == FIXTURE_DEVICE ? fixture_probe() : 0;

  if (result == 0) {
    srunner_run_all(runner, CK_ENV);
    result = srunner_ntests_failed(runner) == 0 ? 0 : 1;
  }
  srunner_free(runner);
  return result;
}

uint64_t fixture_number(const char *name, uint64_t otherwise)
{
  const char *text = getenv(name);

  return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

/* --- Bytes and buffers --------------------------------------------------- */

size_t fixture_difference(const void *a, const void *b, size_t length)
{
  const unsigned char *left = a, *right = b;
  size_t i = 0;

  if (length == 0 || memcmp(left, right, length) == 0)
    return length;
  while (left[i] == right[i])
    i++;
  return i;
}

size_t fixture_other(const void *data, unsigned char value, size_t length)
{
  const unsigned char *bytes = data;
  size_t i = 0;

  while (i < length && bytes[i] == value)
    i++;
  return i;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t fixture_random(uint64_t *state)
{
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

size_t fixture_below(uint64_t *state, size_t limit)
{
  return limit == 0 ? 0 : (size_t)(fixture_random(state) % limit);
}

void *fixture_malloc(size_t length)
{
  void *memory = malloc(length > 0 ? length : 1);

  if (memory == NULL)
    ck_abort_msg("no memory for %zu bytes", length);
  return memory;
}

unsigned char *fixture_bytes(size_t length, uint64_t seed)
{
  unsigned char *bytes = fixture_malloc(length);
  size_t i;

  for (i = 0; i + 8 <= length; i += 8) {
    uint64_t word = fixture_random(&seed);

    memcpy(bytes + i, &word, 8);
  }
  for (; i < length; i++)
    bytes[i] = (unsigned char)fixture_random(&seed);
  return bytes;
}

cl_mem fixture_buffer(cl_mem_flags flags, const void *data, size_t size)
{
  cl_int code;
  cl_mem buffer = clCreateBuffer(
      fx.cl, flags | (data != NULL ? CL_MEM_COPY_HOST_PTR : 0), size,
      (void *)(uintptr_t)data, &code);

  ck_cl(code);
  return buffer;
}

static void ck_finished(cl_event event)
{
  cl_int state = CL_QUEUED;

  ck_cl(clWaitForEvents(1, &event));
  ck_cl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                       &state, NULL));
  ck_assert_int_eq(state, CL_COMPLETE);
  ck_cl(clReleaseEvent(event));
}

/* Through a copy, since the host may not be allowed to touch the buffer. */
void fixture_fetch(cl_mem buffer, void *data, size_t size)
{
  cl_mem copy = fixture_buffer(CL_MEM_READ_WRITE, NULL, size);
  cl_event event;

  ck_cl(clEnqueueCopyBuffer(fx.queue, buffer, copy, 0, 0, size, 0, NULL,
                            NULL));
  ck_cl(clEnqueueReadBuffer(fx.queue, copy, CL_FALSE, 0, size, data, 0, NULL,
                            &event));
  ck_finished(event);
  ck_cl(clReleaseMemObject(copy));
}

void fixture_store(cl_mem buffer, const void *data, size_t size)
{
  cl_mem copy = fixture_buffer(CL_MEM_READ_WRITE, data, size);
  cl_event event;

  ck_cl(clEnqueueCopyBuffer(fx.queue, copy, buffer, 0, 0, size, 0, NULL,
                            &event));
  ck_finished(event);
  ck_cl(clReleaseMemObject(copy));
}

void fixture_fill(cl_command_queue queue, cl_mem buffer, unsigned char value,
                  size_t size, cl_uint num_events, const cl_event *wait_list,
                  cl_event *event)
{
  unsigned char pattern[128];
  size_t width = sizeof pattern;

  memset(pattern, value, sizeof pattern);
  while (size % width != 0)
    width /= 2;
  ck_cl(clEnqueueFillBuffer(queue, buffer, pattern, width, 0, size, num_events,
                            wait_list, event));
}

cl_uint fixture_buffer_refs(cl_mem buffer)
{
  cl_uint count = 0;

  ck_cl(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count,
                           &count, NULL));
  return count;
}

cl_uint fixture_event_refs(cl_event event)
{
  cl_uint count = 0;

  ck_cl(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count,
                       NULL));
  return count;
}

cl_uint fixture_queue_refs(cl_command_queue queue)
{
  cl_uint count = 0;

  ck_cl(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count,
                              &count, NULL));
  return count;
}

clb_stats fixture_stats(void)
{
  clb_stats stats;

  memset(&stats, 0xff, sizeof stats);
  clb_context_stats(fx.context, &stats, sizeof stats);
  return stats;
}

clb_bytes *fixture_handle(cl_mem buffer, const clb_layout *layout)
{
  clb_bytes *bytes = NULL;

  ck_ok(clb_bytes_from_buffer(fx.context, buffer, layout, &bytes));
  ck_assert_ptr_nonnull(bytes);
  return bytes;
}

void expect_read(clb_bytes *bytes, const void *expected, size_t length)
{
  const void *data = NULL;

  ck_assert_uint_eq(clb_bytes_length(bytes), length);
  ck_ok(clb_bytes_read(bytes, CLB_COPY, &data));
  ck_assert_ptr_nonnull(data);
  ck_bytes(data, expected, length);
}

void expect_stream(clb_bytes *bytes, const void *expected, size_t length)
{
  struct gathered all = {NULL, 0, 0, 0};

  ck_ok(clb_bytes_stream(bytes, 0, clb_bytes_length(bytes), gather_sink,
                         &all));
  ck_assert_uint_eq(all.length, length);
  ck_bytes(all.data, expected, length);
  free(all.data);
}

void expect_copy_into(clb_bytes *bytes, const void *expected, size_t length)
{
  unsigned char *copy = fixture_malloc(length);

  ck_assert_uint_eq(clb_bytes_length(bytes), length);
  ck_ok(clb_bytes_copy_into(bytes, 0, copy, length));
  ck_bytes(copy, expected, length);
  free(copy);
}

int fixture_maps(void)
{
  return fixture_context_maps(fx.context);
}

int fixture_context_maps(clb_context *context)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, "map", 4);
  clb_bytes *bytes = NULL;
  const void *data;
  clb_status status;

  ck_ok(clb_bytes_from_buffer(context, buffer, NULL, &bytes));
  status = clb_bytes_read(bytes, CLB_MAP, &data);
  ck_assert_msg(status == CLB_OK || status == CLB_WOULD_COPY, "CLB_MAP: %s",
                clb_error_message());
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  return status == CLB_OK;
}

/* --- The oracle ---------------------------------------------------------- */

size_t walk_length(const clb_layout *layout)
{
  size_t length = layout->elem_size;

  for (size_t d = 0; d < layout->ndim; d++)
    length *= layout->shape[d];
  return length;
}

/* Calls copy for every element, in row-major order, with the offsets of its
 * first byte in the logical bytes and in the buffer. */
static void each_element(const clb_layout *layout,
                         void (*copy)(size_t logical, size_t buffer,
                                      size_t length, void *user),
                         void *user)
{
  size_t index[64] = {0};
  ptrdiff_t strides[64];
  size_t elements = 1;
  ptrdiff_t packed = (ptrdiff_t)layout->elem_size;

  for (size_t d = layout->ndim; d-- > 0;) {
    strides[d] = layout->strides != NULL ? layout->strides[d] : packed;
    packed *= (ptrdiff_t)layout->shape[d];
    elements *= layout->shape[d];
  }
  for (size_t e = 0; e < elements; e++) {
    ptrdiff_t at = (ptrdiff_t)layout->offset;

    for (size_t d = 0; d < layout->ndim; d++)
      at += (ptrdiff_t)index[d] * strides[d];
    copy(e * layout->elem_size, (size_t)at, layout->elem_size, user);
    for (size_t d = layout->ndim; d-- > 0;) {
      if (++index[d] < layout->shape[d])
        break;
      index[d] = 0;
    }
  }
}

struct walker {
  unsigned char *logical;
  unsigned char *buffer;
};

static void take_element(size_t logical, size_t buffer, size_t length,
                         void *user)
{
  struct walker *w = user;

  memcpy(w->logical + logical, w->buffer + buffer, length);
}

static void put_element(size_t logical, size_t buffer, size_t length,
                        void *user)
{
  struct walker *w = user;

  memcpy(w->buffer + buffer, w->logical + logical, length);
}

unsigned char *walk(const clb_layout *layout, const unsigned char *buffer)
{
  struct walker w = {fixture_malloc(walk_length(layout)),
                     (unsigned char *)(uintptr_t)buffer};

  each_element(layout, take_element, &w);
  return w.logical;
}

void walk_back(const clb_layout *layout, unsigned char *buffer,
               const unsigned char *logical)
{
  struct walker w = {(unsigned char *)(uintptr_t)logical, buffer};

  each_element(layout, put_element, &w);
}

int gather_sink(const void *data, size_t length, void *user)
{
  struct gathered *all = user;

  all->data = realloc(all->data, all->length + length);
  if (all->data == NULL)
    ck_abort_msg("no memory for what a stream gave");
  memcpy(all->data + all->length, data, length);
  all->length += length;
  all->pieces++;
  if (length > all->longest)
    all->longest = length;
  return 0;
}

/* --- Measuring ----------------------------------------------------------- */

/* A line of /proc/self/status, in bytes. */
static size_t process_status(const char *name)
{
  FILE *file = fopen("/proc/self/status", "r");
  size_t kib = 0;
  char line[256];

  if (file == NULL)
    return 0;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0)
      kib = strtoul(line + strlen(name), NULL, 10);
  fclose(file);
  return kib * 1024;
}

size_t fixture_rss(void)
{
  return process_status("VmRSS:");
}

size_t fixture_hwm(void)
{
  return process_status("VmHWM:");
}

int growing(struct growth *growth)
{
  uint64_t window = growth->round / growth->times;

  if (growth->round++ % growth->times != 0)
    return 1;
  if (window > 1) {
    size_t now = fixture_rss(), before = growth->before;

    growth->grown[window - 2] = now > before ? now - before : 0;
  }
  growth->before = fixture_rss();
  return window < 1 + GROWTH_WINDOWS;
}

size_t growth_least(const struct growth *growth)
{
  size_t least = growth->grown[0];

  for (int i = 1; i < GROWTH_WINDOWS; i++)
    if (growth->grown[i] < least)
      least = growth->grown[i];
  return least;
}

double fixture_seconds(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void fixture_sleep(double seconds)
{
  struct timespec span;

  span.tv_sec = (time_t)seconds;
  span.tv_nsec = (long)((seconds - (double)span.tv_sec) * 1e9);
  nanosleep(&span, NULL);
}

size_t fixture_descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  size_t count = 0;

  if (folder == NULL)
    return 0;
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count - 3; /* ".", ".." and the folder's own */
}
