#!/bin/sh
# sh cmake/tidy_one.sh CLANG_TIDY BUILD FILE: clang-tidy on one source, skipped where an identical run has passed.
# Identical means: the same tool, the same settings, the same command, and the same text of the source and of every
# header of this repository that it includes, wherever the clone lies: what has passed is noted in the user's cache
# (CALDERA_TIDY_CACHE, else XDG's), so that a fresh clone on the same machine checks what has changed.
set -eu
tidy=$1
build=$2
file=$3

command=$(grep "^$file	" "$build/tidy/commands.tsv" | cut -f 2- | head -n 1)
# The same command, asked for the list of included files instead of an object.
list=$(printf '%s\n' "$command" | sed -e 's/ -o [^ ]* / /' -e 's/ -c / -MM /')
includes=$(eval "$list" 2>/dev/null | tr -s '[:space:]' '\n' | grep -v '[:\\]$' | sort -u || true)
key=$(
  {
    "$tidy" --version
    cat .clang-tidy cmake/tidy_one.sh
    cat "$(dirname "$file")/.clang-tidy" 2>/dev/null || true
    printf '%s\n' "$command"
    # shellcheck disable=SC2086 # a list of paths
    sha256sum $includes 2>/dev/null || true
    sha256sum "$file"
  } | sed -e "s|$PWD/||g" | sha256sum | cut -d ' ' -f 1
)
passed=${CALDERA_TIDY_CACHE:-${XDG_CACHE_HOME:-${HOME:-$build}/.cache}/caldera/tidy}
mkdir -p "$passed" 2>/dev/null || passed="$build/tidy"
stamp="$passed/$key"
[ -e "$stamp" ] && exit 0

if output=$("$tidy" --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option "$file" 2>"$stamp.err"); then
  rm -f "$stamp.err"
  : >"$stamp"
else
  printf '%s\n' "$output"
  # Errors of the tool itself go there, among counts of suppressed warnings that nobody needs.
  grep -v 'warnings generated\|warning generated' "$stamp.err" >&2 || true
  rm -f "$stamp.err"
  exit 1
fi
