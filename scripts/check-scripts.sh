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
set -- bootstrap .ci/run scripts/*.sh
for script in tests/*.sh; do
  test ! -e "$script" || set -- "$@" "$script"
done
say "looking over $# scripts"
shellcheck -x "$@"
