#!/bin/sh
# All that a machine with a real GPU can tell, by one command, from a checkout
# or an unpacked release:
#
#   sh scripts/check-gpu.sh PLATFORM [DIRECTORY]
#
# PLATFORM is a part of the platform's name, such as NVIDIA; DIRECTORY is on the
# disk to be measured (build-gpu without).  Builds in build-gpu, runs the tests,
# where a missing device is a failure, then the benchmarks, then copies a model
# of 4 GiB through the device.  Ends with a block for doc/performance.md, which
# is in build-gpu/performance.md too; the status is 0 if all went well.
#
# Installs nothing and needs no network and no root.  OCL_ICD_VENDORS, where it
# is set, names the driver.  All stops after CLBYTES_GPU_SECONDS (460).  For a
# trial on a slow device: CLBYTES_GPU_BYTES (256M) of the largest layouts,
# CLBYTES_GPU_SAVE (32M) of each tensor saved, CLBYTES_GPU_MODEL (4096) MiB.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$top/scripts/common.sh"

build=$top/build-gpu
work=$build/quickstart
block=$build/performance.md
bytes=${CLBYTES_GPU_BYTES-256M}
save_bytes=${CLBYTES_GPU_SAVE-32M}
model_mib=${CLBYTES_GPU_MODEL-4096}
total=${CLBYTES_GPU_SECONDS-460}
most_for_tests=$((total * 11 / 20))
most_for_layouts=$((total / 4))

case $# in
1) directory=$build ;;
2) directory=$2 ;;
*) die "usage: sh scripts/check-gpu.sh PLATFORM [DIRECTORY]" ;;
esac
platform=$1
CLBYTES_TEST_PLATFORM=$platform
CLBYTES_TEST_REQUIRE=1
export CLBYTES_TEST_PLATFORM CLBYTES_TEST_REQUIRE

seconds() {
  date +%s
}

start=$(seconds)
deadline=$((start + total))
failed=

# limited MOST COMMAND...: ended after MOST seconds, or at the deadline.
limited() {
  limit=$((deadline - $(seconds)))
  test "$limit" -ge 1 || limit=1
  test "$limit" -le "$1" || limit=$1
  shift
  limited_status=0
  timeout -k 5 "$limit" "$@" </dev/null || limited_status=$?
  test "$limited_status" -ne 124 || say "out of time after $limit s: $*"
  return "$limited_status"
}

# failure TEXT: goes on, and fails in the end.
failure() {
  say "FAILED: $*"
  failed="$failed $*;"
}

note() {
  printf '%s\n' "$@" >>"$block"
}

# --- The device ---------------------------------------------------------------

# What the command says of the platform alone.
show_platform() {
  awk -v want="$platform" '
    /^platform: / { shown = index($0, want) }
    shown { print }' "$work/devices"
}

first_device() {
  show_platform | awk '/^  device [0-9]+:/ { print $2 + 0; exit }'
}

processor() {
  sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1
}

memory_gib() {
  awk '/^MemTotal:/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo 2>/dev/null
}

begin_block() {
  : >"$block"
  note "### $(date -u +%Y-%m-%d), $platform" "" \
    "Made by \`sh scripts/check-gpu.sh \"$platform\"\` on a machine with" \
    "$(processors) processors ($(processor)), $(memory_gib) GiB, $(uname -s)." \
    "" '```'
  show_platform >>"$block"
  note '```'
}

# --- Tests --------------------------------------------------------------------

# The totals, which tests did not pass, and what their logs say of it.
report_tests() {
  sed -n '/^# TOTAL:/,/^# ERROR:/p' "$run_log" | sort -u
  sed -n 's/^\(FAIL\|ERROR\|XPASS\|SKIP\): \([^ ]*\)$/\1 \2/p' "$run_log" |
    sort -u |
    while read -r result test; do
      printf '%s: %s\n' "$result" "$test"
      if test "$result" = SKIP; then
        # The last line but one says why.
        tail -n 2 "$build/$test.log" | head -n 1
      else
        grep -E ':[FE]:|^FAIL' "$build/$test.log" || tail -n 5 "$build/$test.log"
      fi | sed 's/^/  /'
    done
}

run_gpu_tests() {
  run_log=$work/check-gpu.log
  step tests "building the tests" \
    make -C "$build" -j "$(processors)" check TESTS=
  # Some tests take the time: most of a machine is left to them.
  tests_at_once=$(($(processors) / 4))
  test "$tests_at_once" -ge 1 || tests_at_once=1
  test "$tests_at_once" -le 4 || tests_at_once=4
  say "running the tests, $tests_at_once at a time"
  limited "$most_for_tests" make -C "$build" -j "$tests_at_once" check \
    >"$run_log" 2>&1 || failure "tests (all of it is in $run_log)"
  report_tests
  totals=$(print_totals)
  totals=${totals#totals: }
  note "" "Tests: ${totals:-not ended, $(grep -c '^PASS: ' "$run_log") passed}."
}

# --- Benchmarks ---------------------------------------------------------------

# measure MOST NAME COMMAND...: shows what it prints, and keeps it.  A file is
# made in $scratch.
measure() {
  bench_most=$1
  bench_name=$2
  shift 2
  say "$bench_name"
  if (cd "${scratch:-$work}" && limited "$bench_most" "$@") \
    >"$work/bench.out"; then
    note "" "\`$bench_name\`" ""
    # The first line names the device again.
    sed '1,2d' "$work/bench.out" >>"$block"
  else
    failure "$bench_name"
  fi
  cat "$work/bench.out"
}

# run_bench MOST NAME ARGUMENT...
run_bench() {
  bench_most=$1
  bench_program=$2
  shift 2
  measure "$bench_most" "bench/$bench_program${*:+ $*}" \
    "$build/bench/$bench_program" --device "$device" "$@"
}

# measure_layouts: the command, with a plot where gnuplot is there.
measure_layouts() {
  plot=
  if gnuplot --version >/dev/null 2>&1; then
    plot=$build/bench.svg
  fi
  measure $((most_for_layouts + 20)) \
    "clbytes bench --max $bytes --seconds $most_for_layouts" \
    "$build/clbytes" bench --device "$device" --max "$bytes" \
    --seconds "$most_for_layouts" ${plot:+--plot "$plot"}
  test -z "$plot" || say "a plot of it: $plot"
}

# --- A large model ------------------------------------------------------------

scratch=
clean_up() {
  test -z "$scratch" || rm -rf "$scratch"
  scratch=
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# Room for a model, its copy, and a little.
has_room() {
  room=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
  test "${room:-0}" -ge $((2 * model_mib * 1024 + 65536))
}

copy_model() {
  limited 60 "$build/bench/make_model" "$scratch/model" "${model_mib}M" &&
    limited 60 sync "$scratch/model" &&
    limited 120 "$build/clbytes" copy --device "$device" --quiet "$@" \
      "$scratch/model" "$scratch/copy" >"$work/copy.out" &&
    limited 60 "$build/clbytes" verify --quiet "$scratch/model" \
      "$scratch/copy" >>"$work/copy.out"
}

# measure_directory WORDS DIRECTORY SAVED COPIED: SAVED and COPIED are an option
# each, or nothing.
measure_directory() {
  if ! has_room "$2"; then
    say "$2 has no room for two models of $model_mib MiB: left out"
    return
  fi
  scratch=$(mktemp -d "$2/clbytes-gpu.XXXXXX") || die "cannot write to $2"
  note "" "To $1:"
  run_bench 100 save --bytes "$save_bytes" --rounds 3 ${3:+"$3"} \
    saved
  say "copying a model of $model_mib MiB to $1"
  : >"$work/copy.out"
  if copy_model ${4:+"$4"}; then
    note "" "\`clbytes copy${4:+ $4}\` of $model_mib MiB, then \`verify\`:" "" \
      '```'
    cat "$work/copy.out" >>"$block"
    note '```'
  else
    failure "a copy to $1"
  fi
  cat "$work/copy.out"
  clean_up
}

# --- All of it ----------------------------------------------------------------

mkdir -p "$work" || die "cannot write to $build"
test -d "$directory" || die "$directory: no such folder"
build_tree
step bench "building the benchmarks" \
  make -C "$build" -j "$(processors)" bench
limited 60 "$build/clbytes" devices >"$work/devices" ||
  die "the devices cannot be listed"
cat "$work/devices"
device=$(first_device)
test -n "$device" || die "no device of a platform that is called $platform"
begin_block
run_gpu_tests
run_bench 30 handles
measure_layouts
measure_directory "the disk" "$directory" --strided --durable
test ! -d /dev/shm || measure_directory "/dev/shm" /dev/shm "" ""
say "for doc/performance.md (it is $block):"
cat "$block"
say "$(($(seconds) - start)) seconds"
test -z "$failed" || die "failed:$failed see above"
