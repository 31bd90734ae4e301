#!/bin/sh
# Runs the tests on other OpenCL drivers:
#
#   sh scripts/check-drivers.sh [NAME...]   pocl, oclgrind, rusticl; the last
#                                           two without a name
#
# Installs what is missing, and builds where scripts/quickstart.sh does.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

test $# -gt 0 || set -- oclgrind rusticl

want_to_build
want_to_check
for name; do
  case $name in
  pocl) want_pocl ;;
  oclgrind) want oclgrind oclgrind have oclgrind ;;
  rusticl) want mesa-opencl-icd mesa-libOpenCL have_driver rusticl ;;
  *) die "$name: no driver that is known here" ;;
  esac
done
install_missing
build_tree

failed=
for name; do
  pin_driver "$name"
  run_tests "check-$name" "running the tests on $name" ||
    failed="$failed $name"
done
test -z "$failed" || die "a test failed on$failed (logs: $work/check-*.log)"
