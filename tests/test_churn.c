/*
 * Threads that do everything to their own views and clones of handles that all
 * of them share, for CLBYTES_TEST_CHURN seconds (2).
 */
#include "config.h"

#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 8, SIZE = 40000, ROWS = 100, ROW = 80, PARENTS = 4, OWN = 6 };

static unsigned char *contents;
static cl_mem buffer;

/* What all threads share, and its logical bytes. */
static struct parent {
  clb_bytes *bytes;
  unsigned char *expected;
  size_t length;
} parents[PARENTS];

static atomic_int wrong; /* the line that was the first to go wrong */

#define EXPECT(condition)                                                      \
  do {                                                                         \
    int none_ = 0;                                                             \
    if (!(condition))                                                          \
      atomic_compare_exchange_strong(&wrong, &none_, __LINE__);                \
  } while (0)

/* --- What a thread has --------------------------------------------------- */

/* A handle of one thread alone, and its bytes as they should be. */
struct own {
  clb_bytes *bytes;
  unsigned char *expected;
  size_t length;
  int edited;
};

struct worker {
  pthread_t thread;
  uint64_t seed;
  double end;
  struct own own[OWN];
  uint64_t rounds;
};

static void drop(struct own *own)
{
  clb_bytes_release(own->bytes);
  free(own->expected);
  memset(own, 0, sizeof *own);
}

static void keep(struct own *own, clb_bytes *bytes,
                 const unsigned char *expected, size_t length, int edited)
{
  unsigned char *copy = fixture_malloc(length);

  memcpy(copy, expected, length); /* which may be of the one that goes */
  drop(own);
  own->bytes = bytes;
  own->expected = copy;
  own->length = length;
  own->edited = edited;
  EXPECT(clb_bytes_length(bytes) == length);
}

/* A view or a clone of something, in a place of the thread's. */
static void derive(struct worker *worker, clb_bytes *bytes,
                   const unsigned char *expected, size_t length, int edited)
{
  struct own *own = &worker->own[fixture_below(&worker->seed, OWN)];
  size_t start = fixture_below(&worker->seed, length + 1);
  size_t end = start + fixture_below(&worker->seed, length - start + 1);
  clb_bytes *made = NULL, *rest = NULL;

  clb_bytes_retain(bytes); /* it may be in the place */
  switch (fixture_below(&worker->seed, 3)) {
  case 0:
    start = 0;
    end = length;
    EXPECT(clb_bytes_clone(bytes, &made) == CLB_OK);
    break;
  case 1:
    EXPECT(clb_bytes_view(bytes, start, end, &made) == CLB_OK);
    break;
  default:
    start = 0;
    EXPECT(clb_bytes_split(bytes, end,
                           fixture_below(&worker->seed, 2) ? CLB_SPLIT_OWNED
                                                           : CLB_SPLIT_SHARED,
                           &made, &rest) == CLB_OK);
    EXPECT(clb_bytes_length(rest) == length - end);
  }
  clb_bytes_release(rest);
  if (made != NULL)
    keep(own, made, expected + start, end - start, edited);
  clb_bytes_release(bytes);
}

/* Every second row of a parent that has rows, from the last on. */
static void slice(struct worker *worker)
{
  struct own *own = &worker->own[fixture_below(&worker->seed, OWN)];
  struct parent *parent = &parents[1];
  ptrdiff_t step[2] = {-2, 1};
  size_t start[2] = {ROWS - 1, 0};
  unsigned char expected[ROWS / 2 * ROW];
  clb_bytes *made = NULL;

  for (size_t i = 0; i < ROWS / 2; i++)
    memcpy(expected + i * ROW, parent->expected + (ROWS - 1 - 2 * i) * ROW,
           ROW);
  EXPECT(clb_bytes_slice(parent->bytes, start, NULL, step, &made) == CLB_OK);
  if (made != NULL)
    keep(own, made, expected, sizeof expected, 0);
}

/* --- What it does -------------------------------------------------------- */

static void read_all(clb_bytes *bytes, const unsigned char *expected,
                     size_t length, clb_access access)
{
  const void *data = NULL;
  clb_status status = clb_bytes_read(bytes, access, &data);

  EXPECT(status == CLB_OK ||
         (status == CLB_WOULD_COPY && access != CLB_COPY));
  if (status == CLB_OK)
    EXPECT(fixture_difference(data, expected, length) == length);
}

static void copy_part(struct worker *worker, clb_bytes *bytes,
                      const unsigned char *expected, size_t length)
{
  size_t start = fixture_below(&worker->seed, length + 1);
  size_t part = fixture_below(&worker->seed, length - start + 1);
  unsigned char *got = fixture_malloc(part);

  EXPECT(clb_bytes_copy_into(bytes, start, got, part) == CLB_OK);
  EXPECT(fixture_difference(got, expected + start, part) == part);
  free(got);
}

/* What needs the handle to oneself. */
static void change(struct worker *worker, struct own *own)
{
  unsigned char *data = NULL;
  size_t length = 0;
  void *given = NULL;

  switch (fixture_below(&worker->seed, 3)) {
  case 0:
    EXPECT(clb_bytes_evict(own->bytes) ==
           (own->edited ? CLB_UNSUPPORTED : CLB_OK));
    break;
  case 1:
    EXPECT(clb_bytes_write(own->bytes, CLB_COPY, &given) == CLB_OK);
    own->edited = 1;
    if (given == NULL || own->length == 0)
      break;
    data = given;
    length = fixture_below(&worker->seed, own->length);
    data[length] ^= 0xff;
    own->expected[length] ^= 0xff;
    break;
  default:
    EXPECT(clb_bytes_detach(own->bytes, &given, &length) == CLB_OK);
    EXPECT(length == own->length &&
           fixture_difference(given, own->expected, length) == length);
    clb_free(given);
  }
}

static void prefetch(struct worker *worker, clb_bytes *bytes)
{
  clb_status status;

  EXPECT(clb_bytes_prefetch(bytes, NULL) == CLB_OK);
  if (fixture_below(&worker->seed, 2) == 0)
    return;
  status = clb_bytes_wait(bytes, fixture_below(&worker->seed, 2) == 0
                                     ? 1000 : UINT64_MAX);
  EXPECT(status == CLB_OK || status == CLB_TIMEOUT);
}

/* Of what others read at this moment, too: the bytes are the same after it. */
static void snapshot(struct parent *parent, struct own *own)
{
  cl_mem mem = NULL;
  size_t offset;

  EXPECT(clb_bytes_snapshot(parent->bytes) == CLB_OK);
  EXPECT(clb_bytes_snapshot(own->bytes) ==
         (own->edited ? CLB_UNSUPPORTED : CLB_OK));
  EXPECT(clb_bytes_buffer(parent->bytes, &mem, &offset) !=
         CLB_DEVICE_ERROR);
  if (mem != NULL)
    (void)clReleaseMemObject(mem);
}

static void stream(clb_bytes *bytes, const unsigned char *expected,
                   size_t length)
{
  struct gathered got = {0};

  EXPECT(clb_bytes_stream(bytes, 0, length, gather_sink, &got) == CLB_OK);
  EXPECT(got.length == length &&
         fixture_difference(got.data, expected, length) == length);
  free(got.data);
}

static void step(struct worker *worker)
{
  struct parent *parent = &parents[fixture_below(&worker->seed, PARENTS)];
  struct own *own = &worker->own[fixture_below(&worker->seed, OWN)];
  size_t what = fixture_below(&worker->seed, 12);

  if (what < 2 || own->bytes == NULL) {
    clb_bytes *bytes = clb_bytes_retain(parent->bytes);

    derive(worker, bytes, parent->expected, parent->length, 0);
    if (what == 0)
      read_all(bytes, parent->expected, parent->length, CLB_COPY);
    else
      copy_part(worker, bytes, parent->expected, parent->length);
    if (fixture_below(&worker->seed, 4) == 0)
      prefetch(worker, bytes);
    clb_bytes_release(bytes);
    return;
  }
  switch (what) {
  case 2:
    derive(worker, own->bytes, own->expected, own->length, own->edited);
    break;
  case 3:
    read_all(own->bytes, own->expected, own->length, CLB_COPY);
    break;
  case 4:
    read_all(own->bytes, own->expected, own->length,
             fixture_below(&worker->seed, 2) ? CLB_NO_COPY : CLB_MAP);
    break;
  case 5:
    copy_part(worker, own->bytes, own->expected, own->length);
    break;
  case 6:
    prefetch(worker, own->bytes);
    break;
  case 7:
    drop(own);
    break;
  case 8:
    slice(worker);
    break;
  case 9:
    snapshot(parent, own);
    break;
  case 10:
    stream(parent->bytes, parent->expected, parent->length);
    break;
  default:
    change(worker, own);
  }
}

static void *churn(void *user)
{
  struct worker *worker = user;

  while (atomic_load(&wrong) == 0 && fixture_seconds() < worker->end) {
    step(worker);
    worker->rounds++;
  }
  for (int i = 0; i < OWN; i++)
    drop(&worker->own[i]);
  return NULL;
}

/* --- The test ------------------------------------------------------------ */

static void share(int index, clb_bytes *bytes, const clb_layout *layout)
{
  parents[index].bytes = bytes;
  parents[index].length = clb_bytes_length(bytes);
  parents[index].expected = walk(layout, contents);
}

static void make_parents(void)
{
  clb_layout flat = {1, SHAPE(SIZE), NULL, 1, 0};
  clb_layout padded = {2, SHAPE(ROWS, ROW / 4), STRIDES(3 * ROW, 4), 4, 12};
  char path[] = "/tmp/clbytes-churn-XXXXXX";
  int descriptor = mkstemp(path);
  clb_bytes *file = NULL, *host = NULL;

  ck_assert_int_ge(descriptor, 0);
  ck_assert_int_eq(write(descriptor, contents, SIZE), SIZE);
  ck_assert_int_eq(close(descriptor), 0);
  ck_ok(clb_bytes_from_file(path, 0, SIZE, &file));
  ck_assert_int_eq(unlink(path), 0);
  ck_ok(clb_bytes_from_host(contents, SIZE, NULL, NULL, &host));
  share(0, fixture_handle(buffer, NULL), &flat);
  share(1, fixture_handle(buffer, &padded), &padded);
  share(2, file, &flat);
  share(3, host, &flat);
}

START_TEST(threads_keep_their_bytes_apart)
{
  struct worker workers[THREADS];
  double seconds = (double)fixture_number("CLBYTES_TEST_CHURN", 2);
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  uint64_t rounds = 0;

  FIXTURE_NEEDS_THREADS();
  options.chunk_size = 8192;
  if (_i > 0) /* through staging */
    options.plans = CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER;
  fixture_options(&options);
  contents = fixture_bytes(SIZE, 8);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
  make_parents();
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) {
    workers[i].seed = fixture_number("CLBYTES_TEST_SEED", 1) * 100 +
                      (uint64_t)(10 * _i + i);
    workers[i].end = fixture_seconds() + seconds / 2;
    ck_assert_int_eq(
        pthread_create(&workers[i].thread, NULL, churn, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    rounds += workers[i].rounds;
  }
  ck_assert_msg(atomic_load(&wrong) == 0, "line %d did not hold",
                atomic_load(&wrong));
  ck_assert_uint_gt(rounds, THREADS);
  for (int i = 0; i < PARENTS; i++) {
    clb_bytes_release(parents[i].bytes);
    free(parents[i].expected);
  }
  /* A prefetch may be on its way still, and a snapshot's copy known to be. */
  WAIT_UNTIL((clb_context_trim(fx.context), fixture_buffer_refs(buffer) == 1));
  ck_refs(buffer, 1);
  WAIT_UNTIL(fixture_stats().host_bytes == 0);
  ck_assert_uint_eq(fixture_stats().host_bytes, 0);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("churn");
  TCase *all =
      fixture_case(suite, "all",
                   60 + 2 * (double)fixture_number("CLBYTES_TEST_CHURN", 2));

  tcase_add_loop_test(all, threads_keep_their_bytes_apart, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
