#!/bin/sh
# sh cmake/lint.sh BUILD [--whole]: format, shell, structure and clang-tidy checks, with the compile commands of the
# configured tree BUILD. With --whole clang-tidy reads every source by itself.
# The tools are those of the group [lint] in cmake/packages.txt. Everything is checked before the script gives up.
set -u
build=$1
whole=${2:-}
failed=0

clang_format=$(command -v clang-format-14 || command -v clang-format) || { echo "lint: no clang-format" >&2; exit 1; }
clang=$(command -v clang++-14 || command -v clang++) || { echo "lint: no clang++" >&2; exit 1; }
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

# ---- Every source alone ------------------------------------------------------------------------------------------

echo "lint: sources alone"
python3 cmake/alone.py "$build" "$clang" || failed=1

# ---- Structure ---------------------------------------------------------------------------------------------------

echo "lint: structure"
python3 cmake/cycles.py "$build/symbols" || failed=1
python3 cmake/public.py || failed=1
python3 cmake/sizes.py || failed=1
python3 cmake/names.py || failed=1
python3 cmake/comments.py || failed=1
python3 cmake/documents.py || failed=1
python3 cmake/rooms.py --check || failed=1

# ---- clang-tidy --------------------------------------------------------------------------------------------------

# Left out: tests, whose macros expand to code that is not ours and whose headers take most of the time; and sources
# outside the configured build (Vulkan's, on a machine without it), which have no command.
echo "lint: clang-tidy"
# shellcheck disable=SC2086 # one word or none
python3 cmake/tidy.py "$build" "$clang_tidy" $whole || failed=1

if [ "$failed" -ne 0 ]; then
  echo "lint: FAILED" >&2
  exit 1
fi
echo "lint: passed"
