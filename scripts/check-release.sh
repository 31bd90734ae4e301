#!/bin/sh
# Makes the release's tarball by `make distcheck', and builds it as on a machine
# without autotools:
#
#   sh scripts/check-release.sh
#
# They are hidden by commands of the same names that fail and leave a note.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

root=$build/check-release

make_tarball() {
  rm -rf "$root" "$build"/clbytes-*.tar.xz && mkdir -p "$root/hidden" &&
    CLBYTES_TEST_REQUIRE=1 make -C "$build" distcheck VERBOSE=1
}

hide_autotools() {
  for tool in autoconf autoheader autom4te automake aclocal autoreconf \
    libtoolize autopoint; do
    printf '#!/bin/sh\necho %s >>"%s/called"\nexit 1\n' "$tool" "$root" \
      >"$root/hidden/$tool"
    chmod +x "$root/hidden/$tool"
    # Names with a version too, as in aclocal-1.16.
    for versioned in /usr/bin/"$tool"-[0-9]*; do
      test ! -e "$versioned" ||
        cp "$root/hidden/$tool" "$root/hidden/${versioned##*/}"
    done
  done
}

build_tarball() {
  cd "$root" && tar -xJf "$1" && cd clbytes-*/ && mkdir tree && cd tree &&
    ../configure --prefix="$root/prefix" && make -j "$(processors)" &&
    make install
}

want_to_build
want_to_check
want_pocl
want xz-utils xz have xz
install_missing
build_tree
pin_driver pocl
step distcheck "make distcheck" make_tarball
tarball=$(find "$build" -maxdepth 1 -name 'clbytes-*.tar.xz')
test -f "$tarball" || die "not one tarball in $build: $tarball"
hide_autotools
PATH=$root/hidden:$PATH
export PATH
step build-tarball "building $tarball without autotools" \
  build_tarball "$tarball"
test ! -e "$root/called" || die "autotools were called: $(cat "$root/called")"
test -x "$root/prefix/bin/clbytes" || die "the command is not installed"
"$root/prefix/bin/clbytes" --version
