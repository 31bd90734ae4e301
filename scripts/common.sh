# Shell functions that the scripts share: what is needed and how to install it,
# building, pinning a driver.  Sourced, with $top set to the source's root;
# writes below $top alone.
# shellcheck shell=sh

build=${top:?}/build
work=$build/quickstart # logs, vendor folders, checkpoints, copies
# For nothing but this run: a home may be read-only, or there may be none.
: "${POCL_CACHE_DIR:=$work/pocl-cache}"
: "${MESA_SHADER_CACHE_DIR:=$work/mesa-cache}"
export POCL_CACHE_DIR MESA_SHADER_CACHE_DIR

say() {
  printf '==> %s\n' "$*"
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# step NAME TEXT COMMAND...: says TEXT and runs the command, with its output in
# a log that is shown if it fails.
step() {
  step_log=$work/$1.log
  say "$2"
  shift 2
  mkdir -p "$work" || die "cannot write to $build"
  if ! "$@" >"$step_log" 2>&1 </dev/null; then
    tail -n 300 "$step_log" >&2
    die "failed: $* (all of it is in $step_log)"
  fi
}

# --- What is needed -----------------------------------------------------------

missing_debian=
missing_fedora=

# want DEBIAN FEDORA COMMAND...: the package is missing if the command fails.
want() {
  want_debian=$1
  want_fedora=$2
  shift 2
  if ! "$@" >/dev/null 2>&1; then
    missing_debian="$missing_debian $want_debian"
    missing_fedora="$missing_fedora $want_fedora"
  fi
}

have() {
  command -v "$1"
}

have_header() {
  printf '#include <%s>\n' "$1" | "${CC:-gcc}" -E -
}

# The loader's list of drivers has one whose library's name has this part.
have_driver() {
  grep -i -s "$1" /etc/OpenCL/vendors/*.icd
}

have_autoconf_archive() {
  test -f "$(aclocal --print-ac-dir)/ax_pthread.m4"
}

want_to_build() {
  test -n "${CC-}" || want gcc gcc have gcc
  want libc6-dev glibc-devel have_header stdio.h
  want make make have make
  want pkg-config pkgconf-pkg-config have pkg-config
  want ocl-icd-opencl-dev 'pkgconfig(OpenCL)' \
    pkg-config --exists 'OpenCL >= 1.2'
  want opencl-headers opencl-headers have_header CL/cl_layer.h
  want libyajl-dev 'pkgconfig(yajl)' pkg-config --exists 'yajl >= 2.0'
  want libxxhash-dev 'pkgconfig(libxxhash)' \
    pkg-config --exists 'libxxhash >= 0.8'
  # A release's tarball has ./configure already.
  if ! test -f "$top/configure" || ! test -f "$top/Makefile.in"; then
    want autoconf autoconf have autoconf
    want automake automake have automake
    want libtool libtool have libtoolize
    want autoconf-archive autoconf-archive have_autoconf_archive
  fi
}

want_pocl() {
  want pocl-opencl-icd pocl have_driver pocl
}

want_to_check() {
  want check 'pkgconfig(check)' pkg-config --exists 'check >= 0.11'
  want g++ gcc-c++ have c++
  want mandoc mandoc have mandoc
  want python3 python3 have python3
}

as_root() {
  if test "$(id -u)" -eq 0; then
    "$@"
  elif have sudo >/dev/null; then
    sudo "$@"
  else
    echo "neither root nor sudo: run this as root: $*" >&2
    return 1
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y --no-install-recommends install "$@"
}

# Installs what the want functions found missing, if anything.
install_missing() {
  if test -z "$missing_debian"; then
    say "nothing to install"
    return
  fi
  # Package names are words.
  # shellcheck disable=SC2086
  if have apt-get >/dev/null; then
    step install "installing$missing_debian" apt_install $missing_debian
  elif have dnf >/dev/null; then
    step install "installing$missing_fedora" \
      as_root dnf -y --setopt=install_weak_deps=False install $missing_fedora
  else
    die "no apt-get and no dnf here: install what Debian calls" \
      "$missing_debian, and run this again"
  fi
  missing_debian=
  missing_fedora=
  # What configure found may be different now.
  rm -f "$build/config.status"
}

# --- Building -----------------------------------------------------------------

# Builds in $build, with the CFLAGS and LDFLAGS of the environment the first
# time; make notices by itself what has changed since.
build_tree() {
  if ! test -f "$top/configure" || ! test -f "$top/Makefile.in"; then
    step bootstrap "making ./configure" sh "$top/bootstrap"
  fi
  if ! test -f "$build/config.status"; then
    step configure "configuring in $build" configure_tree
  fi
  step make "building" make -C "$build" -j "$(processors)"
}

# From the build folder and by a relative name: configure allows no space in
# the name of the source's folder.
configure_tree() (
  mkdir -p "$build" && cd "$build" && ../configure
)

processors() {
  getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1
}

# --- Drivers ------------------------------------------------------------------

# pin_driver NAME: until the next one, OpenCL has this driver alone: pocl,
# oclgrind or rusticl.  Sets $platform to a part of its platform's name, and
# the same for tests.
pin_driver() {
  pin_icd=
  case $1 in
  pocl)
    platform="Portable Computing Language"
    ;;
  oclgrind)
    platform=Oclgrind
    for pin_library in /usr/lib/oclgrind /usr/lib/*/oclgrind /usr/lib64/oclgrind
    do
      pin_library=$pin_library/liboclgrind-rt-icd.so
      test -f "$pin_library" && pin_icd=$pin_library
    done
    ;;
  rusticl)
    platform=rusticl
    RUSTICL_ENABLE=llvmpipe
    export RUSTICL_ENABLE
    ;;
  *)
    die "$1: no driver that is known here"
    ;;
  esac
  if test -z "$pin_icd"; then
    pin_icd=$(grep -h -i -s "$1" /etc/OpenCL/vendors/*.icd | head -n 1)
    test -n "$pin_icd" || die "$1: not installed"
  fi
  OCL_ICD_VENDORS=$work/vendors-$1
  CLBYTES_TEST_PLATFORM=$platform
  export OCL_ICD_VENDORS CLBYTES_TEST_PLATFORM
  mkdir -p "$OCL_ICD_VENDORS" || die "cannot write to $build"
  printf '%s\n' "$pin_icd" >"$OCL_ICD_VENDORS/$1.icd"
}

# --- Tests --------------------------------------------------------------------

# run_tests NAME TEXT [MAKE-ARGUMENT...]: all tests, one at a time, for some of
# them take the time; a missing driver is a failure.  The totals are the last
# line.
run_tests() {
  run_log=$work/$1.log
  say "$2"
  shift 2
  mkdir -p "$work" || die "cannot write to $build"
  run_status=0
  make -C "$build" -j "$(processors)" check TESTS= "$@" \
    >"$run_log" 2>&1 </dev/null &&
    CLBYTES_TEST_REQUIRE=1 make -C "$build" check VERBOSE=1 "$@" \
      >>"$run_log" 2>&1 </dev/null || run_status=1
  if test "$run_status" -ne 0; then
    tail -n 300 "$run_log" >&2
  fi
  print_totals
  return "$run_status"
}

# One line of the last totals in $run_log; automake shows them twice if a test
# failed.
print_totals() {
  awk '/^# [A-Z]+: +[0-9]+$/ { total[$2] = $3; seen = 1 }
    END {
      if (seen)
        printf "totals: %d passed, %d failed, %d skipped\n",
          total["PASS:"] + total["XFAIL:"],
          total["FAIL:"] + total["XPASS:"] + total["ERROR:"], total["SKIP:"]
    }' "$run_log"
}
