#!/bin/sh
# Checks and measures Caldera on a machine that has a GPU and its driver, but no compilers and no packages.
#
#   benches/gpu.sh build [OUT.tar.gz]    here: packs the programs with every library they need
#   ./gpu.sh devices                     there, in the unpacked folder: what is found
#   ./gpu.sh run [OPTIONS]               there: needs a POSIX shell and coreutils
#
# What is packed: the program caldera, the test programs that use a device, the libraries that are not the C
# library's, and the C library itself for machines whose own is older. OpenBLAS, where there is one, is opened from the
# machine, and so is the Vulkan loader (libvulkan.so.1): one is packed for machines that have a driver and no loader.
set -eu

usage() {
  cat <<'END'
usage: benches/gpu.sh build [--no-compile] [OUT.tar.gz]
       gpu.sh devices
       gpu.sh run [--device D] [--out DIR] [--quick]

  build   packs build/release (or $CALDERA_BUILD) into OUT.tar.gz (default build/caldera-gpu.tar.gz)
          --no-compile   as it is, without compiling first
  devices lists the devices that run would use, and says what is missing where there is no GPU
  run     examines the device (caldera doctor), runs the tests that use one, measures, with PyTorch beside where
          python3 has it. Every stage runs, whatever became of those before it.
          --device D     as caldera's (default vulkan: the best Vulkan device)
          --out DIR      results: doctor.json, tests.txt, bench.json, performance.md, summary.txt, logs
                         (default results)
          --quick        a few checks, tests and cases: whether everything starts

exit code: 0, 1 if a stage failed, 2 for bad arguments
END
}

say() { printf '%s\n' "gpu.sh: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# test_gpu holds several areas: each program has the whole library in it.
tests="test_device test_ops test_gpu"

# ---- Here --------------------------------------------------------------------------------------------------------

limit_mib=60

# libraries PROGRAM...: path of each library that the programs load, with those of the C library marked.
libraries() {
  for program in "$@"; do ldd "$program"; done |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 } $3 == "not" { print "missing:" $1 }' |
    sort -u
}

# From glibc: these must be the same version as each other.
is_libc() {
  case ${1##*/} in
    ld-linux* | libc.so* | libm.so* | libmvec.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so*) return 0 ;;
  esac
  return 1
}

# vulkan_loader PROGRAM: path of libvulkan.so.1, of the kind that the program could open; nothing without one.
vulkan_loader() {
  libc=$(libraries "$1" | awk '/\/libc\.so/ { print; exit }')
  { echo "${libc%/*}/libvulkan.so.1"; echo "/usr${libc%/*}/libvulkan.so.1"
    PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | awk '$1 == "libvulkan.so.1" { print $NF }'; } |
    while IFS= read -r file; do [ ! -e "$file" ] || { echo "$file"; break; }; done
}

build() {
  compile=yes
  if [ "${1:-}" = --no-compile ]; then
    compile=no
    shift
  fi
  [ $# -le 1 ] || { usage >&2; exit 2; }
  cd "$(dirname "$0")/.."
  tree=${CALDERA_BUILD:-build/release}
  out=${1:-build/caldera-gpu.tar.gz}
  if [ "$compile" = yes ]; then
    [ -f "$tree/CMakeCache.txt" ] || ./run build release
    # shellcheck disable=SC2086 # a list of words
    cmake --build "$tree" --parallel "$(nproc)" --target caldera_cli $tests
  fi
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' EXIT
  folder=$stage/caldera-gpu
  mkdir -p "$folder/bin" "$folder/lib/libc"
  programs=$tree/bin/caldera
  for test in $tests; do programs="$programs $tree/tests/$test"; done
  for program in $programs; do
    [ -x "$program" ] || die "$program is not built"
    strip -o "$folder/bin/${program##*/}" "$program"
  done
  for library in $(libraries $programs); do
    case $library in missing:*) die "a program needs ${library#missing:}, which is not here" ;; esac
    if is_libc "$library"; then cp -L "$library" "$folder/lib/libc/"; else cp -L "$library" "$folder/lib/"; fi
  done
  # Apart from the others: the machine's own goes first.
  vulkan=$(vulkan_loader "$tree/bin/caldera")
  if [ -n "$vulkan" ]; then
    mkdir "$folder/lib/vulkan"
    cp -L "$vulkan" "$folder/lib/vulkan/libvulkan.so.1"
    for library in $(libraries "$vulkan"); do
      is_libc "$library" || die "the Vulkan loader needs $library, which is not packed"
    done
  else
    say "no libvulkan.so.1 here to pack: the machine with the GPU needs one of its own"
  fi
  cp benches/gpu.sh benches/torch_worker.py "$folder/"
  # What tests of these programs read, from the folder that they are started in.
  mkdir -p "$folder/tests"
  cp -R tests/golden "$folder/tests/"
  git -c safe.directory='*' describe --always --dirty >"$folder/VERSION" 2>/dev/null || echo unknown >"$folder/VERSION"
  # Everything is found inside of the folder, but for the C library.
  for program in "$folder"/bin/*; do
    for library in $(libraries "$program"); do
      is_libc "$library" && continue
      case $library in
        "$folder"/*) ;;
        *) die "${program##*/} would load $library from outside of the bundle" ;;
      esac
    done
  done
  mkdir -p "$(dirname "$out")"
  tar -C "$stage" -cf - caldera-gpu | gzip -9 >"$out"
  bytes=$(wc -c <"$out")
  [ "$bytes" -lt $((limit_mib * 1024 * 1024)) ] || die "$out has $bytes bytes: more than $limit_mib MiB"
  say "$out: $((bytes / 1024)) KiB; unpack it on the machine with the GPU and start caldera-gpu/gpu.sh run"
}

# ---- There (no sed, grep, awk: they are not coreutils) -----------------------------------------------------------

here=
loader=

# start PROGRAM ARGS...: with the machine's C library, or with the packed one.
start() { limited 0 "$@"; }

# limited SECONDS PROGRAM ARGS...: start, but no longer than that (0: as long as it takes).
limited() {
  seconds=$1
  program=$2
  shift 2
  if [ -z "$loader" ]; then
    timeout "$seconds" "$here/bin/$program" "$@"
  else
    timeout "$seconds" "$loader" --library-path "$here/lib/libc:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
      "$here/bin/$program" "$@"
  fi
}

# open_bundle: finds the programs, and with which C library they start. Leaves the reason in $1 where they do not.
open_bundle() {
  here=$(cd "$(dirname "$0")" && pwd)
  [ -x "$here/bin/caldera" ] || die "$here has no bin/caldera: this belongs into an unpacked bundle (see 'build')"
  # The program would start itself once more to set this, which the packed loader would not survive.
  export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-10000}"
  for loader in "" "$here"/lib/libc/ld-linux*; do
    if start caldera --version >"$1" 2>&1; then return 0; fi
  done
  return 1
}

# drivers: the manifests (*.json) of Vulkan drivers that a loader finds, a line each.
drivers() {
  named=${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}
  if [ -n "$named" ]; then
    printf '%s\n' "$named" | tr : '\n'
    return
  fi
  folders="${XDG_CONFIG_HOME:-${HOME:-}/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:${XDG_DATA_HOME:-${HOME:-}/.local/share}"
  printf '%s\n' "$folders:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}" | tr : '\n' | while IFS= read -r folder; do
    for file in "$folder"/vulkan/icd.d/*.json; do [ ! -e "$file" ] || printf '%s\n' "$file"; done
  done
}

sees_gpu() {
  case $(start caldera devices --json 2>/dev/null) in *'"id":"vulkan:'*) return 0 ;; esac
  return 1
}

# find_vulkan FOLDER: sees to it that drivers are found. A machine, or a container, may have a driver's libraries and
# lack the loader, or the driver's manifest; what is written goes to FOLDER. Says what it did, and what is missing.
find_vulkan() {
  if sees_gpu; then return 0; fi
  if [ -z "$(drivers)" ]; then
    for folder in /usr/lib/"$(uname -m)"-linux-gnu /usr/lib64 /usr/lib /usr/local/nvidia/lib64; do
      [ -e "$folder/libGLX_nvidia.so.0" ] || continue
      printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' \
        "$folder/libGLX_nvidia.so.0" >"$1/nvidia_icd.json"
      export VK_DRIVER_FILES="$1/nvidia_icd.json" VK_ICD_FILENAMES="$1/nvidia_icd.json"
      echo "Vulkan: no driver's manifest in any icd.d; one written for $folder/libGLX_nvidia.so.0"
      break
    done
  fi
  if ! sees_gpu && [ -e "$here/lib/vulkan/libvulkan.so.1" ]; then
    before=${LD_LIBRARY_PATH:-}
    export LD_LIBRARY_PATH="$here/lib/vulkan${before:+:$before}"
    if sees_gpu; then
      echo "Vulkan: with the packed loader; the machine's own (libvulkan.so.1) finds nothing or is not there"
      return 0
    fi
    export LD_LIBRARY_PATH="$before"
  fi
  if sees_gpu; then return 0; fi
  if [ -z "$(drivers)" ]; then
    echo "Vulkan: no driver: no *.json in vulkan/icd.d of /etc, /usr/share, /usr/local/share, ~/.local/share" \
      "(NVIDIA in a container: NVIDIA_DRIVER_CAPABILITIES=all)"
  else
    echo "Vulkan: no driver of these gives a device that Caldera can use:" $(drivers)
  fi
  return 1
}

devices() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  open_bundle "$scratch/start.log" || { cat "$scratch/start.log" >&2; die "neither C library starts caldera"; }
  code=0
  find_vulkan "$scratch" || code=1
  start caldera devices
  return $code
}

failed=0
# stage NAME CODE REMARK: notes how a stage ended.
stage() {
  if [ "$2" -eq 0 ]; then
    line="ok      $1${3:+: $3}"
  else
    failed=$((failed + 1))
    case $2 in
      124) why="out of time" ;;
      139 | 134 | 136) why="crashed, exit code $2" ;;
      *) why="exit code $2" ;;
    esac
    line="FAILED  $1 ($why)${3:+: $3}"
  fi
  printf '%s\n' "$line" | tee -a "$out/summary.txt"
}

# field NAME TEXT: the number behind "NAME": in a JSON text; empty if there is none.
field() {
  case $2 in *"\"$1\":"*) ;; *) return 0 ;; esac
  rest=${2#*"\"$1\":"}
  rest=${rest%%[,\}]*}
  printf '%s' "${rest# }"
}

run() {
  device=vulkan
  out=results
  quick=no
  while [ $# -gt 0 ]; do
    case $1 in
      --device | --out)
        [ $# -ge 2 ] || { usage >&2; exit 2; }
        if [ "$1" = --device ]; then device=$2; else out=$2; fi
        shift
        ;;
      --quick) quick=yes ;;
      *)
        usage >&2
        exit 2
        ;;
    esac
    shift
  done
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  for file in summary.txt devices.json devices.log doctor.json doctor.log tests.txt bench.json bench.log performance.md; do
    rm -f "$out/$file"
  done
  # Pipelines of other programs' versions stay out of the figures, and nothing is left in the user's folders.
  export CALDERA_CACHE_DIR="$out/cache"
  layer=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
  if [ -z "${CALDERA_VALIDATION:-}" ] && [ ! -e "$layer" ]; then export CALDERA_VALIDATION=0; fi

  started=yes
  open_bundle "$out/start.log" || started=no
  { echo "Caldera $(cat "$here/VERSION"), $(date -u '+%Y-%m-%d %H:%M') UTC, $(uname -srm)"; } | tee "$out/summary.txt"
  if [ $started = no ]; then
    cat "$out/start.log" >&2
    stage "start of caldera" 1 "neither with the machine's C library nor with the packed one"
    return 1
  fi
  [ -z "$loader" ] || echo "with the packed C library" | tee -a "$out/summary.txt"

  case $device in
    vulkan*)
      find_vulkan "$out" >"$out/vulkan.log" || true
      tee -a "$out/summary.txt" <"$out/vulkan.log"
      rm -f "$out/vulkan.log"
      ;;
  esac
  code=0
  start caldera devices --json >"$out/devices.json" 2>"$out/devices.log" || code=$?
  stage "devices" $code "$out/devices.json"
  case $device in
    vulkan*)
      case $(cat "$out/devices.json") in
        *'"id":"vulkan:'*) ;;
        *) stage "a Vulkan device" 1 "none is found: see above" ;;
      esac
      ;;
  esac

  # Doctor.
  code=0
  set -- --device "$device" --json
  [ $quick = no ] || set -- "$@" --filter replay
  limited 1200 caldera doctor "$@" >"$out/doctor.json" 2>"$out/doctor.log" || code=$?
  text=$(cat "$out/doctor.json")
  stage "doctor" $code "$(field checks "$text") checks, $(field failed "$text") failed"
  [ $code -eq 0 ] || tail -n 3 "$out/doctor.log"

  # Tests. They use the first Vulkan device, and the CPU beside it.
  : >"$out/tests.txt"
  for test in $tests; do
    [ -x "$here/bin/$test" ] || { stage "$test" 127 "not in the bundle"; continue; }
    filter='*'
    case $quick:$test in
      yes:test_device) filter='VulkanReplay.*:VulkanMemory.*' ;;
      yes:test_ops) filter='*SpecialValues*' ;;
      yes:test_gpu)
        filter='*Ties*:*Donating*:*MixedPrecision.TheScale*:*Concurrency*InFlight*:*Concurrency*OtherDevices*:*Binomial*'
        ;;
    esac
    code=0
    (cd "$here" && limited 3600 "$test" --gtest_brief=1 --gtest_filter="$filter") >"$out/$test.log" 2>&1 || code=$?
    cat "$out/$test.log" >>"$out/tests.txt"
    # A filter that matches nothing passes, too.
    if [ $code -eq 0 ] && grep -q 'PASSED.* 0 tests' "$out/$test.log"; then code=1; fi
    stage "$test" $code "$(tail -n 1 "$out/$test.log")"
    rm -f "$out/$test.log"
  done

  # Figures.
  printf '%s\n' "# Performance on this machine" "" "<!-- bench:begin -->" "<!-- bench:end -->" >"$out/performance.md"
  code=0
  set -- --device "$device" --json --markdown "$out/performance.md"
  [ $quick = no ] || set -- "$@" --suite ops --filter '^ops/softmax/named$' --repetitions 2 --repetition-ms 5 --peer none
  limited 5400 caldera bench "$@" >"$out/bench.json" 2>"$out/bench.log" || code=$?
  text=$(cat "$out/bench.json")
  remark="without a peer"
  case $text in *'"peer":"'*) remark="beside PyTorch" ;; esac
  case $text in *'"total_us":'*) ;; *) [ $code -ne 0 ] || code=1 ;; esac
  stage "bench" $code "$remark; $out/performance.md"
  [ $code -eq 0 ] || tail -n 3 "$out/bench.log"

  rm -rf "$out/cache" "$out/start.log" "$out/nvidia_icd.json"
  if [ "$failed" -gt 0 ]; then
    echo "$failed stages failed; all results in $out" | tee -a "$out/summary.txt"
    return 1
  fi
  echo "all stages passed; results in $out" | tee -a "$out/summary.txt"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
  build) build "$@" ;;
  devices) devices ;;
  run) run "$@" ;;
  --help | -h) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
