#!/bin/sh
# Runs tests on PoCL under valgrind's memcheck:
#
#   sh scripts/valgrind.sh [TEST...]   names as in `make check TESTS=...'; all
#                                      C programs without one, which takes long
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

want_to_build
want_to_check
want_pocl
want valgrind valgrind have valgrind
install_missing
build_tree
pin_driver pocl

# Scripts would only show that a shell is sound.
programs() {
  # The make variables are for make.
  # shellcheck disable=SC2016
  printf 'programs:\n\t@echo $(filter-out %%.sh,$(TESTS))\n' |
    make -s -C "$build" -f Makefile -f - programs
}
if test $# -eq 0; then
  # Names of tests have no space in them.
  # shellcheck disable=SC2046
  set -- $(programs)
fi

memcheck="valgrind --quiet --error-exitcode=99 --leak-check=full"
memcheck="$memcheck --show-leak-kinds=definite --errors-for-leak-kinds=definite"
memcheck="$memcheck --suppressions=$top/tests/valgrind.supp"
# Thousands of random sequences would take an hour.
CLBYTES_TEST_SEQUENCES=${CLBYTES_TEST_SEQUENCES:-500}
export CLBYTES_TEST_SEQUENCES
# A test's own time limit is for a bare processor.
CK_TIMEOUT_MULTIPLIER=30
export CK_TIMEOUT_MULTIPLIER
run_tests valgrind "running tests under valgrind: $*" TESTS="$*" \
  LOG_COMPILER="$build/libtool --mode=execute $memcheck" ||
  die "a test failed (all of it is in $work/valgrind.log)"
