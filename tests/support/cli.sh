# Sourced by the scripts in tests/cli (. tests/support/cli.sh). POSIX shell; ctest runs them in the repository root
# with CALDERA_BIN set. A script that ends without a failure has passed; exit code 77 means skipped.
# shellcheck shell=sh
set -eu

: "${CALDERA_BIN:=$PWD/build/release/bin/caldera}"
: "${CALDERA_TEST_DATA:=../shared/data}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# require_data RELATIVE: prints the path of test data, or skips the script and names what is missing.
# Use as: data=$(require_data stories260K) || exit $?
require_data() {
  if [ ! -e "$CALDERA_TEST_DATA/$1" ]; then
    echo "SKIPPED: test data not found: $1 (set CALDERA_TEST_DATA)" >&2
    return 77
  fi
  printf '%s\n' "$CALDERA_TEST_DATA/$1"
}

# use_validation: the commands that follow run under the Vulkan validation layer, where it is installed; expect_exit
# fails if it says anything.
use_validation() {
  if [ -e /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]; then
    export CALDERA_VALIDATION=1
  fi
}

# require_vulkan: skips the script where there is no Vulkan device; else as use_validation.
require_vulkan() {
  if ! "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
    echo "SKIPPED: no Vulkan device" >&2
    exit 77
  fi
  use_validation
}

# losses FILE: the training losses of a log, one a line.
losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1"; }

# expect_exit CODE COMMAND...: runs it, keeps its output in $work/stdout and $work/stderr, and checks its exit code.
expect_exit() {
  expected=$1
  shift
  code=0
  "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
  if [ "$code" -ne "$expected" ]; then
    cat "$work/stdout" "$work/stderr" >&2
    fail "exit code $code, expected $expected: $*"
  fi
  if grep 'caldera: validation:' "$work/stderr" >&2; then
    fail "the Vulkan validation layer complains: $*"
  fi
}

# expect_one_error_line: the last command explained itself on standard error in exactly one line.
expect_one_error_line() {
  lines=$(wc -l <"$work/stderr")
  if [ "$lines" -ne 1 ]; then
    cat "$work/stderr" >&2
    fail "$lines lines on standard error, expected one"
  fi
}

# json_number FIELD FILE: the first number under that name in a JSON document.
json_number() {
  sed -n "s/.*\"$1\": *\(-\{0,1\}[0-9][0-9.eE+-]*\).*/\1/p" "$2" | head -n 1
}
