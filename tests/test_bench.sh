#!/bin/sh
# The benchmarks run to their end on small inputs, check what they move, and
# print a figure for each thing that they measure.

bench=${top_builddir-.}/bench
platform=${CLBYTES_TEST_PLATFORM-Portable Computing Language}
dir=${TMPDIR-/tmp}/test_bench.$$
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

mkdir -p "$dir" || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM

# run PROGRAM ARGUMENT...: its output is in $dir/out.
run() {
  program=$1
  shift
  "$bench/$program" "$@" >"$dir/out" 2>"$dir/err" ||
    fail "$program $*: $(cat "$dir/err")"
}

# rows COUNT WHAT: the last run printed so many rows that begin with WHAT and
# have a figure.
rows() {
  count=$(grep -c "^| $2.*| [0-9]" "$dir/out")
  test "$count" -eq "$1" || fail "$count rows of '$2', not $1"
}

run make_model --tensor 1000 "$dir/model" 2500
size=$(wc -c <"$dir/model")
test "$size" -gt 2500 || fail "a model of $size bytes"
"$bench/make_model" "$dir/model" 0 2>"$dir/err" && fail "a size of 0 is taken"

run save --help
grep -q -e --rounds "$dir/out" || fail "--help says nothing"

if ! "$bench/handles" --device "$platform" --count 1 >"$dir/out" 2>&1; then
  cat "$dir/out"
  test "${CLBYTES_TEST_REQUIRE-0}" = 1 || test "$failures" -gt 0 || exit 77
  exit 1
fi

run handles --device "$platform" --count 1000
rows 1 1000
rows 2 handle
rows 1 view

run save --device "$platform" --count 4 --bytes 64K --rounds 2 --strided \
  "$dir/saved"
rows 1 "not synced"
rows 1 "durable |"
# Where the file system takes it.
if dd if=/dev/zero of="$dir/direct" bs=4096 count=1 oflag=direct 2>/dev/null
then
  rows 1 "durable, against O_DIRECT"
else
  rows 0 "durable, against O_DIRECT"
fi
test ! -e "$dir/saved" || fail "the saved file is left behind"

test "$failures" -eq 0
