#!/bin/sh
# The small examples, each of which checks its own results: they run, they say
# so, and they name a platform that is not there.  heat has a test of its own.

examples=${top_builddir-.}/examples
platform=${CLBYTES_TEST_PLATFORM-Portable Computing Language}
failures=0

# The examples that take a part of a platform's name.
names="one_row sub_buffer overlap"

fail() {
  printf 'FAIL: %s\n' "$*"
  failures=$((failures + 1))
}

out=$(mktemp "${TMPDIR:-/tmp}/test_examples.XXXXXX") || exit 99
trap 'rm -f "$out"' EXIT
trap 'exit 99' HUP INT TERM

# says EXAMPLE PATTERN: the output that EXAMPLE left has a line like that.
says() {
  grep -q "$2" "$out" || fail "$1 does not say $2"
}

# A failure there would be that of each example.
"$examples/one_row" "$platform" >"$out" 2>&1
if test $? -eq 3 && test "${CLBYTES_TEST_REQUIRE-0}" != 1; then
  echo "skip: no platform called $platform"
  exit 77
fi

for name in $names; do
  case $name-$platform in
  overlap-*Oclgrind*)
    echo "skip: overlap: two threads in OpenCL crash this driver"
    continue
    ;;
  esac
  echo "$name:"
  "$examples/$name" "$platform" >"$out" 2>&1
  status=$?
  cat "$out"
  test "$status" -eq 0 || fail "$name: exit status $status"
  case $name in
  one_row)
    says "$name" '^row 700 by slice: \([0-9]*\) bytes, of which \1 crossed'
    says "$name" '^row 41 by view: \([0-9]*\) bytes, of which \1 crossed' ;;
  sub_buffer)
    says "$name" '^layer 0, .* a sub-buffer, first element 0$'
    says "$name" '^layer 2, .* the whole buffer, first element [1-9]' ;;
  overlap)
    says "$name" '^one after the other .* ms, .* right$'
    says "$name" '^overlapped .* ms, .* right$' ;;
  esac
  "$examples/$name" "no such platform" >"$out" 2>&1
  status=$?
  test "$status" -eq 3 || fail "$name of no platform: exit status $status"
done

# It takes what it finds first, which is the platform asked for only where the
# caller has pinned the driver.
if test -n "${OCL_ICD_VENDORS-}"; then
  "$examples/read_field" >"$out" 2>&1 || fail "read_field"
  cat "$out"
fi

test "$failures" -eq 0
