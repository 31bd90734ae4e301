/* Many threads, several contexts and queues, one small ring each. */
#include "config.h"

#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 32, SIZE = 200000, PART = 5000 };

static unsigned char *contents[2];
static cl_mem buffers[2];
static cl_command_queue queues[2];
static clb_context *contexts[2];

static void setup(void)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;

  fixture_setup_cl();
  options.chunk_size = 4096;
  options.staging_limit = 16384;
  options.plans = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER;
  for (int i = 0; i < 2; i++) {
    contents[i] = fixture_bytes(SIZE, 60 + (uint64_t)i);
    buffers[i] = fixture_buffer(CL_MEM_READ_WRITE, contents[i], SIZE);
    queues[i] = fixture_queue(0);
    ck_ok(clb_context_create(queues[i], &options, &contexts[i]));
  }
}

static void teardown(void)
{
  for (int i = 0; i < 2; i++) {
    clb_stats stats;

    clb_context_stats(contexts[i], &stats, sizeof stats);
    ck_assert_uint_eq(stats.host_bytes, 0);
    ck_assert_uint_le(stats.staging_peak, 16384);
    clb_context_release(contexts[i]);
    ck_cl(clReleaseCommandQueue(queues[i]));
    ck_refs(buffers[i], 1);
    ck_cl(clReleaseMemObject(buffers[i]));
    free(contents[i]);
  }
  fixture_teardown_cl();
}

/* What a thread works on; it says what went wrong, the main thread fails. */
struct worker {
  uint64_t seed;
  int side;             /* which context and buffer */
  clb_bytes *shared[2]; /* a handle that others use too, or NULL */
  const unsigned char *logical[2];
  double end;
  uint64_t rounds;
  char wrong[300];
};

#define EXPECT(worker, condition)                                              \
  do {                                                                         \
    if (!(condition)) {                                                        \
      snprintf((worker)->wrong, sizeof (worker)->wrong, "line %d: %s: %s",     \
               __LINE__, #condition, clb_error_message());                     \
      return;                                                                  \
    }                                                                          \
  } while (0)

static void run_workers(struct worker *workers, int count,
                        void *(*work)(void *))
{
  pthread_t threads[THREADS];

  for (int i = 0; i < count; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < count; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < count; i++)
    ck_assert_msg(workers[i].wrong[0] == '\0', "thread %d: %s", i,
                  workers[i].wrong);
}

struct compared {
  const unsigned char *expected;
  size_t length;
  int differs;
};

static int compare_sink(const void *data, size_t length, void *user)
{
  struct compared *compared = user;

  if (memcmp(data, compared->expected + compared->length, length) != 0)
    compared->differs = 1;
  compared->length += length;
  return 0;
}

/* One region of one's own, contiguous or strided, in every way. */
static void use_a_region(struct worker *worker)
{
  const unsigned char *all = contents[worker->side];
  size_t offset = fixture_below(&worker->seed, SIZE - 4 * PART);
  size_t shape[2] = {PART / 40, 10};
  ptrdiff_t strides[2] = {144, 8};
  clb_layout plain = {1, SHAPE(4 * PART), NULL, 1, offset};
  clb_layout strided = {2, shape, strides, 4, offset};
  int is_plain = fixture_below(&worker->seed, 2) == 0;
  const clb_layout *layout = is_plain ? &plain : &strided;
  unsigned char expected[4 * PART], got[4 * PART];
  size_t length = is_plain ? 4 * PART : PART;
  struct compared compared = {expected, 0, 0};
  clb_bytes *bytes = NULL, *view = NULL;
  const void *data;

  if (is_plain)
    memcpy(expected, all + offset, length);
  else
    for (size_t i = 0; i < PART / 4; i++)
      memcpy(expected + 4 * i, all + offset + i / 10 * 144 + i % 10 * 8, 4);
  EXPECT(worker, clb_bytes_from_buffer(contexts[worker->side],
                                       buffers[worker->side], layout,
                                       &bytes) == CLB_OK);
  EXPECT(worker, clb_bytes_stream(bytes, 0, length, compare_sink,
                                  &compared) == CLB_OK);
  EXPECT(worker, compared.length == length && !compared.differs);
  EXPECT(worker, clb_bytes_copy_into(bytes, 3, got, length - 3) == CLB_OK);
  EXPECT(worker, memcmp(got, expected + 3, length - 3) == 0);
  EXPECT(worker, clb_bytes_view(bytes, 100, length - 7, &view) == CLB_OK);
  clb_bytes_release(bytes);
  EXPECT(worker, clb_bytes_read(view, CLB_COPY, &data) == CLB_OK);
  EXPECT(worker, memcmp(data, expected + 100, length - 107) == 0);
  clb_bytes_release(view);
  worker->rounds++;
}

static void *use_regions(void *user)
{
  struct worker *worker = user;

  while (worker->wrong[0] == '\0' && fixture_seconds() < worker->end)
    use_a_region(worker);
  return NULL;
}

START_TEST(no_block_is_reused_before_its_transfer_is_complete)
{
  struct worker workers[THREADS];
  uint64_t rounds = 0;

  FIXTURE_NEEDS_THREADS();
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) {
    workers[i].seed = (uint64_t)i;
    workers[i].side = i % 2;
    workers[i].end = fixture_seconds() + 2;
  }
  run_workers(workers, THREADS, use_regions);
  for (int i = 0; i < THREADS; i++)
    rounds += workers[i].rounds;
  ck_assert_uint_ge(rounds, THREADS);
}
END_TEST

/* Both handles are everybody's; views, copies and streams of them. */
static void use_shared(struct worker *worker)
{
  int side = (int)fixture_below(&worker->seed, 2);
  clb_bytes *bytes = clb_bytes_retain(worker->shared[side]), *view = NULL;
  size_t length = clb_bytes_length(bytes);
  size_t start = fixture_below(&worker->seed, length);
  size_t count = fixture_below(&worker->seed, length - start);
  const unsigned char *expected = worker->logical[side];
  unsigned char got[4 * PART];
  struct compared compared = {expected + start, 0, 0};
  const void *data;

  switch (fixture_below(&worker->seed, 5)) {
  case 0:
    EXPECT(worker, clb_bytes_read(bytes, CLB_COPY, &data) == CLB_OK);
    EXPECT(worker, memcmp(data, expected, length) == 0);
    break;
  case 1:
    EXPECT(worker, clb_bytes_stream(bytes, start, start + count, compare_sink,
                                    &compared) == CLB_OK);
    EXPECT(worker, compared.length == count && !compared.differs);
    break;
  case 2:
    if (count > sizeof got)
      count = sizeof got;
    EXPECT(worker, clb_bytes_copy_into(bytes, start, got, count) == CLB_OK);
    EXPECT(worker, memcmp(got, expected + start, count) == 0);
    break;
  case 3:
    EXPECT(worker, clb_bytes_view(bytes, start, start + count, &view) ==
                       CLB_OK);
    EXPECT(worker, clb_bytes_read(view, CLB_COPY, &data) == CLB_OK);
    EXPECT(worker, memcmp(data, expected + start, count) == 0);
    clb_bytes_release(view);
    break;
  default:
    clb_context_trim(contexts[side]);
    EXPECT(worker, clb_bytes_length(bytes) == length);
  }
  clb_bytes_release(bytes);
  worker->rounds++;
}

static void *use_shared_handles(void *user)
{
  struct worker *worker = user;

  while (worker->wrong[0] == '\0' && fixture_seconds() < worker->end)
    use_shared(worker);
  return NULL;
}

START_TEST(a_handle_may_be_used_by_everybody)
{
  struct worker workers[THREADS];
  clb_layout layout = {2, SHAPE(100, 200), STRIDES(4, 800), 4, 12};
  unsigned char *expected = walk(&layout, contents[1]);
  clb_bytes *bytes[2] = {NULL, NULL};

  if (fixture_is("Oclgrind")) {
    free(expected);
    FIXTURE_SKIP("two threads in OpenCL crash this driver");
  }
  for (int round = 0; round < 5; round++) {
    ck_ok(clb_bytes_from_buffer(contexts[0], buffers[0], NULL, &bytes[0]));
    ck_ok(clb_bytes_from_buffer(contexts[1], buffers[1], &layout, &bytes[1]));
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
      workers[i].seed = (uint64_t)(1000 * round + i);
      workers[i].shared[0] = bytes[0];
      workers[i].shared[1] = bytes[1];
      workers[i].logical[0] = contents[0];
      workers[i].logical[1] = expected;
      workers[i].end = fixture_seconds() + 0.3;
    }
    run_workers(workers, THREADS, use_shared_handles);
    clb_bytes_release(bytes[0]);
    clb_bytes_release(bytes[1]);
  }
  free(expected);
}
END_TEST

/* --- Messages ------------------------------------------------------------ */

static void fail_with_a_label(struct worker *worker)
{
  clb_bytes *bytes = NULL;
  unsigned char byte;
  char label[32];

  snprintf(label, sizeof label, "thread-%ju-end", (uintmax_t)worker->seed);
  EXPECT(worker, clb_bytes_from_buffer(contexts[worker->side],
                                       buffers[worker->side], NULL,
                                       &bytes) == CLB_OK);
  EXPECT(worker, clb_bytes_set_label(bytes, label) == CLB_OK);
  for (int i = 0; i < 1000; i++) {
    EXPECT(worker, clb_bytes_copy_into(bytes, SIZE, &byte, 1) ==
                       CLB_OUT_OF_RANGE);
    sched_yield(); /* another thread's failure in between */
    EXPECT(worker, strstr(clb_error_message(), label) != NULL);
  }
  clb_bytes_release(bytes);
}

static void *fail_with_labels(void *user)
{
  fail_with_a_label(user);
  return NULL;
}

START_TEST(each_thread_has_its_own_message)
{
  struct worker workers[THREADS];

  FIXTURE_NEEDS_THREADS();
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) {
    workers[i].seed = (uint64_t)i;
    workers[i].side = i % 2;
  }
  run_workers(workers, THREADS, fail_with_labels);
}
END_TEST

/* --- Contexts in threads ------------------------------------------------- */

static void make_contexts(struct worker *worker)
{
  for (int i = 0; i < 10; i++) {
    clb_context *context = NULL;
    clb_bytes *bytes = NULL;
    unsigned char got[PART];

    EXPECT(worker, clb_context_create(queues[worker->side], NULL, &context) ==
                       CLB_OK);
    EXPECT(worker, clb_bytes_from_buffer(context, buffers[worker->side], NULL,
                                         &bytes) == CLB_OK);
    clb_context_release(context);
    EXPECT(worker, clb_bytes_copy_into(bytes, 7, got, PART) == CLB_OK);
    EXPECT(worker, memcmp(got, contents[worker->side] + 7, PART) == 0);
    clb_bytes_release(bytes);
  }
}

static void *make_contexts_thread(void *user)
{
  make_contexts(user);
  return NULL;
}

START_TEST(contexts_are_made_and_released_side_by_side)
{
  struct worker workers[16];

  FIXTURE_NEEDS_THREADS();
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < 16; i++)
    workers[i].side = i % 2;
  run_workers(workers, 16, make_contexts_thread);
}
END_TEST

/* Each thread uploads into a region of its own and reads it back. */
static void upload_own(struct worker *worker)
{
  size_t offset = (size_t)worker->seed / 2 * PART;
  clb_layout layout = {2, SHAPE(PART / 100, 20), STRIDES(100, 4), 4, offset};

  for (uint64_t i = 0; i < 20; i++) {
    uint64_t state = worker->seed * 100 + i;
    unsigned char data[PART / 100 * 80], got[sizeof data];
    clb_bytes *bytes = NULL;

    for (size_t b = 0; b < sizeof data; b++)
      data[b] = (unsigned char)fixture_random(&state);
    EXPECT(worker, clb_bytes_from_copy(data, sizeof data, &bytes) == CLB_OK);
    EXPECT(worker, clb_bytes_upload(bytes, contexts[worker->side],
                                    buffers[worker->side], &layout) == CLB_OK);
    clb_bytes_release(bytes);
    EXPECT(worker, clb_bytes_from_buffer(contexts[worker->side],
                                         buffers[worker->side], &layout,
                                         &bytes) == CLB_OK);
    EXPECT(worker, clb_bytes_copy_into(bytes, 0, got, sizeof got) == CLB_OK);
    EXPECT(worker, memcmp(got, data, sizeof got) == 0);
    clb_bytes_release(bytes);
  }
}

static void *upload_own_thread(void *user)
{
  upload_own(user);
  return NULL;
}

START_TEST(uploads_side_by_side_keep_to_their_regions)
{
  struct worker workers[THREADS];

  FIXTURE_NEEDS_THREADS();
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) {
    workers[i].seed = (uint64_t)i;
    workers[i].side = i % 2;
  }
  run_workers(workers, THREADS, upload_own_thread);
}
END_TEST

/* --- The library's own threads ------------------------------------------- */

static size_t threads_of_the_process(void)
{
  DIR *folder = opendir("/proc/self/task");
  size_t count = 0;

  if (folder == NULL)
    return 0;
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count - 2;
}

START_TEST(the_librarys_threads_end_with_the_last_context)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  unsigned char *got = fixture_malloc(SIZE);
  size_t before;

  /* The driver's threads are there after its first commands. */
  fixture_store(buffers[0], contents[0], SIZE);
  before = threads_of_the_process();
  options.copy_threads = 4;
  options.chunk_size = 16384;
  for (int i = 0; i < 10; i++) {
    clb_context *context = NULL;
    clb_bytes *bytes = NULL;

    ck_ok(clb_context_create(queues[0], &options, &context));
    ck_ok(clb_bytes_from_buffer(context, buffers[0], NULL, &bytes));
    expect_stream(bytes, contents[0], SIZE);
    expect_read(bytes, contents[0], SIZE);
    clb_context_release(context);
    clb_bytes_release(bytes);
  }
  /* A driver may keep a thread a queue for a moment. */
  WAIT_UNTIL(threads_of_the_process() <= before);
  ck_assert_uint_le(threads_of_the_process(), before);
  free(got);
}
END_TEST

/* --- Prefetches ---------------------------------------------------------- */

/* The second one found the first under way; after an evict it must not begin
 * its own. */
START_TEST(an_evict_ends_each_prefetch_of_before)
{
  clb_bytes *bytes = NULL;
  const void *data;

  FIXTURE_NEEDS_THREADS();
  ck_ok(clb_bytes_from_buffer(contexts[0], buffers[0], NULL, &bytes));
  for (int i = 0; i < 300; i++) {
    cl_event done = NULL;
    void *copy = NULL;
    size_t length;

    ck_ok(clb_bytes_prefetch(bytes, NULL));
    ck_ok(clb_bytes_prefetch(bytes, &done));
    if (i % 2 == 0) {
      ck_ok(clb_bytes_evict(bytes));
    } else {
      ck_ok(clb_bytes_detach(bytes, &copy, &length));
      ck_bytes(copy, contents[0], SIZE);
      clb_free(copy);
    }
    ck_cl(clWaitForEvents(1, &done));
    ck_cl(clReleaseEvent(done));
    ck_status(clb_bytes_read(bytes, CLB_NO_COPY, &data), CLB_WOULD_COPY);
  }
  clb_bytes_release(bytes);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("threads");
  TCase *all = tcase_create("device");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, setup, teardown);
  suite_add_tcase(suite, all);
  tcase_add_test(all, no_block_is_reused_before_its_transfer_is_complete);
  tcase_add_test(all, a_handle_may_be_used_by_everybody);
  tcase_add_test(all, each_thread_has_its_own_message);
  tcase_add_test(all, contexts_are_made_and_released_side_by_side);
  tcase_add_test(all, uploads_side_by_side_keep_to_their_regions);
  tcase_add_test(all, the_librarys_threads_end_with_the_last_context);
  tcase_add_test(all, an_evict_ends_each_prefetch_of_before);
  return fixture_main(suite, FIXTURE_DEVICE);
}
