#!/bin/sh
# The programs that people copy compile: the example in each public header's
# first comment and those in the manual.  Runs in the build directory.

srcdir=${srcdir:-.}
# What configure found.
value() { test -f config.status && echo "@$1@" | ./config.status -q --file=-; }
CC=${CC:-$(value CC)}
CC=${CC:-cc}
flags="-I$srcdir/include -DCL_TARGET_OPENCL_VERSION=120"
flags="$flags $(value OPENCL_CFLAGS) $(value CPPFLAGS)"
strict='-std=c99 -Wall -Werror'

tmp=$(mktemp -d "${TMPDIR:-/tmp}/test_snippets.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

echo 'int nothing;' >"$tmp/probe.c"
# shellcheck disable=SC2086
$CC $strict -fsyntax-only "$tmp/probe.c" 2>/dev/null || {
  echo "SKIP: $CC takes no $strict"
  exit 77
}
failures=0

# The example of a header: indented by five, after an empty line.
of_header() {
  awk '
    /\*\// { exit }
    {
      match($0, /^ \*? */)
      if ($0 == " *") empty = 1
      else {
        if (RLENGTH == 7 && empty) on = 1
        else if (RLENGTH < 7) on = 0
        empty = 0
      }
    }
    on { print substr($0, 8) }' "$1"
}

# Each literal display in the examples of a page goes to a file of its own.
of_page() {
  sed 's/\\e/\\/g' "$1" | awk -v base="$2" '
    /^\.Sh / { examples = ($0 == ".Sh EXAMPLES") }
    /^\.Bd -literal/ { on = examples; count++; file = base "-" count; next }
    /^\.Ed/ { on = 0; close(file) }
    on { print >file }'
}

prelude='#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <clbytes/safetensors.h>
'

# What a reader of an example has in hand.
parameters='cl_command_queue queue, cl_kernel kernel, cl_mem buffer,
  clb_context *context, clb_bytes *bytes, clb_bytes *field,
  clb_safetensors *opened, const size_t *shape, const void *data,
  void *memory, size_t length, int fd, clb_status status'

# compile NAME SNIPPET...: functions stand at the top, all else in a function.
compile() {
  name=$1
  shift
  {
    printf '%s' "$prelude"
    for snippet; do
      grep -q '^static ' "$snippet" && cat "$snippet"
    done
    for snippet; do
      grep -q '^static ' "$snippet" && continue
      function=example_$(basename "$snippet" | tr -c 'a-z0-9\n' _)
      echo "int $function($parameters);"
      echo "int $function($parameters) {"
      # An example that only declares uses nothing, and may set what it does
      # not look at.
      echo "{"
      cat "$snippet"
      echo "} return 0; }"
    done
  } >"$tmp/snippets.c"
  # shellcheck disable=SC2086
  if ! $CC $strict -Wno-unused-variable -Wno-unused-but-set-variable \
    -Wno-unused-but-set-parameter $flags -fsyntax-only "$tmp/snippets.c" \
    >"$tmp/out" 2>&1
  then
    cat "$tmp/out"
    echo "FAIL: the example of $name"
    failures=$((failures + 1))
  fi
}

count=0
for header in $(find "$srcdir/include" -name '*.h'); do
  of_header "$header" >"$tmp/header"
  if test -s "$tmp/header"; then
    compile "${header##*include/}" "$tmp/header"
    count=$((count + 1))
  else
    echo "FAIL: ${header##*include/} begins with no example"
    failures=$((failures + 1))
  fi
done
for page in "$srcdir"/doc/man/*.3; do
  base=$(basename "$page")
  rm -f "$tmp"/page-*
  of_page "$page" "$tmp/page"
  set -- "$tmp"/page-*
  test -f "$1" || continue
  compile "$base" "$@"
  count=$((count + 1))
done

if test "$failures" -gt 0; then
  echo "$failures failed"
  exit 1
fi
echo "examples of $count files compile"
