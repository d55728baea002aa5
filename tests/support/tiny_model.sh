# Sourced by tests of the program, after cli.sh: a tiny byte-level model and data for it, made in a second.
# shellcheck shell=sh
: "${work:?source cli.sh first}"

# make_data: $work/data with train.jsonl and valid.jsonl, and $work/text.txt.
make_data() {
  mkdir -p "$work/data"
  i=0
  while [ $i -lt 48 ]; do
    echo "{\"text\": \"$i plus $i is $((i + i)).\"}"
    i=$((i + 1))
  done >"$work/all.jsonl"
  head -n 40 "$work/all.jsonl" >"$work/data/train.jsonl"
  tail -n 8 "$work/all.jsonl" >"$work/data/valid.jsonl"
  cut -d '"' -f 4 "$work/all.jsonl" >"$work/text.txt"
}

# make_config_of HIDDEN INTERMEDIATE LAYERS HEADS KEY_VALUE_HEADS: $work/config.json.
make_config_of() {
  cat >"$work/config.json" <<END
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "bos_token_id": 256,
 "eos_token_id": 257, "hidden_size": $1, "intermediate_size": $2, "num_hidden_layers": $3,
 "num_attention_heads": $4, "num_key_value_heads": $5, "max_position_embeddings": 64,
 "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
END
}
# make_config: $work/config.json of the tiny one.
make_config() { make_config_of 32 48 2 4 2; }

# make_model: $work/base, a model folder, from $work/data.
make_model() {
  make_data
  make_config
  expect_exit 0 "$CALDERA_BIN" pretrain --device cpu --config "$work/config.json" --data "$work/data" \
    --out "$work/base" --iterations 3 --seed 1
}

# fingerprint DIR: one line for all names and contents below it.
fingerprint() { (cd "$1" && find . -type f | sort | xargs sha256sum | sha256sum); }
