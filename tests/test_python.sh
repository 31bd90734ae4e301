#!/bin/sh
# Compares saves and opens with the format's own Python package.
#
# Environment: PYTHON, the interpreter; CLBYTES_TEST_REQUIRE_PYTHON=1, a missing
# package is a failure, not a skip; CLBYTES_TEST_SEED.
set -eu

python=${PYTHON:-python3}
if ! "$python" -c 'import safetensors, numpy; safetensors.TensorSpec' \
  2>/dev/null; then
  echo "$python has no packages safetensors (0.8) and numpy"
  test "${CLBYTES_TEST_REQUIRE_PYTHON:-0}" = 1 && exit 1
  exit 77
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/clbytes-python-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# No driver: the program says so with 77, or 1 where one is required.
status=0
./tests/save_samples --save "$folder/probe" </dev/null || status=$?
test "$status" -eq 0 || exit "$status"

"$python" "${srcdir:-.}/tests/safetensors_oracle.py" ./tests/save_samples \
  "$folder" ${CLBYTES_TEST_SEED:+"$CLBYTES_TEST_SEED"}
