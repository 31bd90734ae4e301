/*
 * A state machine: random sequences of operations on handles, against a model
 * that keeps plain arrays of bytes.  After each operation all that is known is
 * looked at: statuses, bytes, places, pointers, lengths, what the device was
 * asked for, what the host holds; after each sequence that nothing stays.
 *
 * CLBYTES_TEST_SEQUENCES  how many
 * CLBYTES_TEST_SEED       of the first; the clock's unless set.  A failure, a
 *                         crash too, prints the sequence and its seed.
 */
#include "config.h"

#include "model_run.h"

#include <time.h>

static uint64_t first_seed, sequences;

static const struct operation {
  void (*run)(void);
  unsigned weight;
} operations[] = {
    {make_on_buffer, 14}, {make_on_file, 3}, {make_on_host, 4},
    {op_view, 10},        {op_slice, 8},     {op_reshape, 6},
    {op_clone, 6},        {op_split, 4},     {op_refused, 2},
    {op_read, 18},        {op_write, 8},     {op_copy_into, 5},
    {op_copy_into_layout, 3},
    {op_stream, 5},       {op_equal, 4},     {op_evict, 5},
    {op_detach, 4},       {op_ask, 3},       {op_label, 2},
    {op_retain, 2},       {op_release, 12},  {op_snapshot, 4},
    {op_prefetch, 4},     {op_wait, 2},      {op_buffer, 4},
    {op_upload, 4},       {op_raw_write, 9},
};

static const struct operation *draw(void)
{
  size_t all = 0, at, count = sizeof operations / sizeof *operations;

  for (size_t i = 0; i < count; i++)
    all += operations[i].weight;
  at = run_below(all);
  for (size_t i = 0; i < count; i++) {
    if (at < operations[i].weight)
      return &operations[i];
    at -= operations[i].weight;
  }
  return operations;
}

static void try_sequence(uint64_t seed)
{
  size_t steps;

  run_begin(seed);
  steps = 5 + run_below(36);
  for (size_t i = 0; i < steps; i++) {
    if (run.count == 0)
      make_on_buffer();
    else
      draw()->run();
    run_check();
  }
  run_end();
}

START_TEST(random_sequences_are_what_the_model_says)
{
  double start = fixture_seconds();

  run_open();
  for (uint64_t i = 0; i < sequences; i++)
    try_sequence(first_seed + i);
  run_close();
  printf("%ju sequences, %.0f a second\n", (uintmax_t)sequences,
         (double)sequences / (fixture_seconds() - start));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("model");
  TCase *all = fixture_case(suite, "sequences", 0);
  int result;

  first_seed = fixture_number("CLBYTES_TEST_SEED",
                              (uint64_t)time(NULL) * 1000000);
  sequences = fixture_number("CLBYTES_TEST_SEQUENCES", 10000);
  printf("CLBYTES_TEST_SEED=%ju\n", (uintmax_t)first_seed);
  fflush(stdout);
  run_trace_open();
  make_file_open();
  tcase_add_test(all, random_sequences_are_what_the_model_says);
  result = fixture_main(suite, FIXTURE_DEVICE);
  if (result == 1)
    run_trace_print();
  make_file_close();
  return result;
}
