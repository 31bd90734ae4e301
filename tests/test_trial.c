/*
 * The trial of two ways of writing, on paper: a clock that the test turns.
 */
#include "config.h"

#include "trial.h"

#include <check.h>

enum { PIECE = 16 << 20, PIECES = CLB__TRIAL_BYTES / PIECE };

/* Runs the bytes of each way, at these seconds a piece; the way that stays. */
static int run(double first, double second) {
  const double seconds[] = {first, second};
  clb__trial trial = {.over = false};
  double now = 100;

  for (int way = 0; way < 2; way++)
    for (int i = 0; i < PIECES; i++) {
      ck_assert_int_eq(clb__trial_begin(&trial, PIECE, now), way);
      ck_assert(!trial.over);
      now += seconds[way];
      ck_assert(clb__trial_end(&trial, way, PIECE, now) ==
                (way == 1 && i == PIECES - 1));
    }
  ck_assert(trial.over);
  return clb__trial_begin(&trial, PIECE, now);
}

START_TEST(faster_way_stays) {
  ck_assert_int_eq(run(1, 2), 0);
  ck_assert_int_eq(run(2, 1), 1);
}
END_TEST

START_TEST(first_way_stays_where_there_is_little_between_them) {
  ck_assert_int_eq(run(1, 1), 0);
  ck_assert_int_eq(run(1.04, 1), 0);
  ck_assert_int_eq(run(1.06, 1), 1);
}
END_TEST

START_TEST(clock_that_stands_ends_it_too) {
  ck_assert_int_eq(run(0, 0), 0);
}
END_TEST

/* Several are under way: those of the first way end after some of the second
 * have, and what is given out meanwhile goes the first way. */
START_TEST(ways_may_overlap) {
  clb__trial trial = {.over = false};

  for (int i = 0; i < PIECES; i++)
    ck_assert_int_eq(clb__trial_begin(&trial, PIECE, i), 0);
  for (int i = 0; i < PIECES; i++)
    ck_assert_int_eq(clb__trial_begin(&trial, PIECE, PIECES + i), 1);
  ck_assert_int_eq(clb__trial_begin(&trial, PIECE, 2 * PIECES), 0);
  for (int i = 0; i < PIECES; i++)
    ck_assert(!clb__trial_end(&trial, 1, PIECE, 2 * PIECES + i));
  for (int i = 0; i < PIECES; i++)
    ck_assert(clb__trial_end(&trial, 0, PIECE, 4 * PIECES + i) ==
              (i == PIECES - 1));
  ck_assert_int_eq(clb__trial_begin(&trial, PIECE, 99), 1);
  ck_assert(!clb__trial_end(&trial, 0, PIECE, 99)); /* the late one */
  ck_assert_int_eq(clb__trial_begin(&trial, PIECE, 99), 1);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("trial");
  TCase *all = tcase_create("all");
  SRunner *runner;
  int failed;

  tcase_add_test(all, faster_way_stays);
  tcase_add_test(all, first_way_stays_where_there_is_little_between_them);
  tcase_add_test(all, clock_that_stands_ends_it_too);
  tcase_add_test(all, ways_may_overlap);
  suite_add_tcase(suite, all);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
