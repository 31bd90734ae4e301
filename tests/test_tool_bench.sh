#!/bin/sh
# clbytes bench from outside: what it refuses, what it prints, as a table, as
# JSON and as a plot, and that a signal or a time limit ends it.

# shellcheck source=tests/command.sh
. "${srcdir:-.}/tests/command.sh"

# bench CODE WHAT ARGUMENT...: as run, of clbytes bench.
bench() {
  code_of_bench=$1
  name_of_bench=$2
  shift 2
  run "$code_of_bench" "$name_of_bench" bench "$@"
}

# rows COUNT PATTERN: so many lines of the table fit.
rows() {
  checks=$((checks + 1))
  count=$(grep -c "$2" "$work/out")
  test "$count" -eq "$1" || fail "$what: $count lines of '$2', not $1"
}

# json EXPRESSION: true of the JSON on stdout, as d.
json() {
  checks=$((checks + 1))
  test -n "$python" || return 0
  "$python" -c "import json, sys
d = json.load(open(sys.argv[1]))
r = d['rows']
sys.exit(not ($1))" "$work/out" 2>>"$work/err" || fail "$what: not $1"
}

finish() {
  echo "test_tool_bench: $checks checks, $failures failed"
  test $failures -eq 0 || exit 1
  exit "$1"
}

# --- Without a device ---------------------------------------------------------

bench 0 'help' --help
for option in max sizes layouts plans rounds seconds linear plot json; do
  says out "--$option"
done
bench 2 'an operand' 4K
bench 2 'no such layout' --layouts rows-5
says err "--layouts: there is no layout 'rows-5'"
bench 2 'an empty list' --layouts ''
bench 2 'a layout after none' --layouts contiguous,
bench 2 'no size' --sizes 4K,x
says err "--sizes: 'x'"
bench 2 'a size above --max' --sizes 4K,1M --max 64K
says err "--sizes: '1M' is more than --max"
bench 2 'a size of 0' --max 0
for plans in frobnicate '' rect, ,rect rect,,map rec; do
  bench 2 "plans '$plans'" --plans "$plans"
  says err "--plans: '$plans' is no list of plans"
done
bench 2 'too many rounds' --rounds 5000
says err '--rounds 5000: at most'
bench 3 'a plot of no kind' --plot "$work/plot.jpg"
says err 'ends in neither .svg nor .png'
silent out
PATH_before=$PATH
PATH=$work
bench 3 'a plot without gnuplot' --plot "$work/plot.svg"
PATH=$PATH_before
says err '--plot: there is no gnuplot that runs'
test -e "$work/plot.svg" && fail "$what: there is a file"

# --- With one -----------------------------------------------------------------

"$command" devices >"$work/out" 2>"$work/err"
if ! grep -F -q "$platform" "$work/out"; then
  if test "${CLBYTES_TEST_REQUIRE-0}" = 1; then
    fail "no platform '$platform'"
    finish 1
  fi
  echo "skipped from here on: no platform '$platform'"
  finish 77
fi

layouts='contiguous rows-64 transpose-2 nhwc-nchw axes-reversed step-3 reverse
broadcast-rows broadcast-elements rgb-plane tall-4'
list=$(echo $layouts | tr ' ' ',')
bench 0 'a table' --device "$platform" --sizes 4K,64K --layouts "$list" --rounds 3
silent err
for layout in $layouts; do
  case $layout in
  broadcast*) rows 2 "^| $layout .*| ok " ;;
  *)
    rows 2 "^| $layout .*| ok .*| map\|^| $layout .*| ok .*| [a-z]* [0-9]"
    rows 1 "^| $layout .*| ok$"
    ;;
  esac
done
says out 'read into a fresh result'
says out 'copy_into clb_host_alloc memory'
# Without numpy those alone that a rect can read.
if python3 -c 'import numpy' 2>/dev/null; then
  counted=11
else
  counted=4
fi
says out "Of the largest size of $counted layouts ours is, beside the"
says out 'Pinned memory held by the library: at most '
rows 0 WRONG

bench 0 'JSON' -d "$platform" --sizes 4K,16K --rounds 3 --json --linear \
  --layouts 'contiguous,rows-4,rows-1K*,transpose-?,step-*'
silent err
says out '"data_ok": true'
json 'len(r) == 2 * (1 + 1 + 2 + 4 + 2)'
json 'all(list(row)[:8] == ["layout", "bytes", "ours_gbs", "link_gbs",
  "rect_gbs", "pageable_gbs", "numpy_gbs", "data_ok"] for row in r)'
json 'all(row["data_ok"] is True and row["ours_gbs"] > 0 for row in r)'
json 'all(row["link_gbs"] > 0 and row["pageable_gbs"] > 0 for row in r)'
json 'all((row["rect_gbs"] is None) == (row["layout"] == "contiguous" or
  row["layout"].startswith("transpose")) for row in r)'
json '[row["bytes"] for row in r if row["layout"] == "rows-4"] == [4096, 16384]'
json 'all(row["spread"]["ours"][0] <= row["ours_gbs"] * 1.001 and
  row["ours_gbs"] <= row["spread"]["ours"][1] * 1.001 for row in r)'
json 'all(pair["data_ok"] is True for pair in d["small"] + d["upload"])'
json 'len(d["upload"]) == 10 and len(d["small"]) >= 4'
json '[row["bytes"] for row in d["linear"]["rows"]] ==
  [1024, 2048, 4096, 8192, 16384]'
json "'$platform' in d['platform'] and d['pinned_bytes'] >= 0"

# A python3 without numpy, and none at all, leave its column empty.
mkdir "$work/bin"
cat >"$work/bin/python3" <<'END'
#!/bin/sh
exit 1
END
chmod +x "$work/bin/python3"
PATH=$work/bin:$PATH
bench 0 'no numpy' -d "$platform" --sizes 4K --layouts step-2 --rounds 1 --json
PATH=$PATH_before
json 'r[0]["numpy_gbs"] is None and r[0]["data_ok"] is True'
"$command" devices >"$work/devices" 2>/dev/null
if python3 -c 'import numpy' 2>/dev/null &&
  test "$platform" = 'Portable Computing Language'; then
  bench 0 'numpy' -d "$platform" --sizes 4K,64K --layouts '*' --rounds 1 --json
  json 'all(row["numpy_gbs"] > 0 and row["memcpy_gbs"] > 0 for row in r)'
fi

bench 0 'one plan' -d "$platform" --sizes 4K --layouts rows-64 --rounds 1 \
  --plans rect,read
says out ' rect 64 x 64 of pitch 128'

bench 0 'a second' -d "$platform" --max 1M --seconds 1
says err 'left out for lack of time: '

checks=$((checks + 1))
what='SIGINT'
"$command" bench -d "$platform" --max 16M >"$work/out" 2>"$work/err" &
child=$!
sleep 1
kill -INT $child
wait $child
code=$?
test $code -eq 130 || fail "$what: exit $code"
says err 'clbytes: cancelled'

if gnuplot --version >/dev/null 2>&1; then
  bench 0 'a plot' -d "$platform" --sizes 4K --layouts 'rows-*' --rounds 1 \
    --plot "$work/plot.svg"
  checks=$((checks + 1))
  grep -q '</svg>' "$work/plot.svg" || fail "$what: no SVG"
  bench 0 'another' -d "$platform" --sizes 4K --layouts 'rows-*' --rounds 1 \
    --plot "$work/plot.PNG"
  checks=$((checks + 1))
  test "$(dd if="$work/plot.PNG" bs=1 skip=1 count=3 2>/dev/null)" = PNG ||
    fail "$what: no PNG"
  bench 0 'JSON for a plot' -d "$platform" --sizes 1K,4K --layouts 'rows-?' \
    --rounds 1 --json
  if test -n "$python"; then
    checks=$((checks + 2))
    what='a plot of JSON'
    "$python" "${srcdir:-.}/scripts/plot_bench.py" "$work/out" \
      "$work/json.svg" 2>"$work/err" || fail "$what: it failed"
    grep -o '>rows-[^<]*<' "$work/json.svg" | tr '\n' ' ' >"$work/drawn"
    test "$(cat "$work/drawn")" = '>rows-4, 4.0 KiB< >rows-8, 4.0 KiB< ' ||
      fail "$what: $(cat "$work/drawn")"
  fi
  bench 3 'a plot that cannot be written' -d "$platform" --sizes 4K \
    --layouts 'rows-8' --rounds 1 --plot "$work/missing/plot.svg"
  says err 'No such file or directory'
fi

finish 0
