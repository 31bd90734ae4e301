#!/bin/sh
# Looks over the shell scripts:
#
#   sh scripts/check-scripts.sh
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

want shellcheck ShellCheck have shellcheck
install_missing
cd "$top"
say "looking over the scripts"
shellcheck -x bootstrap .ci/run scripts/*.sh tests/test_heat.sh
say "looking over the tests, for errors alone"
shellcheck -S error tests/*.sh
