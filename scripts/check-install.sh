#!/bin/sh
# Installs into a folder below build/, compiles the examples as their first
# comments say and the program of README.md, with pkg-config and nothing of this
# tree, runs the examples on PoCL, and uninstalls:
#
#   sh scripts/check-install.sh
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

install_into() {
  rm -rf "$1" && mkdir -p "$1/tree" && cd "$1/tree" &&
    "$top/configure" --enable-werror --prefix="$1/prefix" &&
    make -j "$(processors)" && make install
}

# The command of the first comment of examples/$1.c, run in an empty folder.
compile_example() {
  command=$(sed -n "s/^ \* *\(cc -o $1 .*\)$/\1/p" "$top/examples/$1.c")
  test -n "$command" || return 1
  echo "$command"
  mkdir -p "$root/outside" && cp "$top/examples/$1.c" "$root/outside" &&
    cd "$root/outside" && CFLAGS='' sh -c "$command"
}

compile_readme() {
  # Back quotes are those of the document.
  # shellcheck disable=SC2016
  command=$(sed -n 's/^.*`\(cc -c save_field.c [^`]*\)`.*$/\1/p' \
    "$top/README.md")
  test -n "$command" || return 1
  echo "$command"
  # shellcheck disable=SC2016
  cd "$root/outside" &&
    sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$top/README.md" >save_field.c &&
    sh -c "$command -Wall -Wextra -Werror" && test -s save_field.o
}

uninstall() {
  make -C "$root/tree" uninstall &&
    test -z "$(find "$root/prefix" ! -type d -print)"
}

want_to_build
want_pocl
install_missing
build_tree
pin_driver pocl

root=$build/check-install
PKG_CONFIG_PATH=$root/prefix/lib/pkgconfig
LD_LIBRARY_PATH=$root/prefix/lib
export PKG_CONFIG_PATH LD_LIBRARY_PATH

step install-tree "installing into $root/prefix" install_into "$root"
step outside-heat "compiling heat.c by pkg-config" compile_example heat
step outside-read "compiling read_field.c by pkg-config" \
  compile_example read_field
for example in one_row overlap sub_buffer; do
  step "outside-$example" "compiling $example.c by pkg-config" \
    compile_example "$example"
done
step outside-readme "compiling the program of README.md" compile_readme
say "running the examples"
(cd "$root/outside" && ./read_field && ./one_row "$platform" &&
  ./overlap "$platform" && ./sub_buffer "$platform" &&
  ./heat --device="$platform" --width=100 --height=70 --steps=20 &&
  "$root/prefix/bin/clbytes" inspect heat-000020.safetensors)
step uninstall "uninstalling: no file may stay" uninstall
