/*
 * See fault_fixture.h.
 */
#include "config.h"

#include "fault_fixture.h"

#include <string.h>

const fault_api *fault;

static struct fault_held at_start;

void fault_setup(void) {
  fault = fault_open();
  ck_assert_msg(fault != NULL, "the loader has not loaded the fault layer");
  fault->reset();
  at_start = fault_count();
  fixture_setup_cl();
}

void fault_teardown(void) {
  uint64_t too_many = fault->over_releases(); /* which a reset forgets */

  fault->reset();
  fixture_teardown_cl();
  ck_fault_held(&at_start, "after the test");
  ck_assert_msg(too_many == 0, "a release too many in the test");
}

int fault_arm(const char *call, uint64_t nth, int lasting, fault_what what,
              cl_int error) {
  fault_rule rule = {call, nth, lasting, what, error, 0, 0};
  int number = fault->arm(&rule);

  ck_assert_msg(number >= 0, "no rule for %s", call != NULL ? call : "any");
  return number;
}

struct fault_held fault_count(void) {
  struct fault_held held;

  for (int kind = 0; kind < FAULT_OBJECTS; kind++)
    held.live[kind] = fault->live((fault_object)kind);
  return held;
}

void fault_lost(const struct fault_held *then) {
  struct fault_held now = fault_count();

  for (int kind = 0; kind < FAULT_OBJECTS; kind++)
    at_start.live[kind] += now.live[kind] - then->live[kind];
}

void ck_fault_held(const struct fault_held *then, const char *what) {
  static const char *const names[FAULT_OBJECTS] = {
      "contexts", "queues",  "buffers", "events",
      "programs", "kernels", "mappings"};
  struct fault_held now = fault_count();

  for (int kind = 0; kind < FAULT_OBJECTS; kind++)
    ck_assert_msg(now.live[kind] == then->live[kind],
                  "%s: references to %s were %lld, are %lld", what,
                  names[kind], (long long)then->live[kind],
                  (long long)now.live[kind]);
  ck_assert_msg(fault->over_releases() == 0, "%s: a release too many", what);
}

int fault_main_by(Suite *suite, int (*run)(Suite *suite, int needs)) {
  int result;

  fault_use();
  result = fixture_probe();
  if (result == 0 && fault_works())
    return run(suite, FIXTURE_HOST);
  srunner_free(srunner_create(suite)); /* the suite goes with it */
  if (result != 0)
    return result;
  fprintf(stderr, "the OpenCL loader loads no fault layer\n");
  return fixture_number("CLBYTES_TEST_REQUIRE", 0) == 1 ? 1 : 77;
}

int fault_main(Suite *suite) {
  return fault_main_by(suite, fixture_main);
}
