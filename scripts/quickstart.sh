#!/bin/sh
# From a fresh machine to a program that works:
#
#   sh scripts/quickstart.sh        installs what is missing, builds, runs the
#                                   heat example on PoCL, shows its checkpoint
#   sh scripts/quickstart.sh FILE   that, and copies this .safetensors file
#                                   through the device and verifies the copy
#   sh scripts/quickstart.sh check  installs, builds and runs the tests
#
# Everything but packages stays below build/.  Running it again is harmless,
# and does what is still to be done.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

set_up() {
  want_to_build
  want_pocl
  install_missing
  build_tree
  pin_driver pocl
}

show_heat() {
  say "running the heat example on PoCL"
  "$build/examples/heat" --device="$platform" --width=1000 --height=500 \
    --steps=200 --every=50 --output="$work/heat"
  say "its last checkpoint"
  "$build/clbytes" inspect "$work/heat-000200.safetensors"
}

copy_model() {
  say "copying $1 through the device"
  "$build/clbytes" copy "$1" "$work/copy.safetensors" --device "$platform"
  say "verifying the copy, $work/copy.safetensors"
  "$build/clbytes" verify "$1" "$work/copy.safetensors"
}

if test $# -gt 1; then
  usage >&2
  exit 2
fi

case ${1-} in
-h | --help)
  usage
  ;;
'')
  set_up
  show_heat
  ;;
check)
  want_to_check
  set_up
  run_tests check "running the tests on PoCL" ||
    die "a test failed (all of it is in $work/check.log)"
  say "the tests passed"
  ;;
*)
  test -f "$1" || die "$1: no such file"
  set_up
  show_heat
  copy_model "$1"
  ;;
esac
