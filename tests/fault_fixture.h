/*
 * fault_fixture.h - what the Check programs that use the fault layer share.
 */
#ifndef FAULT_FIXTURE_H
#define FAULT_FIXTURE_H

#include "fault.h"
#include "fixture.h"

/* The layer; set by fault_setup(). */
extern const fault_api *fault;

/* fixture_setup_cl() and fixture_teardown_cl(), with the layer reset and its
 * counts of objects checked: all that a test made has to be given back. */
void fault_setup(void);
void fault_teardown(void);

/* Arms a rule; its number. */
int fault_arm(const char *call, uint64_t nth, int lasting, fault_what what,
              cl_int error);

/* How many references of all kinds the program holds. */
struct fault_held {
  int64_t live[FAULT_OBJECTS];
};
struct fault_held fault_count(void);
/* What is held now and was not then is not looked for by fault_teardown(). */
void fault_lost(const struct fault_held *then);
/* As many as then, of every kind, and none released too often. */
void ck_fault_held(const struct fault_held *then, const char *what);

/* fixture_main() with the layer; without one: 77, or 1 if
 * CLBYTES_TEST_REQUIRE is 1. */
int fault_main(Suite *suite);
/* The same by another than fixture_main(), such as files_main(). */
int fault_main_by(Suite *suite, int (*run)(Suite *suite, int needs));

#endif
