#!/bin/sh
# The manual, the headers and the library say the same: a function is exported,
# declared and documented, or none of it; prototypes, types and statuses in the
# pages are those of the headers.
#
# Runs in the build directory; srcdir is where the sources are.

srcdir=${srcdir:-.}
man=$srcdir/doc/man
failures=0
skipped=

tmp=$(mktemp -d "${TMPDIR:-/tmp}/test_manual.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# A line for each word of the first list that the second one lacks.
lacks() {
  sort -u "$1" >"$tmp/one"
  sort -u "$2" >"$tmp/two"
  comm -23 "$tmp/one" "$tmp/two"
}
comm /dev/null /dev/null && paste /dev/null || {
  echo "comm and paste are needed"
  exit 99
}

# Reads C, writes its statements, one a line, each with the comment before it:
# "comment <tab> statement", white space made one form.  What is for the
# preprocessor or for C++ alone is left out.
statements() {
  awk '
    /^#ifdef __cplusplus/ { in_cxx = 1 }
    in_cxx { if (/^#endif/) in_cxx = 0; next }
    /^ *#/ || in_macro { in_macro = /\\$/; next }
    { all = all " " $0 }
    END {
      while (all != "") {
        if (match(all, /^[ \t]+/)) {
          all = substr(all, RLENGTH + 1)
        } else if (substr(all, 1, 2) == "/*") {
          end = index(all, "*/")
          if (statement == "") comment = substr(all, 3, end - 3)
          all = substr(all, end + 2)
        } else {
          match(all, /^([^ \t;{}\/]+|.)/)
          word = substr(all, 1, RLENGTH)
          all = substr(all, RLENGTH + 1)
          depth += (word == "{") - (word == "}")
          if (word == ";" && depth == 0) {
            print comment "\t" statement ";"
            comment = statement = ""
          } else {
            # White space is skipped above: one blank stays where it was.
            statement = statement word (all ~ /^[ \t]/ ? " " : "")
          }
        }
      }
    }' "$@"
}

# Blanks stand between words alone.
normalise() {
  sed -e 's/  */ /g' -e 's/ *\([][*(),;{}=]\) */\1/g' -e 's/^ //'
}

# The section of a page: section FILE NAME
section() {
  awk -v name="$2" '
    /^\.Sh / { on = ($0 == ".Sh " name); next }
    on' "$1"
}

# The literal displays of a page, as C.
literals() {
  awk '
    /^\.Bd -literal/ { on = 1; next }
    /^\.Ed/ { on = 0 }
    on' "$1" | sed 's/\\e/\\/g'
}

# The prototypes of a page's synopsis, in the form of statements.
synopsis() {
  section "$1" SYNOPSIS | awk '
    /^\.Ft / { type = substr($0, 5) }
    /^\.Fo / { text = type " " $2 "("; comma = "" }
    /^\.Fa / {
      argument = substr($0, 5)
      gsub(/"/, "", argument)
      text = text comma argument
      comma = ","
    }
    /^\.Fc/ { print text ");" }' | normalise
}

names_of_page() {
  section "$1" NAME | sed -n 's/^\.Nm \([a-z0-9_]*\).*/\1/p'
}

is_link() {
  grep -q '^\.so ' "$1"
}

# --- What there is ------------------------------------------------------------

headers=$(find "$srcdir/include" -name '*.h')
pages=$(find "$man" -name 'clb_*.3')
manual="$pages $man/clbytes.3 $man/clbytes-plans.7"
test -n "$headers" && test -n "$pages" || {
  echo "no headers or pages under $srcdir"
  exit 99
}

# declared: "header <tab> function <tab> comment <tab> prototype"
# types:    structures, enumerations and function types, a line each
for header in $headers; do
  statements "$header" >"$tmp/statements" || exit 99
  cut -f 2 "$tmp/statements" | normalise >"$tmp/right"
  cut -f 1 "$tmp/statements" | sed 's/ \* / /g' >"$tmp/left"
  name=${header##*include/}
  paste "$tmp/left" "$tmp/right" | awk -F '\t' -v header="$name" '
    $2 !~ /^typedef/ && match($2, /clb_[a-z0-9_]*\(/) {
      print header "\t" substr($2, RSTART, RLENGTH - 1) "\t" $1 "\t" $2
    }' >>"$tmp/declared"
  grep -E '^(typedef|enum).*[({]' "$tmp/right" | grep -v CLB__ >>"$tmp/types"
done
cut -f 2 "$tmp/declared" >"$tmp/declared.names"
test -s "$tmp/declared.names" && test -s "$tmp/types" || {
  echo "no declarations were found in $headers"
  exit 99
}

cat $headers | sed -n 's/^  XX(\([A-Z_]*\), .*/CLB_\1/p' >"$tmp/statuses"

for page in $pages; do
  basename "$page" .3
done >"$tmp/pages.names"

# --- Exports, declarations and pages are the same set -------------------------

sed -n '/global:/,/local:/s/^ *\(clb_[a-z0-9_]*\);/\1/p' \
  "$srcdir/lib/clbytes.map" >"$tmp/map.names"

for name in $(lacks "$tmp/declared.names" "$tmp/map.names"); do
  fail "$name is declared, and not in lib/clbytes.map"
done
for name in $(lacks "$tmp/map.names" "$tmp/declared.names"); do
  fail "$name is in lib/clbytes.map, and not declared in a public header"
done
for name in $(lacks "$tmp/declared.names" "$tmp/pages.names"); do
  fail "$name has no page doc/man/$name.3"
done
for name in $(lacks "$tmp/pages.names" "$tmp/declared.names"); do
  fail "doc/man/$name.3 is for no function of a public header"
done

# The library, where it is shared and nm can look into it.
dlname=
if test -f libclbytes.la; then
  dlname=$(sed -n "s/^dlname='\(.*\)'/\1/p" libclbytes.la)
else
  skipped="there is no libclbytes.la here"
fi
if test -n "$dlname" && nm -D --defined-only ".libs/$dlname" >"$tmp/nm" 2>&1
then
  # A symbol that stands for a version has type A.
  awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' "$tmp/nm" |
    grep '^clb_' >"$tmp/exported.names"
  for name in $(lacks "$tmp/declared.names" "$tmp/exported.names"); do
    fail "$name is declared, and not exported by $dlname"
  done
  for name in $(lacks "$tmp/exported.names" "$tmp/declared.names"); do
    fail "$name is exported by $dlname, and not declared"
  done
else
  skipped=${skipped:-"the library is not shared, or nm cannot read it"}
fi

# --- What is installed --------------------------------------------------------

for file in $headers $manual; do
  grep -q "${file#"$srcdir"/}" "$srcdir/Makefile.am" ||
    fail "${file#"$srcdir"/} is not in Makefile.am"
done

# --- Each page ----------------------------------------------------------------

for page in $pages; do
  base=$(basename "$page")
  name=${base%.3}

  if is_link "$page"; then
    target=$man/$(sed -n 's,^\.so man3/,,p' "$page")
    if test ! -f "$target"; then
      fail "$base links to a page that is not there"
    elif ! names_of_page "$target" | grep -qx "$name"; then
      fail "$base links to $(basename "$target"), whose NAME lacks it"
    fi
    continue
  fi

  # Fixed sections, in a fixed order.
  sed -n 's/^\.Sh //p' "$page" >"$tmp/sections"
  for wanted in NAME SYNOPSIS DESCRIPTION 'RETURN VALUES' 'SEE ALSO'; do
    grep -qx "$wanted" "$tmp/sections" || fail "$base has no section $wanted"
  done
  printf '%s\n' NAME SYNOPSIS DESCRIPTION 'RETURN VALUES' ENVIRONMENT \
    EXAMPLES ERRORS 'SEE ALSO' | grep -xf "$tmp/sections" >"$tmp/order"
  cmp -s "$tmp/order" "$tmp/sections" ||
    fail "$base has sections of its own, or in an order of its own"
  grep -qx '\.Ss Threads and blocking' "$page" ||
    fail "$base does not say what it means for threads"

  # The names are the functions of the synopsis, each declared as the header
  # that the page includes does.
  names_of_page "$page" >"$tmp/names"
  synopsis "$page" >"$tmp/prototypes"
  grep -qx "$name" "$tmp/names" || fail "$base does not name $name"
  sed 's/^.*[ *]\(clb_[a-z0-9_]*\)(.*/\1/; s/(.*//' "$tmp/prototypes" \
    >"$tmp/shown"
  for other in $(lacks "$tmp/names" "$tmp/shown"); do
    fail "$base names $other, which its synopsis lacks"
  done
  for other in $(lacks "$tmp/shown" "$tmp/names"); do
    fail "$base has a prototype of $other, and does not name it"
  done
  : >"$tmp/wanted.statuses"
  returns_status=
  for other in $(cat "$tmp/names"); do
    line=$(awk -F '\t' -v name="$other" '$2 == name' "$tmp/declared")
    header=$(printf '%s\n' "$line" | cut -f 1)
    prototype=$(printf '%s\n' "$line" | cut -f 4)
    comment=$(printf '%s\n' "$line" | cut -f 3)
    case $comment in
    ' ---'*) fail "${header##*/} says nothing about $other" ;;
    *[a-z]*) ;;
    *) fail "${header##*/} says nothing about $other" ;;
    esac
    if test ! -f "$man/$other.3"; then
      fail "$base names $other, which has no page of that name"
    fi
    section "$page" SYNOPSIS | grep -qxF ".In $header" ||
      fail "$base does not include <$header>, which declares $other"
    grep -qxF "$prototype" "$tmp/prototypes" ||
      fail "$base: the header has $prototype"
    case $prototype in
    clb_status\ *)
      returns_status=yes
      # A comment may stand for another's statuses.
      case $comment in
      *"of clb_bytes_copy_into()"*)
        comment="$comment $(awk -F '\t' '$2 == "clb_bytes_copy_into" {
          print $3 }' "$tmp/declared")" ;;
      esac
      case $comment in
      *"of clb_bytes_read()"* | *"whatever reading a tensor returns"*)
        comment="$comment $(awk -F '\t' '$2 == "clb_bytes_read" { print $3 }' \
          "$tmp/declared" | sed 's/CLB_WOULD_COPY//g')" ;;
      esac
      printf '%s\n' "$comment" | sed 's/but CLB_[A-Z_]*//g' |
        tr -cs 'A-Z_' '\n' | grep -xf "$tmp/statuses" | grep -vx CLB_OK \
        >>"$tmp/wanted.statuses"
      ;;
    esac
  done

  # Statuses.
  section "$page" ERRORS | sed -n 's/^\.It //p' | tr -cs 'A-Z_' '\n' |
    grep '^CLB_' >"$tmp/shown.statuses"
  if test -n "$returns_status"; then
    test -s "$tmp/shown.statuses" || fail "$base says no errors"
  fi
  for status in $(lacks "$tmp/wanted.statuses" "$tmp/shown.statuses"); do
    fail "$base does not have $status, which the header does"
  done
  echo CLB_INVALID_ARGUMENT >>"$tmp/wanted.statuses"
  for status in $(lacks "$tmp/shown.statuses" "$tmp/wanted.statuses"); do
    fail "$base has $status, which the header does not"
  done
done

# --- Types, constants, statuses, cross references -----------------------------

for page in $manual; do
  is_link "$page" || literals "$page" | statements | cut -f 2
done | normalise >"$tmp/shown.types"
while read -r type; do
  grep -qxF "$type" "$tmp/shown.types" ||
    fail "no page shows the header's $type"
done <"$tmp/types"
grep -E '^(typedef|enum)' "$tmp/shown.types" | while read -r type; do
  grep -qxF "$type" "$tmp/types" || echo "$type"
done >"$tmp/strangers"
while read -r type; do
  fail "a page shows a type that no header has: $type"
done <"$tmp/strangers"

for macro in $(cat $headers | sed -n 's/^#define \(CLB_[A-Z][A-Z_]*\).*/\1/p')
do
  cat $manual | grep -qw "$macro" || fail "no page has $macro"
done
for status in $(cat "$tmp/statuses"); do
  grep -qx "\.It Dv $status" "$man/clb_status_name.3" ||
    fail "clb_status_name.3 does not have $status"
done
for name in $(cat "$tmp/declared.names"); do
  grep -q "^\.Xr $name 3" "$man/clbytes.3" ||
    fail "clbytes.3 does not list $name"
done

for page in $manual; do
  for reference in \
    $(sed -n 's/^\.Xr \(clb[^ ]*\) \([37]\).*/\1.\2/p' "$page")
  do
    test -f "$man/$reference" ||
      fail "$(basename "$page") refers to $reference, which is not there"
  done
done

# --- The types of the format ----------------------------------------------------

sed -n 's/^ *{"/{"/; s/{"\([A-Z0-9_]*\)", *\([0-9]*\)},* */\1 \2\
/gp' "$srcdir/lib/safetensors_dtype.c" | grep . >"$tmp/types.library"
sed -n 's/^\.It \([A-Z].* Ta\)/\1/p' "$man/clb_safetensors_save.3" |
  awk -F ' Ta ' '{ for (i = 1; i < NF; i += 2) print $i, $(i + 1) }' \
    >"$tmp/types.page"
lacks "$tmp/types.library" "$tmp/types.page" >"$tmp/types.missing"
lacks "$tmp/types.page" "$tmp/types.library" >>"$tmp/types.missing"
if test -s "$tmp/types.missing" || ! test -s "$tmp/types.page"; then
  cat "$tmp/types.missing"
  fail "the types in clb_safetensors_save.3 are not the library's"
fi

# --- The language -------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
  for page in $manual; do
    is_link "$page" || mandoc -Tlint -Wwarning "$page"
  done >"$tmp/lint" 2>&1
  if test -s "$tmp/lint"; then
    cat "$tmp/lint"
    fail "mandoc warns"
  fi
else
  echo "mandoc is not here: the pages' language was not checked"
fi

if test "$failures" -gt 0; then
  echo "$failures failed"
  exit 1
fi
if test -n "$skipped"; then
  echo "SKIP: exports: $skipped; all else agrees"
  exit 77
fi
echo "$(grep -c . "$tmp/declared.names") functions agree"
