# What the tests of the command share; sourced, with $command, $platform, $work.
# shellcheck shell=sh disable=SC2034

LC_ALL=C
export LC_ALL
command=${CLBYTES_TEST_COMMAND:-./clbytes}
platform=${CLBYTES_TEST_PLATFORM:-Portable Computing Language}
if test -z "${OCL_ICD_VENDORS-}${CLBYTES_TEST_PLATFORM-}" &&
  test -e /etc/OpenCL/vendors/pocl.icd; then
  OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
  export OCL_ICD_VENDORS
fi
if ! test -x "$command"; then
  echo "there is no $command"
  exit 99
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/test_command.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
checks=0
failures=0
python=
if python3 -c 'import json' 2>/dev/null; then
  python=python3
fi

fail() {
  failures=$((failures + 1))
  printf 'FAIL: %s\n' "$*"
  sed 's/^/  out: /' "$work/out" | head -20
  sed 's/^/  err: /' "$work/err" | head -20
}

# run CODE WHAT ARGUMENT...: the command must end with CODE.
run() {
  expected=$1
  what=$2
  shift 2
  checks=$((checks + 1))
  "$command" "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  test $code -eq "$expected" || fail "$what: exit $code, not $expected"
}

# says FILE TEXT: the file out or err of the last run has TEXT.
says() {
  checks=$((checks + 1))
  grep -F -q -e "$2" "$work/$1" || fail "$what: std$1 lacks '$2'"
}

silent() {
  checks=$((checks + 1))
  test -s "$work/$1" && fail "$what: std$1 is not empty"
}
