#!/bin/sh
# The command from outside: every subcommand, every option, exit codes, what a
# hostile file may do.  What needs no device runs first; without a driver the
# rest is skipped.  Files are made here, byte by byte, by no code of ours.

# shellcheck source=tests/command.sh
. "${srcdir:-.}/tests/command.sh"

lacks() {
  checks=$((checks + 1))
  grep -F -q -e "$2" "$work/$1" && fail "$what: std$1 has '$2'"
}

# Standard error of a failure is the command's own lines.
complains() {
  checks=$((checks + 1))
  grep -q '^clbytes: ' "$work/err" || fail "$what: no 'clbytes: ' on stderr"
}

# The only line of err names the file once, and says what.
once() {
  complains
  checks=$((checks + 1))
  test "$(grep -o -F -e "$1:" "$work/err" | wc -l)" -eq 1 ||
    fail "$what: not once: $1"
}

# tells TEXT FILE: all of err is FILE and TEXT.
tells() {
  checks=$((checks + 1))
  test "$(cat "$work/err")" = "clbytes: $2: $1" ||
    fail "$what: stderr is not '$2: $1'"
}

# json EXPRESSION: true of d, the document in out.  By python3 if it is there.
json() {
  test -n "$python" || return 0
  checks=$((checks + 1))
  "$python" - "$work/out" "$1" 2>/dev/null <<'END' || fail "$what: not so: $1"
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
sys.exit(0 if eval("(" + sys.argv[2] + ")") else 1)
END
}

# make_file PATH HEADER: a safetensors file; its data from stdin.
make_file() {
  header=$2
  while test $((${#header} % 8)) -ne 0; do
    header="$header "
  done
  length=${#header}
  escapes=
  for byte in 1 2 3 4 5 6 7 8; do
    escapes="$escapes\\$(printf '%03o' $((length % 256)))"
    length=$((length / 256))
  done
  {
    printf "$escapes"
    printf '%s' "$header"
    cat
  } >"$1"
}

# --- Files ---------------------------------------------------------------------

good=$work/good.safetensors
make_file "$good" '{"__metadata__":{"format":"pt","by":"hand"},'\
'"matrix":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},'\
'"scalar":{"dtype":"I16","shape":[],"data_offsets":[24,26]},'\
'"empty":{"dtype":"U8","shape":[0,4],"data_offsets":[26,26]},'\
'"odd":{"dtype":"U8","shape":[3],"data_offsets":[26,29]}}' <<'END'
abcdefghijklmnopqrstuvwxyz12
END
start=$(($(wc -c <"$good") - 29))

plain=$work/plain.safetensors
make_file "$plain" '{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' <<'END'
abc
END

# --- Usage ----------------------------------------------------------------------

run 2 'no subcommand'
says err 'usage: clbytes devices'
complains
silent out
run 2 'an unknown subcommand' frobnicate
says err "there is no subcommand 'frobnicate'"
run 2 'an unknown option' inspect --frobnicate "$good"
complains
says err 'usage:'
run 2 'an option of another subcommand' inspect --durable "$good"
says err 'inspect takes no --durable'
says err 'usage: clbytes inspect'
run 2 'verify --device' verify --device 0 "$good" "$good"
run 2 'verify --json' verify --json "$good" "$good"
run 2 'devices --quiet' devices --quiet
run 2 'inspect --staging' inspect --staging 64M "$good"
run 2 'inspect --chunk' inspect --chunk 4M "$good"
run 2 'an operand missing' inspect
says err 'inspect takes FILE'
run 2 'an operand too many' inspect "$good" "$good"
run 2 'copy with one operand' copy "$good"
run 2 'verify with three operands' verify "$good" "$good" "$good"
run 2 'devices with an operand' devices "$good"
run 2 'an option without its argument' copy "$good" out --device
run 2 'a device without a name' copy --device '' "$good" "$work/none"
for size in '' x -1 +1 1.5M 4MiBs 4M4 ' 4M' '4 M' 0x10 0 0G KiB 1E \
  99999999999999999999 18446744073709551616 18446744073709551615K \
  18014398509481984K 16777216T; do
  run 2 "the size '$size'" copy --staging "$size" "$good" "$work/none"
  says err "--staging: '$size' "
  run 2 "the size '$size'" copy --chunk "$size" "$good" "$work/none"
  says err "--chunk: '$size' "
done
run 0 'help' --help
for subcommand in devices inspect copy verify; do
  says out "clbytes $subcommand"
done
for option in device staging chunk durable quiet json help version; do
  says out "--$option"
done
silent err
run 0 'help of a subcommand' verify --help
says out 'usage: clbytes verify [OPTION]... A B'
lacks out '--staging'
run 0 'short help' -h
run 0 'version' --version
says out 'clbytes '
says out 'library '
run 0 'short version' -V

# A size that cannot be is told before any device is looked at.
sizes_of() {
  run 2 "$1 --chunk 100" "$@" --chunk 100
  says err 'clbytes: --chunk 100: at least 4096'
  run 2 "$1 --chunk 4KB" "$@" --chunk 4KB
  says err 'clbytes: --chunk 4000: at least 4096'
  run 2 "$1 --staging 100" "$@" --staging 100
  says err 'clbytes: --staging 100: at least 4096'
  run 2 "$1, a chunk beyond the staging" "$@" --chunk 1M --staging 64K
  says err 'clbytes: --staging 65536: at least 1048576, the chunk'
}
OCL_ICD_VENDORS_before=$OCL_ICD_VENDORS
OCL_ICD_VENDORS=$work/missing
sizes_of devices
sizes_of copy "$good" "$work/none"
OCL_ICD_VENDORS=$OCL_ICD_VENDORS_before

# --- inspect --------------------------------------------------------------------

run 0 'inspect' inspect "$good"
says out 'name    dtype  shape'
checks=$((checks + 1))
grep -q "^matrix  F32    \\[2, 3\\] *24 *$start\$" "$work/out" ||
  fail 'inspect: the line of the matrix'
grep -q "^scalar  I16    \\[\\] *2 *$((start + 24))\$" "$work/out" ||
  fail 'inspect: the line of the scalar'
grep -q "^empty   U8     \\[0, 4\\] *0 *$((start + 26))\$" "$work/out" ||
  fail 'inspect: the line of the empty tensor'
says out 'total: 4 tensors, 29 bytes'
says out 'format: pt'
silent err
run 0 'inspect --json' inspect --json "$good"
says out '"name": "matrix"'
says out "\"offset\": $start,"
json 'd["metadata"] == {"format": "pt", "by": "hand"}'
json 'list(d) == ["metadata", "tensors"]'
json '[list(t) for t in d["tensors"]] ==
  [["name", "dtype", "shape", "offset", "bytes"]] * 4'
json '{t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in d["tensors"]}
  == {"matrix": ("F32", [2, 3], 24), "scalar": ("I16", [], 2),
  "empty": ("U8", [0, 4], 0), "odd": ("U8", [3], 3)}'
json "[t['offset'] - $start for t in d['tensors'] if t['bytes']] == [0, 24, 26]"
run 0 'options behind operands' inspect "$good" --json
says out '"metadata": {'
run 0 'inspect without metadata' inspect "$plain"
says out 'metadata: none'
says out 'total: 1 tensor, 4 bytes'
run 0 'inspect --json without metadata' inspect --json "$plain"
json 'd["metadata"] == {}'
says out '"metadata": {'

make_file "$work/none.safetensors" '{}' </dev/null
run 0 'a file without tensors' inspect "$work/none.safetensors"
says out 'total: 0 tensors, 0 bytes'
run 0 'a file without tensors, --json' inspect --json "$work/none.safetensors"
json 'd == {"metadata": {}, "tensors": []}'

# A name that moves the cursor, one that sets a terminal's title, DEL, C1's CSI,
# and a mark that reverses the text behind it.
hostile=$work/hostile.safetensors
make_file "$hostile" "$(printf '%s\302\233\177%s\342\200\256%s' \
  '{"__metadata__":{"\u001bkey":"line\nend"},"a\u001b]0;title\u0007\n\r' \
  '":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"' \
  'txt":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}')" <<'END'
x
END
run 0 'hostile names' inspect "$hostile"
says out 'a\u001b]0;title\u0007\u000a\u000d\u009b\u007f  '
says out '\u202etxt  '
says out '\u001bkey: line\u000aend'
checks=$((checks + 1))
tr -d '\040-\176\012' <"$work/out" >"$work/rest"
test -s "$work/rest" && fail 'hostile names: control characters in the table'
run 0 'hostile names, --json' inspect --json "$hostile"
json 'sorted(t["name"] for t in d["tensors"]) ==
  ["a\x1b]0;title\x07\n\r\x9b\x7f", "\u202etxt"]'
json 'd["metadata"] == {"\x1bkey": "line\nend"}'
tr -d '\040-\176\012' <"$work/out" >"$work/rest"
test -s "$work/rest" && fail 'hostile names: control characters in the JSON'
make_file "$work/text.safetensors" \
  "$(printf '{"gr\303\266\303\237e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}')" \
  </dev/null
run 0 'a name in UTF-8' inspect "$work/text.safetensors"
says out "$(printf 'gr\303\266\303\237e')"

run 3 'a file that is not there' inspect "$work/missing"
complains
tells 'No such file or directory' "$work/missing"
silent out
run 3 'a folder' inspect "$work"
tells 'not a regular file' "$work"
printf 'short' >"$work/short"
run 3 'a file of five bytes' inspect "$work/short"
once "$work/short"
printf '\010\0\0\0\0\0\0\0not json' >"$work/junk"
run 3 'a header that is not JSON' inspect "$work/junk"
once "$work/junk"

if test -c /dev/full; then
  what='a full disk'
  checks=$((checks + 1))
  "$command" inspect "$good" >/dev/full 2>"$work/err"
  test $? -eq 3 || fail 'inspect to a full disk does not fail'
  says err 'clbytes: cannot write standard output'
  "$command" inspect --json "$good" >/dev/full 2>"$work/err"
  test $? -eq 3 || fail 'inspect --json to a full disk does not fail'
  "$command" --help >/dev/full 2>"$work/err"
  test $? -eq 3 || fail 'help to a full disk does not fail'
fi
what='a closed standard output'
"$command" inspect "$good" >&- 2>"$work/err"
test $? -eq 3 || fail 'inspect to a closed standard output does not fail'
says err 'clbytes: cannot write standard output'
what='a reader that went away'
{
  sleep 1
  "$command" inspect "$good" 2>"$work/err"
  echo $? >"$work/code"
} | :
test "$(cat "$work/code")" -eq 3 || fail 'inspect into a closed pipe'
says err 'clbytes: cannot write standard output'

# --- verify ---------------------------------------------------------------------

cp "$good" "$work/same"
run 0 'verify equal files' verify "$good" "$work/same"
says out 'equal: 4 tensors, 29 bytes'
lacks out 'note:'
# The same tensors in another order, other metadata.
make_file "$work/b" '{"odd":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},'\
'"empty":{"dtype":"U8","shape":[0,4],"data_offsets":[3,3]},'\
'"scalar":{"dtype":"I16","shape":[],"data_offsets":[3,5]},'\
'"matrix":{"dtype":"F32","shape":[2,3],"data_offsets":[5,29]}}' <<'END'
12
yzabcdefghijklmnopqrstuvwx
END
truncate_to=$(($(wc -c <"$work/b") - 1))
dd if="$work/b" of="$work/reordered" bs=1 count=$truncate_to 2>/dev/null
run 0 'verify a file in another order' verify "$good" "$work/reordered"
says out 'note: metadata differs, first in "by"'
run 0 'verify the other way round' verify "$work/reordered" "$good"
says out 'note: metadata differs, first in "by"'

# with OLD NEW: good with its header or data edited, same lengths.
with() {
  sed "s/$1/$2/" "$good" >"$work/edited"
}
with abcdefghij abcdefghXj
run 1 'verify contents' verify "$good" "$work/edited"
says out 'tensor "matrix" differs at byte 8, element 2 [0, 2]: 0x69 against 0x58'
with qrstuvwx qrstuvwY
run 1 'verify the last byte' verify "$good" "$work/edited"
says out 'tensor "matrix" differs at byte 23, element 5 [1, 2]: 0x78 against 0x59'
with 'yz12' 'yZ12'
run 1 'verify a scalar' verify "$good" "$work/edited"
says out 'tensor "scalar" differs at byte 1, element 0: 0x7a against 0x5a'
with '"matrix"' '"madrix"'
run 1 'verify names' verify "$good" "$work/edited"
says out "tensor \"matrix\" is in $good alone"
run 1 'verify a name more' verify "$plain" "$good"
says out "tensor \"t\" is in $plain alone"
run 1 'verify a tensor more in the second file' verify "$work/none.safetensors" \
  "$good"
says out "is in $good alone"
with '"F32"' '"I32"'
run 1 'verify dtypes' verify "$good" "$work/edited"
says out 'tensor "matrix" is F32[2, 3]'
says out 'I32[2, 3]'
with '\[2,3\]' '[3,2]'
run 1 'verify shapes' verify "$good" "$work/edited"
says out 'F32[3, 2]'
with '"pt"' '"tf"'
run 0 'verify metadata' verify "$good" "$work/edited"
says out 'note: metadata differs, first in "format"'
run 3 'verify a file that is not there' verify "$good" "$work/missing"
tells 'No such file or directory' "$work/missing"
run 3 'verify a file that is not there, first' verify "$work/missing" "$good"
tells 'No such file or directory' "$work/missing"
run 3 'verify a file cut short' verify "$good" "$work/short"
complains
run 0 'a short verify shows no progress' verify "$good" "$good"
silent err
run 0 'verify --quiet' verify --quiet "$good" "$good"
silent err
silent out
run 0 'verify -q, other metadata' verify -q "$good" "$work/reordered"
silent err
silent out
run 1 'verify -q, a difference' verify -q "$good" "$plain"
says out 'alone'

# --- A target that cannot be ------------------------------------------------------
# Told before any device is looked at.

OCL_ICD_VENDORS=$work/missing
run 3 'copy of a file that is not there' copy "$work/missing" "$work/none"
tells 'No such file or directory' "$work/missing"
run 3 'copy of junk' copy "$work/junk" "$work/none"
once "$work/junk"
run 3 'copy into a folder that is not there' copy "$good" "$work/missing/out"
tells 'cannot open its directory: No such file or directory' "$work/missing/out"
run 3 'copy into a file' copy "$good" "$plain/out"
once "$plain/out"
run 3 'copy onto a folder' copy "$good" "$work"
tells 'not a regular file' "$work"
run 3 'copy onto a name with a slash' copy "$good" "$work/new/"
once "$work/new/"
run 3 'copy onto nothing' copy "$good" ''
complains
run 3 'copy onto a device' copy "$good" /dev/null
tells 'not a regular file' /dev/null
mkdir "$work/closed"
chmod a-w "$work/closed"
if ! test -w "$work/closed"; then
  run 3 'copy into a closed folder' copy "$good" "$work/closed/out"
  tells 'cannot write in its directory: Permission denied' "$work/closed/out"
fi
if test -d /proc/self && ! test -w /proc/self/fdinfo; then
  run 3 'copy into a file system without files' copy "$good" /proc/self/fdinfo/x
  once /proc/self/fdinfo/x
fi
OCL_ICD_VENDORS=$OCL_ICD_VENDORS_before

# --- With a device --------------------------------------------------------------

finish() {
  echo "test_command: $checks checks, $failures failed"
  test $failures -eq 0 || exit 1
  exit "$1"
}

what='no driver'
OCL_ICD_VENDORS=$work/missing "$command" devices >"$work/out" 2>"$work/err"
test $? -eq 3 || fail 'devices without a driver does not fail'
complains

"$command" devices >"$work/out" 2>"$work/err"
if ! grep -F -q "$platform" "$work/out"; then
  if test "$CLBYTES_TEST_REQUIRE" = 1; then
    fail "no platform '$platform'"
    finish 1
  fi
  echo "skipped from here on: no platform '$platform'"
  finish 77
fi
run 0 'devices' devices
says out '  device 0: '
for text in 'driver ' 'memory ' 'largest allocation ' \
  'sub-buffer alignment ' 'shares host memory ' 'compiler ' 'contiguous ' \
  'padded rows ' 'transposed '; do
  says out "    $text"
done
run 0 'devices --json' devices --json
says out '"devices": ['
json 'all(p["plans"]["contiguous"] and p["plans"]["padded_rows"] and
  p["plans"]["transposed"] for p in d["devices"] if p["error"] is None)'
json '[p["index"] for p in d["devices"]] == list(range(len(d["devices"])))'
json 'd["devices"][0]["sub_buffer_alignment"] >= 1'
run 0 'devices --chunk --staging' devices --chunk 64K --staging 1M
says out ' 4194304 bytes, 64 chunks'

copy=$work/copy.safetensors
run 0 'copy' copy --device "$platform" "$good" "$copy"
for text in "$platform" tensors bytes upload save 'staging peak' 'GB/s' \
  'host memory grown by'; do
  says out "$text"
done
silent err
run 0 'the copy is the same' verify "$good" "$copy"
says out 'equal: 4 tensors, 29 bytes'
lacks out 'note:'
run 0 'the copy has the metadata' inspect --json "$copy"
json 'd["metadata"] == {"format": "pt", "by": "hand"}'
run 0 'copy --quiet' copy -d "$platform" --quiet "$good" "$copy"
silent err
run 0 'copy --json' copy -d "$platform" --json -q "$good" "$copy"
says out '"staging_peak": '
json 'd["tensors"] == 4 and d["bytes"] == 29 and d["upload"]["seconds"] >= 0'
json 'd["save"]["gigabytes_per_second"] >= 0 and "host_memory_grown" in d["save"]'
shards=$work/shards
mkdir "$shards"
run 0 'copy --shard-size' copy -d "$platform" -q --shard-size 16 "$good" \
  "$shards/m.safetensors"
index=$shards/m.safetensors.index.json
run 0 'the set is the same' verify "$good" "$index"
says out 'equal: 4 tensors, 29 bytes'
lacks out 'note:'
run 0 'inspect of a set' inspect "$index"
says out 'total: 4 tensors, 29 bytes'
run 0 'inspect --json of a set' inspect --json "$index"
json 'len(d["tensors"]) == 4 and d["tensors"][0]["offset"] is None'
json 'd["metadata"] == {"format": "pt", "by": "hand"}'
run 0 'copy of a set' copy -d "$platform" -q --shard-size 29 "$index" "$copy"
checks=$((checks + 1))
cmp -s "$good" "$copy" || run 0 'the set as one file' verify "$good" "$copy"
run 2 'copy --shard-size 0' copy --shard-size 0 "$good" "$copy"
says err "--shard-size: '0'"
rm -f "$shards"/m-00002-*
run 3 'a set that lacks a shard' inspect "$index"
says err 'm-00002-of-0000'
rm -rf "$shards"
run 0 'copy --durable' copy -d "$platform" --durable "$good" "$copy"
if strace -o /dev/null true 2>/dev/null; then
  checks=$((checks + 1))
  what='copy --durable'
  strace -f -e trace=fsync,fdatasync -o "$work/trace" "$command" copy -q \
    -d "$platform" --durable "$good" "$copy" >"$work/out" 2>"$work/err"
  grep -q 'sync(' "$work/trace" || fail "$what: nothing is synchronised"
fi
run 0 'copy by index' copy --device 0 "$good" "$copy"
run 0 'copy by default' copy "$good" "$copy"
upper=$(echo "$platform" | tr '[:lower:]' '[:upper:]')
run 0 'copy by a name in capitals' copy --device "$upper" "$good" "$copy"
if test "$platform" = 'Portable Computing Language'; then
  run 0 'copy by the suffix of the platform' copy -d pocl "$good" "$copy"
fi
run 0 'the last copy is the same' verify "$good" "$copy"
run 3 'no such device' copy --device frobnicate "$good" "$work/none"
says err "no device matches 'frobnicate'"
says err '  0  '
run 3 'no such index' copy --device 4711 "$good" "$work/none"
says err 'there is no device 4711'
run 3 'an index beyond numbers' copy -d 99999999999999999999 "$good" "$work/none"
# Two devices of one platform, where the driver can be told to have them.
POCL_DEVICES='basic basic'
export POCL_DEVICES
run 0 'two devices' devices
if grep -q 'device 1: ' "$work/out" && test "$platform" = \
  'Portable Computing Language'; then
  run 3 'a name of two devices' copy --device "$platform" "$good" "$work/none"
  says err 'matches more than one device'
  says err '  1  '
  run 0 'the second device' copy --device 1 "$good" "$work/second"
fi
unset POCL_DEVICES

checks=$((checks + 1))
test -e "$work/none" && fail 'a refused copy left a file'
run 0 'copy without tensors' copy "$work/none.safetensors" "$copy"
run 0 'it has none either' verify "$work/none.safetensors" "$copy"
run 0 'copy hostile names' copy "$hostile" "$copy"
run 0 'they are the same' verify "$hostile" "$copy"
cp "$good" "$work/both"
run 0 'copy onto itself' copy "$work/both" "$work/both"
run 0 'it is still the same' verify "$good" "$work/both"

# 24 MiB in lines of 32 bytes, each another.
big=$work/big.safetensors
awk 'BEGIN { for (i = 0; i < 786432; i++) printf "%031d\n", i }' |
  make_file "$big" \
    '{"w":{"dtype":"F32","shape":[1024,6144],"data_offsets":[0,25165824]}}'
run 0 'copy 24 MiB' copy "$big" "$copy"
run 0 'it is the same' verify "$big" "$copy"
"$command" devices >"$work/out"
pinned=0 # a device that shares memory with the host may need none
grep -q 'shares host memory *yes' "$work/out" || pinned=1
for size in 65536 64K 64KiB 64kb 64KB; do
  run 0 "copy --chunk $size" copy -q --json --chunk "$size" --staging 1M \
    "$big" "$copy"
  json "$pinned <= d['staging_peak'] <= 1 << 20"
  run 0 'it is the same' verify "$big" "$copy"
done
for size in 1g 1GiB 64m 64MB 1T; do
  run 0 "copy --staging $size" copy -q --staging "$size" "$good" "$copy"
done
run 0 'KiB is 1024' copy --chunk 4KiB "$good" "$copy"

# Larger than any device's memory; nearly all of it is a hole.
huge=$work/huge.safetensors
make_file "$huge" \
  '{"w":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}' \
  </dev/null
header=$(wc -c <"$huge")
if dd if=/dev/null of="$huge" bs=1 seek=$((header + 1099511627776)) \
  2>/dev/null; then
  run 3 'a tensor larger than the device' copy "$huge" "$work/none"
  says err "tensor 'w' has 1099511627776 bytes"
fi
rm -f "$huge"

# A file system that has less room than the model needs, where this user may
# mount one.
mkdir "$work/disk"
small_disk() {
  unshare -rm sh -c 'mount -t tmpfs -o size=1m none "$0" && exec "$@"' \
    "$work/disk" "$@" 2>"$work/err" >"$work/out" </dev/null
}
make_file "$huge" \
  '{"w":{"dtype":"U8","shape":[2097152],"data_offsets":[0,2097152]}}' </dev/null
dd if=/dev/null of="$huge" bs=1 seek=$(($(wc -c <"$huge") + 2097152)) 2>/dev/null
if small_disk true 2>/dev/null; then
  what='a model larger than the disk has room'
  checks=$((checks + 1))
  small_disk "$command" copy "$huge" "$work/disk/out"
  test $? -eq 3 || fail "$what: it does not fail"
  tells 'no room for 2097152 bytes: its file system has 1048576 free' \
    "$work/disk/out"
  what='a model that the disk has room for'
  small_disk "$command" copy "$good" "$work/disk/out" ||
    fail "$what: it fails"
fi
rm -f "$huge"

# A signal in the middle of a save.  Small chunks make it last; a save that was
# through before the signal came is tried again.  The input is a hole.
long=$work/long.safetensors
make_file "$long" \
  '{"w":{"dtype":"U8","shape":[100663296],"data_offsets":[0,100663296]}}' \
  </dev/null
dd if=/dev/null of="$long" bs=1 seek=$(($(wc -c <"$long") + 100663296)) \
  2>/dev/null

scratch_is_there() {
  test -n "$(find "$work" -name '.*clbytes-tmp')"
}

for signal in INT TERM; do
  what="a copy and SIG$signal"
  checks=$((checks + 1))
  code=0
  tries=0
  while test $code -eq 0 && test $tries -lt 5; do
    tries=$((tries + 1))
    cp "$good" "$work/target"
    "$command" copy -q --chunk 4K --staging 16K "$long" "$work/target" \
      >"$work/out" 2>"$work/err" &
    child=$!
    while ! scratch_is_there && kill -0 $child 2>/dev/null; do
      :
    done
    kill -$signal $child 2>/dev/null
    wait $child
    code=$?
  done
  expected=130
  test $signal = TERM && expected=143
  test $code -eq $expected || fail "$what: exit $code"
  says err 'clbytes: cancelled'
  scratch_is_there && fail "$what: a scratch file stays"
  cmp -s "$good" "$work/target" || fail "$what: the old file is not whole"
done

# Work that takes a second shows how far it is, here because it is stopped.
what='a long copy shows progress'
checks=$((checks + 1))
tries=0
while ! grep -q 'save 100%' "$work/err" && test $tries -lt 5; do
  tries=$((tries + 1))
  "$command" copy --chunk 4K --staging 16K "$long" "$work/target" \
    >"$work/out" 2>"$work/err" &
  child=$!
  while ! scratch_is_there && kill -0 $child 2>/dev/null; do
    :
  done
  kill -STOP $child 2>/dev/null && sleep 1.1
  kill -CONT $child 2>/dev/null
  wait $child
done
says err 'save 100%'
rm -f "$long"

# Standard descriptors that are closed must not lead into the file that is
# written.
what='closed standard descriptors'
checks=$((checks + 1))
"$command" copy "$good" "$copy" >/dev/null 2>&-
test $? -eq 0 || fail "$what: the copy failed"
rm -f "$copy"
"$command" copy "$good" "$copy" <&- >&- 2>&-
test $? -eq 3 || fail "$what: nobody says that nothing was printed"
run 0 'copied with standard descriptors closed' verify "$good" "$copy"

if test -n "$python"; then
  what='a bar on a terminal'
  checks=$((checks + 1))
  "$python" - "$command" "$big" "$copy" >"$work/out" 2>"$work/err" <<'END' ||
import os, pty, sys
status = pty.spawn([sys.argv[1], "copy"] + sys.argv[2:])
sys.exit(os.waitstatus_to_exitcode(status))
END
    fail "$what: it failed"
  says out '100%'
  says out '##############################'
  says out "$(printf '\r')"
fi

finish 0
