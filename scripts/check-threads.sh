#!/bin/sh
# Runs the tests that use several threads on PoCL with ThreadSanitizer, in a
# build of its own:
#
#   sh scripts/check-threads.sh
#
# CLBYTES_TEST_CHURN: seconds of tests/test_churn, 10 unless set.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

build=$top/build-threads
work=$build/quickstart
CC=clang

want_to_build
want clang clang have clang
want_to_check
want_pocl
install_missing
CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=thread"
LDFLAGS=-fsanitize=thread
export CC CFLAGS LDFLAGS
build_tree
pin_driver pocl

: "${CLBYTES_TEST_CHURN:=10}"
CLBYTES_TEST_ORDER=20
CLBYTES_TEST_PREFETCHES=5000
# Nothing is suppressed: PoCL, whose locks it knows, gives no reports.
TSAN_OPTIONS="halt_on_error=1 exitcode=66"
export CLBYTES_TEST_CHURN CLBYTES_TEST_ORDER CLBYTES_TEST_PREFETCHES
export TSAN_OPTIONS

tests="tests/test_churn tests/test_prefetch tests/test_snapshot tests/test_table"
tests="$tests tests/test_threads tests/test_crew tests/test_pack"
# Where the loader loads layers.
grep -q "^tests_test_first_access_LDADD" "$build/Makefile" &&
  tests="$tests tests/test_first_access tests/test_kernels"
run_tests check-threads "running the tests of threads with ThreadSanitizer" \
  TESTS="$tests" check_PROGRAMS="$tests" ||
  die "a test failed (all of it is in $work/check-threads.log)"
