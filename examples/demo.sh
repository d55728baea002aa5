#!/bin/sh
# The demo: pre-trains a small byte-level Llama on one text, fine-tunes it with LoRA on another, and shows what changed.
# `./run demo` builds the program and then runs this. Needs no network and no data beyond what every Debian has.
set -eu

licenses=/usr/share/common-licenses
bin=build/release/bin/caldera
device=auto
out=build/demo
text=
finetune_text=
prompt="The "

pretrain_iterations=${DEMO_PRETRAIN_ITERATIONS:-}
finetune_iterations=${DEMO_FINETUNE_ITERATIONS:-}
seq_len=128
batch_size=8
sample_tokens=160

usage() {
  cat <<'END'
usage: ./run demo [--device cpu|vulkan[:N]|auto] [--text FILE] [--finetune-text FILE] [--prompt S] [--out DIR]

  --text FILE           text to pre-train on; may be given several times (default: the GNU licences of base-files)
  --finetune-text FILE  text to fine-tune on (default: the Mozilla Public License)
  --prompt S            what the samples go on from
  --out DIR             where models and adapter are written (default: build/demo)

DEMO_PRETRAIN_ITERATIONS and DEMO_FINETUNE_ITERATIONS in the environment set the length of the two trainings.
END
}

die() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --bin | --device | --text | --finetune-text | --prompt | --out)
      [ $# -ge 2 ] || die "$1 needs a value"
      case $1 in
        --bin) bin=$2 ;;
        --device) device=$2 ;;
        --text) text="$text$2
" ;;
        --finetune-text) finetune_text=$2 ;;
        --prompt) prompt=$2 ;;
        --out) out=$2 ;;
      esac
      shift 2
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

[ -n "$text" ] || text="$licenses/GPL-3
$licenses/GPL-2
$licenses/LGPL-2.1
"
[ -n "$finetune_text" ] || finetune_text=$licenses/MPL-2.0
[ -x "$bin" ] || die "no program at $bin; build it with ./run build"
[ -r "$finetune_text" ] || die "cannot read $finetune_text; name a text with --finetune-text"

# A software Vulkan device takes tens of microseconds to start each kernel, so the same run would take far longer there.
case $device in
  vulkan*) : "${pretrain_iterations:=60}" "${finetune_iterations:=30}" ;;
  *) : "${pretrain_iterations:=900}" "${finetune_iterations:=300}" ;;
esac

# ---- Data: the last tenth of each text is held out for validation -------------------------------------------------

# split DIR < TEXT
split() {
  mkdir -p "$1"
  tr -s ' ' >"$1/all" # a model this small would spend itself on the columns of centred headings
  bytes=$(wc -c <"$1/all")
  [ "$bytes" -ge 4000 ] || die "$1: $bytes bytes of text are too few; at least 4000 are needed"
  held=$((bytes / 10))
  head -c $((bytes - held)) "$1/all" >"$1/train.txt"
  tail -c "$held" "$1/all" >"$1/valid.txt"
  rm "$1/all"
}

mkdir -p "$out"
printf '%s' "$text" | while IFS= read -r file; do
  cat -- "$file" || exit 1
done >"$out/text" || die "cannot read the text to pre-train on; name one with --text"
split "$out/pretrain-data" <"$out/text"
rm "$out/text"
split "$out/finetune-data" <"$finetune_text"

# ---- The four steps ----------------------------------------------------------------------------------------------

# number FIELD FILE, string FIELD FILE: a field of a JSON document, without a JSON tool.
number() { sed -n 's/.*"'"$1"'": *\(-\{0,1\}[0-9][0-9.eE+-]*\).*/\1/p' "$2" | tail -n 1; }
string() {
  sed -n 's/.*"'"$1"'": *"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$2" | tail -n 1 |
    sed -e 's/\\n/\n  /g' -e 's/\\t/ /g' -e 's/\\"/"/g' -e 's/\\\\/\\/g'
}

caldera() {
  # The JSON goes to the named file; progress goes to the terminal.
  document=$1
  shift
  "$bin" "$@" --device "$device" --json >"$document"
}

# evaluate DOCUMENT [ARGS], sample DOCUMENT [ARGS]
evaluate() {
  document=$1
  shift
  caldera "$document" evaluate --model "$out/base" --data "$out/finetune-data/valid.txt" --seq-len "$seq_len" \
    --batch-size "$batch_size" "$@"
}
sample() {
  document=$1
  shift
  caldera "$document" generate --model "$out/base" --prompt "$prompt" --max-tokens "$sample_tokens" \
    --temperature 0.7 --seed 7 "$@"
}

step() { printf '\n== %s\n' "$*" >&2; }

start=$(date +%s)

step "1/4 pre-training a small Llama on bytes ($pretrain_iterations iterations)"
caldera "$out/pretrain.json" pretrain --config examples/demo_config.json --data "$out/pretrain-data" --out "$out/base" --overwrite \
  --iterations "$pretrain_iterations" --batch-size "$batch_size" --seq-len "$seq_len" --learning-rate 2e-3 \
  --schedule cosine --warmup 20 --seed 1

step "2/4 the base model on $finetune_text, which it has never seen"
evaluate "$out/before.json"
sample "$out/sample-before.json"

step "3/4 LoRA fine-tuning, rank 8 on every linear layer ($finetune_iterations iterations)"
caldera "$out/finetune.json" finetune --model "$out/base" --data "$out/finetune-data" --out "$out/adapter" --overwrite \
  --rank 8 --alpha 16 --target-modules all-linear --iterations "$finetune_iterations" --batch-size "$batch_size" \
  --seq-len "$seq_len" --learning-rate 2e-3 --schedule cosine --warmup 10 --seed 2 --log "$out/finetune.jsonl"

step "4/4 the same model with the adapter"
evaluate "$out/after.json" --adapter "$out/adapter"
sample "$out/sample-after.json" --adapter "$out/adapter"

# ---- Summary -----------------------------------------------------------------------------------------------------

adapter=$(string adapter "$out/finetune.json")
cat <<END

Validation loss   before $(number loss "$out/before.json")   after $(number loss "$out/after.json")   (nats a byte, text held out)
Trained           $(number trainable_parameters "$out/finetune.json") of $(number total_parameters "$out/finetune.json") parameters
Tokens/second     $(number tokens_per_second "$out/finetune.json") fine-tuning, $(number decode_tokens_per_second "$out/sample-after.json") generating
Sample before
  $(string text "$out/sample-before.json")
Sample after
  $(string text "$out/sample-after.json")
Adapter           ${adapter:-$out/adapter}
Time              $(($(date +%s) - start)) s
END
