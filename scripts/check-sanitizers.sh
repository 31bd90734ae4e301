#!/bin/sh
# Runs the tests on PoCL with AddressSanitizer, LeakSanitizer and
# UndefinedBehaviorSanitizer, in a build of its own:
#
#   sh scripts/check-sanitizers.sh
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

build=$top/build-sanitizers
work=$build/quickstart
sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=undefined"

want_to_build
want_to_check
want_pocl
install_missing
CFLAGS="-O1 -g -fno-omit-frame-pointer $sanitizers"
LDFLAGS=$sanitizers
export CFLAGS LDFLAGS
build_tree
pin_driver pocl

# What drivers keep for good is not ours; what of ours they keep for us, the
# fault layer counts.
# Kernels of PoCL are libraries that come and go; the leak checker fell over the
# thread-local memory of one that had gone.
ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
ASAN_OPTIONS=$ASAN_OPTIONS:intercept_tls_get_addr=0
LSAN_OPTIONS=suppressions=$top/tests/lsan.supp:print_suppressions=0
UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS
run_tests check-sanitizers "running the tests with sanitizers" ||
  die "a test failed (all of it is in $work/check-sanitizers.log)"
