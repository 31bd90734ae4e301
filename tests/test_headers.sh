#!/bin/sh
# The public headers compile alone and in any order, twice, as C99, C11 and
# C++98 and later, without a warning, and a program of two files links nothing
# twice.  Runs in the build directory.

srcdir=${srcdir:-.}
# What configure found.
value() { test -f config.status && echo "@$1@" | ./config.status -q --file=-; }
CC=${CC:-$(value CC)}
CC=${CC:-cc}
CXX=${CXX:-c++}
flags="-I$srcdir/include -DCL_TARGET_OPENCL_VERSION=120"
flags="$flags $(value OPENCL_CFLAGS) $(value CPPFLAGS)"
strict='-Wall -Wextra -Wpedantic -Werror'

tmp=$(mktemp -d "${TMPDIR:-/tmp}/test_headers.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

headers=$(cd "$srcdir/include" && find . -name '*.h' | sed 's,^\./,,')
test -n "$headers" || exit 99

# Each alone, and each order of two: a header that needs another includes it,
# and none breaks what comes after it.
for first in $headers; do
  for second in $headers; do
    name=$(printf '%s' "$first-$second" | tr -c 'a-z0-9' _)
    {
      echo "#include <$first>"
      echo "#include <$second>"
      echo "clb_status of_$name(void);"
      echo "clb_status of_$name(void) { return CLB_OK; }"
    } >"$tmp/$name.c"
    cp "$tmp/$name.c" "$tmp/$name.cc"
  done
done

failures=0

# compile COMPILER STANDARD FILE...
compile() {
  compiler=$1 standard=$2
  shift 2
  for file; do
    # shellcheck disable=SC2086
    if ! $compiler -std="$standard" $strict $flags -fsyntax-only "$file" \
      >"$tmp/out" 2>&1
    then
      cat "$tmp/out"
      echo "FAIL: $compiler -std=$standard:" $(sed -n 's/^#include //p' "$file")
      failures=$((failures + 1))
    fi
  done
}

# A compiler that does not know these options at all is not asked further.
usable() {
  echo 'int nothing;' >"$tmp/probe.$3"
  # shellcheck disable=SC2086
  $1 -std="$2" $strict -fsyntax-only "$tmp/probe.$3" >/dev/null 2>&1
}

checked=
for standard in c99 c11; do
  usable "$CC" $standard c || continue
  compile "$CC -Wstrict-prototypes" $standard "$tmp"/*.c
  checked="$checked $standard"
done
for standard in c++98 c++11 c++17; do
  usable "$CXX" $standard cc || continue
  compile "$CXX" $standard "$tmp"/*.cc
  checked="$checked $standard"
done

if test "$failures" -gt 0; then
  echo "$failures failed"
  exit 1
fi
if test -z "$checked"; then
  echo "SKIP: $CC takes no -std=c99 $strict"
  exit 77
fi
echo "compiled as$checked"
