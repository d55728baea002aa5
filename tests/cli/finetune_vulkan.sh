# Training on a Vulkan device takes the path it takes on the CPU: the first 50 losses agree.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?
require_vulkan

for device in cpu vulkan; do
  expect_exit 0 "$CALDERA_BIN" finetune --json --device $device --model "$model" --data "$data" --out "$work/$device" \
    --rank 8 --alpha 16 --target-modules all-linear --iterations 50 --batch-size 4 --learning-rate 1e-3 --seed 1 \
    --val-batches 1 --log "$work/$device.jsonl"
  losses "$work/$device.jsonl" >"$work/$device.losses"
done
paste "$work/vulkan.losses" "$work/cpu.losses" | awk '
  !/^[0-9.e-]+\t[0-9.e-]+$/ { print "step " NR ": not two numbers: " $0; bad = 1; exit }
  { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d }
  END { print "worst relative difference of a loss: " worst; exit bad || NR != 50 || !(worst <= 1e-3) }' ||
  fail "training on Vulkan differs from training on the CPU"
