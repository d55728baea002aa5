#!/bin/sh
# caldera scale: its figures are those of the formulas that training/trainer/scaling.h states.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_config
expect_exit 0 "$CALDERA_BIN" scale --config "$work/config.json" --nodes 1,2..16 --link 1GbE,NVLink --rank 0 --tokens 512 \
  --tflops 0.05 --json
[ "$(grep -o '"nodes"' "$work/stdout" | wc -l)" = 10 ] || fail "two links of five numbers of nodes: $(cat "$work/stdout")"
# Of 4 nodes over 1 Gb/s: S = 4 bytes of all parameters, one part of less than 128 KiB.
parameters=$(json_number parameters "$work/stdout")
tr '{' '\n' <"$work/stdout" | grep '"link":"1GbE","nodes":4' >"$work/row"
awk -v p="$parameters" -v step="$(json_number step_ms "$work/row")" -v traffic="$(json_number traffic_bytes "$work/row")" \
  -v memory="$(json_number rank_bytes "$work/row")" 'BEGIN {
    compute = (2 * p + 4 * p) * 512 / 0.05e12
    sent = 2 * 4 * p * 3 / 4
    waiting = 2 * 3 * 50e-6 + sent / (0.9e9 / 8)
    off = step / (1000 * (compute + waiting)) - 1
    exit !(off < 1e-3 && off > -1e-3 && traffic == sent && memory == 16 * p)
  }' || fail "not the formulas: $(cat "$work/row")"
expect_exit 2 "$CALDERA_BIN" scale --config "$work/config.json" --link carrier
grep -q "is not known" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" scale --config "$work/config.json" --nodes 8..2 --tflops 1
grep -q -- "--nodes: 8..2 has no number of nodes; use 2..8" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" scale --config "$work/config.json" --tflops 0
# 512 MiB of gradients go in 32 parts of 16 MiB: what is not hidden behind the backward pass is one of them.
make_config_of 2048 8192 2 32 32
expect_exit 0 "$CALDERA_BIN" scale --config "$work/config.json" --nodes 4 --link NVLink --rank 0 --tokens 65536 --tflops 1 --json
awk -v p="$(json_number parameters "$work/stdout")" -v step="$(json_number step_ms "$work/stdout")" 'BEGIN {
    compute = (2 * p + 4 * p) * 65536 / 1e12
    parts = int(4 * p / (16 * 2 ^ 20))
    waiting = 2 * 3 * 3e-6 + 2 * 4 * p * 3 / 4 / (0.9 * 150e9) / parts
    exit !(parts > 30 && (step / 1000 - compute) / waiting < 1.01 && (step / 1000 - compute) / waiting > 0.99)
  }' || fail "gradients in more than 8 parts: $(cat "$work/stdout")"
