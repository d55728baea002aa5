#!/bin/sh
# sh cmake/lint.sh BUILD OBJECTS: format, shell, structure and clang-tidy checks, with the compile commands of the
# configured tree BUILD and the objects of the built tree OBJECTS.
# The tools are those of the group [lint] in cmake/packages.txt. Everything is checked before the script gives up.
set -u
build=$1
objects=$2
failed=0

clang_format=$(command -v clang-format-14 || command -v clang-format) || { echo "lint: no clang-format" >&2; exit 1; }
clang_tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "lint: no clang-tidy" >&2; exit 1; }

# files PATTERN...: tracked files and new ones that git does not ignore; a file deleted but not yet committed is neither.
files() {
  git -c safe.directory='*' ls-files --cached --others --exclude-standard -- "$@" | sort -u |
    while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# ---- Format ------------------------------------------------------------------------------------------------------

echo "lint: format"
if ! files '*.cpp' '*.h' | xargs -r "$clang_format" --dry-run -Werror; then
  failed=1
fi

# ---- Shell -------------------------------------------------------------------------------------------------------

echo "lint: shell"
for script in run .ci/run $(files '*.sh'); do
  sh -n "$script" || failed=1
done
if command -v shellcheck >/dev/null; then
  # SC2046, SC2086: lists of words without spaces are passed as such on purpose. SC1091: sources another checked file.
  shellcheck -s sh -e SC2046,SC2086,SC1091 run .ci/run $(files '*.sh') || failed=1
fi

# ---- Structure ---------------------------------------------------------------------------------------------------

echo "lint: structure"
python3 cmake/cycles.py "$objects" || failed=1
python3 cmake/sizes.py || failed=1
python3 cmake/names.py || failed=1

# ---- clang-tidy --------------------------------------------------------------------------------------------------

# Left out: tests, whose macros expand to code that is not ours and whose headers take most of the time.
# Add an exception below with its reason; each is one extended regular expression on the path.
exceptions='^$'

echo "lint: clang-tidy"
mkdir -p "$build/tidy"
# One line a source: its path and its compile command, as CMake wrote them.
sed -n -e 's/^ *"command": "\(.*\)",$/\1/p' -e 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
  sed -e 's/\\"/"/g' -e 's/\\\\/\\/g' | paste - - |
  awk -F '\t' -v root="$PWD/" 'index($2, root) == 1 { print substr($2, length(root) + 1) "\t" $1 }' \
    >"$build/tidy/commands.tsv"
total=0
: >"$build/tidy/todo"
for file in $(files 'engine/*.cpp' 'ops/*.cpp' 'eager/*.cpp' 'lm/*.cpp' 'training/*.cpp' 'cli/*.cpp' 'benches/*.cpp' 'examples/*.cpp' |
  grep -Ev "$exceptions"); do
  # Sources outside the configured build (Vulkan's, on a machine without it) have no command.
  grep -q "^$file	" "$build/tidy/commands.tsv" || continue
  total=$((total + 1))
  echo "$file" >>"$build/tidy/todo"
done
# The slowest first would be better still; the order of names is at least the same every time.
if ! xargs -r -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh cmake/tidy_one.sh "$clang_tidy" "$build" \
  <"$build/tidy/todo"; then
  failed=1
fi

if [ "$failed" -ne 0 ]; then
  echo "lint: FAILED" >&2
  exit 1
fi
echo "lint: passed ($total sources through clang-tidy)"
