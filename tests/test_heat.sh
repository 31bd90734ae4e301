#!/bin/sh
# The heat example: a checkpoint saved while stepping is that of a run that
# stops at its step, and a run that starts from one ends as one that never
# stopped, bit for bit.

heat=${top_builddir-.}/examples/heat
platform=${CLBYTES_TEST_PLATFORM-Portable Computing Language}
dir=${TMPDIR-/tmp}/test_heat.$$
failures=0

# Rows that fill their pitch, that need padding, and a single column; the
# steps between checkpoints are few, so that the device is ahead of the saver.
sizes="62x40 300x201 1x129 700x500"

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

run() {
  "$heat" --device="$platform" --every=6 "$@" || fail "heat $*"
}

same() {
  cmp "$1" "$2" || fail "$1 is not $2"
}

differ() {
  if cmp -s "$1" "$2"; then
    fail "$1 is $2"
  fi
}

case $platform in
*Oclgrind*)
  echo "skip: two threads in OpenCL crash this driver"
  exit 77
  ;;
esac

mkdir "$dir" || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM

"$heat" --device="$platform" --width=3 --height=3 --steps=1 \
  --output="$dir/probe"
status=$?
if test "$status" -eq 3 && test "${CLBYTES_TEST_REQUIRE-0}" != 1; then
  echo "skip: no platform called $platform"
  exit 77
fi
test "$status" -eq 0 || fail "heat --steps=1: exit status $status"

for size in $sizes; do
  width=${size%x*}
  height=${size#*x}
  at=$dir/$size
  run --width="$width" --height="$height" --steps=24 --output="$at-whole"
  run --width="$width" --height="$height" --steps=12 --output="$at-half"
  run --restart="$at-half-000012.safetensors" --steps=24 --output="$at-again"
  same "$at-whole-000006.safetensors" "$at-half-000006.safetensors"
  same "$at-whole-000012.safetensors" "$at-half-000012.safetensors"
  same "$at-whole-000018.safetensors" "$at-again-000018.safetensors"
  same "$at-whole-000024.safetensors" "$at-again-000024.safetensors"
  differ "$at-whole-000012.safetensors" "$at-whole-000024.safetensors"
done

# What a file that is no checkpoint, or of another time, is told.
"$heat" --device="$platform" --restart="$0" --output="$dir/none" &&
  fail "started from a shell script"
"$heat" --device="$platform" --restart="$dir/62x40-whole-000024.safetensors" \
  --steps=12 --output="$dir/none" && fail "went back in time"
"$heat" --device="$platform" --width=8 --height=8 --steps=2 --every=1 \
  --output="$dir/no-such-folder/heat" && fail "saved into no folder"

# What is wrong with a command line is said before anything is done.
for wrong in --width=0 --height=1x --steps=-1 --every= --output --nonsense \
  stray "--restart=$dir/probe-000001.safetensors --width=3"; do
  # Two options of one line are two words.
  # shellcheck disable=SC2086
  "$heat" --device="$platform" --output="$dir/none" $wrong >"$dir/out" 2>&1
  status=$?
  test "$status" -eq 2 || fail "heat $wrong: exit status $status"
  grep -q '^Usage: heat' "$dir/out" || fail "heat $wrong: no usage"
done
"$heat" --device="no such platform" --output="$dir/none"
status=$?
test "$status" -eq 3 || fail "heat --device=nonsense: exit status $status"
test -z "$(find "$dir" -name 'none*')" || fail "a failed run left a checkpoint"

test "$failures" -eq 0
