#!/bin/sh
# The shared library exports nothing but clb_ names, each in a version of
# lib/clbytes.map; what is between the library's own files, clb__, is not among
# them.  Runs in the build directory.

test -f libclbytes.la || {
  echo "no libclbytes.la here"
  exit 99
}
dlname=$(sed -n "s/^dlname='\(.*\)'/\1/p" libclbytes.la)
test -n "$dlname" || {
  echo "SKIP: the library is not shared"
  exit 77
}
symbols=$(nm -D --defined-only ".libs/$dlname" 2>/dev/null) || {
  echo "SKIP: nm cannot read .libs/$dlname"
  exit 77
}

# Where the linker has no version scripts, libtool's list of all symbols would
# have the internal ones too: there is nothing to hold then.
printf '%s\n' "$symbols" | grep -q ' A CLBYTES_' || {
  echo "SKIP: .libs/$dlname was linked without versions"
  exit 77
}

status=0
strangers=$(printf '%s\n' "$symbols" | awk '$2 != "A" { print $3 }' |
  grep -v '^clb_[a-z][a-z0-9_]*\(@@*CLBYTES_[0-9.]*\)\{0,1\}$')
if test -n "$strangers"; then
  echo "FAIL: exported, and no public name with a version:" $strangers
  status=1
fi
printf '%s\n' "$symbols" | grep -q ' clb_version' || {
  echo "FAIL: clb_version is not exported"
  status=1
}
exit $status
