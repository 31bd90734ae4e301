/*
 * The threads that copy: every piece once, whoever posts, joins and leaves
 * meanwhile; and no thread more than were asked for.
 */
#include "config.h"

#include "crew.h"

#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

static size_t threads_of_the_process(void)
{
  DIR *tasks = opendir("/proc/self/task");
  size_t count = 0;

  if (tasks == NULL)
    return 0;
  while (readdir(tasks) != NULL)
    count++;
  closedir(tasks);
  return count;
}

/* Threads without a crew, after there was one: some tools start a thread of
 * their own with the first of the program's. */
static size_t threads_before(void)
{
  if (clb__crew_join())
    clb__crew_leave();
  fixture_sleep(0.01);
  return threads_of_the_process();
}

/* A batch that counts how often each of its pieces ran, and on which threads. */
enum { PIECES = 500, THREADS = 6 };

struct counted {
  clb__batch batch;
  atomic_uint times[PIECES];
  atomic_uint running, most;
  double seconds; /* of a piece */
};

static void count_piece(void *user, size_t index)
{
  struct counted *counted = user;
  unsigned running = atomic_fetch_add(&counted->running, 1) + 1;
  unsigned most = atomic_load(&counted->most);

  while (running > most &&
         !atomic_compare_exchange_weak(&counted->most, &most, running))
    ;
  atomic_fetch_add(&counted->times[index], 1);
  if (counted->seconds > 0)
    fixture_sleep(counted->seconds);
  atomic_fetch_sub(&counted->running, 1);
}

static void begin(struct counted *counted, size_t pieces, unsigned helpers)
{
  memset(counted, 0, sizeof *counted);
  counted->batch.piece = count_piece;
  counted->batch.user = counted;
  counted->batch.pieces = pieces;
  counted->batch.helpers = helpers;
}

/* Has each piece run once, and no other? */
static int ran_once(struct counted *counted)
{
  for (size_t i = 0; i < PIECES; i++)
    if (atomic_load(&counted->times[i]) != (i < counted->batch.pieces))
      return 0;
  return atomic_load(&counted->running) == 0;
}

static const size_t SIZES[] = {0, 1, 2, 7, PIECES};
enum { SIZES_COUNT = sizeof SIZES / sizeof *SIZES };

START_TEST(every_piece_is_taken_once)
{
  static struct counted counted;

  if (!clb__crew_join())
    FIXTURE_SKIP("one processor");
  for (unsigned helpers = 0; helpers < 40; helpers++)
    for (size_t i = 0; i < SIZES_COUNT; i++) {
      begin(&counted, SIZES[i], helpers);
      clb__crew_post(&counted.batch);
      clb__crew_finish(&counted.batch);
      ck_assert_msg(ran_once(&counted), "%zu pieces, %u helpers", SIZES[i],
                    helpers);
      ck_assert_uint_le(atomic_load(&counted.most), helpers + 1);
    }
  clb__crew_leave();
}
END_TEST

/* Of one's own thread alone; nobody has joined. */
START_TEST(without_helpers_no_thread_is_there)
{
  static struct counted counted;
  const size_t before = threads_of_the_process();

  for (size_t i = 0; i < SIZES_COUNT; i++) {
    begin(&counted, SIZES[i], 0);
    clb__crew_post(&counted.batch);
    clb__crew_finish(&counted.batch);
    ck_assert(ran_once(&counted));
    ck_assert_uint_le(atomic_load(&counted.most), 1);
  }
  ck_assert_uint_eq(threads_of_the_process(), before);
}
END_TEST

/* The crew works, too: pieces that take a while run side by side. */
START_TEST(helpers_help)
{
  static struct counted counted;

  if (!clb__crew_join())
    FIXTURE_SKIP("one processor");
  begin(&counted, 20, 1);
  counted.seconds = 0.005;
  clb__crew_post(&counted.batch);
  clb__crew_finish(&counted.batch);
  ck_assert(ran_once(&counted));
  ck_assert_uint_eq(atomic_load(&counted.most), 2);
  clb__crew_leave();
}
END_TEST

struct poster {
  pthread_t thread;
  unsigned rounds;
  int joins; /* each round for itself */
  const char *wrong;
};

/* Two batches at once, as a ring of blocks has them, ended in both orders. */
static void *post_again_and_again(void *user)
{
  struct poster *poster = user;
  struct counted *pair = malloc(2 * sizeof *pair);

  for (unsigned i = 0; i < poster->rounds && poster->wrong == NULL; i++) {
    int there = poster->joins && clb__crew_join();

    for (size_t j = 0; j < 2; j++) {
      begin(&pair[j], SIZES[(i + j) % SIZES_COUNT], 1 + i % 5);
      if (poster->joins && !there)
        pair[j].batch.helpers = 0;
      clb__crew_post(&pair[j].batch);
    }
    clb__crew_finish(&pair[i % 2].batch);
    if (!ran_once(&pair[i % 2]))
      poster->wrong = "not each piece has run once";
    clb__crew_finish(&pair[1 - i % 2].batch);
    if (!ran_once(&pair[1 - i % 2]))
      poster->wrong = "not each piece of the other has run once";
    if (there)
      clb__crew_leave();
  }
  free(pair);
  return NULL;
}

static void run_posters(int joins)
{
  struct poster posters[THREADS] = {{0}};

  for (int i = 0; i < THREADS; i++) {
    posters[i].rounds = 200;
    posters[i].joins = joins;
    ck_assert_int_eq(pthread_create(&posters[i].thread, NULL,
                                    post_again_and_again, &posters[i]),
                     0);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(posters[i].thread, NULL);
  for (int i = 0; i < THREADS; i++)
    ck_assert_msg(posters[i].wrong == NULL, "%s", posters[i].wrong);
}

START_TEST(many_batches_at_once_are_each_whole)
{
  if (!clb__crew_join())
    FIXTURE_SKIP("one processor");
  run_posters(0);
  clb__crew_leave();
}
END_TEST

START_TEST(others_join_and_leave_meanwhile)
{
  const size_t before = threads_before();

  run_posters(1);
  WAIT_UNTIL(threads_of_the_process() <= before);
  ck_assert_uint_eq(threads_of_the_process(), before);
}
END_TEST

START_TEST(the_last_to_leave_ends_all_threads)
{
  const size_t before = threads_before();
  size_t there;

  for (int i = 0; i < 50; i++) {
    if (!clb__crew_join())
      FIXTURE_SKIP("one processor");
    ck_assert(clb__crew_join());
    there = threads_of_the_process();
    ck_assert_uint_gt(there, before);
    clb__crew_leave();
    ck_assert_uint_eq(threads_of_the_process(), there);
    clb__crew_leave();
    WAIT_UNTIL(threads_of_the_process() <= before);
    ck_assert_uint_eq(threads_of_the_process(), before);
  }
}
END_TEST

START_TEST(a_copy_is_exactly_its_bytes)
{
  enum { PIECE = 256 << 10 };
  static const size_t lengths[] = {0, 1, PIECE, 2 * PIECE, 2 * PIECE + 1,
                                   3 * PIECE, 5 * PIECE - 1, 5 * PIECE + 3};
  unsigned char *from = fixture_bytes(6 * PIECE, 1);
  unsigned char *to = fixture_malloc(6 * PIECE);
  const unsigned helpers = clb__crew_join() ? 3 : 0;

  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    memset(to, 0xa5, 6 * PIECE);
    clb__crew_copy(helpers, to + 5, from + 3, lengths[i]);
    ck_bytes(to + 5, from + 3, lengths[i]);
    ck_assert_uint_eq(fixture_other(to, 0xa5, 5), 5);
    ck_assert_uint_eq(fixture_other(to + 5 + lengths[i], 0xa5, 100), 100);
  }
  if (helpers > 0)
    clb__crew_leave();
  free(from);
  free(to);
}
END_TEST

/* --- Through a context --------------------------------------------------- */

enum { ROWS = 1024, COLUMNS = 700 }; /* 2.7 MiB: enough for several threads */

static const size_t shape[2] = {COLUMNS, ROWS};
static const ptrdiff_t strides[2] = {4, COLUMNS * 4};
static const clb_layout transposed = {2, shape, strides, 4, 0};

static void read_with(unsigned copy_threads, unsigned plans, int streams)
{
  const size_t size = (size_t)ROWS * COLUMNS * 4;
  unsigned char *contents = fixture_bytes(size, 1);
  unsigned char *expected = walk(&transposed, contents);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, size);
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_bytes *bytes;

  options.copy_threads = copy_threads;
  options.plans = plans;
  fixture_options(&options);
  bytes = fixture_handle(buffer, &transposed);
  if (streams)
    expect_stream(bytes, expected, size);
  expect_copy_into(bytes, expected, size);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(expected);
  free(contents);
}

START_TEST(one_copy_thread_starts_no_thread)
{
  size_t before;

  read_with(1, CLB_PLAN_GATHER, 1); /* the driver's own are there then */
  before = threads_of_the_process();
  read_with(1, CLB_PLAN_GATHER, 1);
  ck_assert_uint_eq(threads_of_the_process(), before);
  read_with(0, CLB_PLAN_GATHER, 1);
  ck_assert_uint_eq(threads_of_the_process(), before + clb__crew_size() - 1);
}
END_TEST

static void upload_with(unsigned copy_threads)
{
  static const unsigned char bytes[64];
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  cl_mem buffer;
  clb_bytes *small;

  options.copy_threads = copy_threads;
  fixture_options(&options);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, sizeof bytes);
  ck_ok(clb_bytes_from_copy(bytes, sizeof bytes, &small));
  ck_ok(clb_bytes_upload(small, fx.context, buffer, NULL));
  clb_bytes_release(small);
  ck_cl(clReleaseMemObject(buffer));
}

START_TEST(a_small_upload_starts_no_thread)
{
  size_t before;

  upload_with(1); /* the driver's own are there then */
  before = threads_of_the_process();
  upload_with(0);
  ck_assert_uint_eq(threads_of_the_process(), before);
}
END_TEST

START_TEST(several_threads_copy_out_of_a_mapping)
{
  size_t before;

  read_with(1, 0, 0);
  if (fixture_stats().maps == 0)
    FIXTURE_SKIP("this device does not map in place");
  before = threads_of_the_process();
  read_with(0, 0, 0);
  ck_assert_uint_eq(threads_of_the_process(), before + clb__crew_size() - 1);
}
END_TEST

/* [_i]: plans; as many as can be asked for, and what overflows when it is
 * doubled */
START_TEST(any_number_of_copy_threads_is_fine)
{
  static const unsigned plans[] = {CLB_PLAN_GATHER, 0};

  read_with(2, plans[_i], 1);
  read_with(1u << 30, plans[_i], 1);
  read_with(1u << 31, plans[_i], 1);
  read_with(UINT32_MAX, plans[_i], 1);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("crew");
  TCase *crew = tcase_create("alone");
  TCase *device = fixture_case(suite, "with a device", 60);

  tcase_set_timeout(crew, 60);
  suite_add_tcase(suite, crew);
  tcase_add_test(crew, every_piece_is_taken_once);
  tcase_add_test(crew, without_helpers_no_thread_is_there);
  tcase_add_test(crew, helpers_help);
  tcase_add_test(crew, many_batches_at_once_are_each_whole);
  tcase_add_test(crew, others_join_and_leave_meanwhile);
  tcase_add_test(crew, the_last_to_leave_ends_all_threads);
  tcase_add_test(crew, a_copy_is_exactly_its_bytes);
  tcase_add_test(device, one_copy_thread_starts_no_thread);
  tcase_add_test(device, a_small_upload_starts_no_thread);
  tcase_add_test(device, several_threads_copy_out_of_a_mapping);
  tcase_add_loop_test(device, any_number_of_copy_threads_is_fine, 0, 2);
  return fixture_main(suite, FIXTURE_DEVICE);
}
