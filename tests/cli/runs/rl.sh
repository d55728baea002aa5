# caldera rl: trains, goes on, evaluates, and refuses what does not fit.
# shellcheck source=tests/support/cli.sh
. tests/support/cli.sh

# rl ACTION FOLDER FLAGS...: on CartPole, with its JSON on standard output.
rl() {
  action=$1 folder=$2
  shift 2
  "$CALDERA_BIN" rl "$action" --device cpu --env CartPole-v1 --out "$work/$folder" --seed 1 --episodes 5 --json "$@" 2>"$work/stderr" ||
    fail "rl $action: $(cat "$work/stderr")"
}

# A run, and one that goes on where it ended.
rl train whole --steps 1024 >"$work/whole.json"
rl train parts --steps 512 --learning-rate 0.001 >/dev/null
rl train parts --steps 1024 --learning-rate 0.001 --resume >/dev/null
python3 - "$work/whole.json" <<'PYTHON' || fail "the JSON of rl train"
import json, sys
document = json.load(open(sys.argv[1]))
assert set(document) == {"episodes", "mean_return", "std_return", "steps_per_second"}, document
assert document["episodes"] == 5 and 8 <= document["mean_return"] <= 500 and document["steps_per_second"] > 0, document
PYTHON
head -n 1 "$work/whole/progress.csv" | grep -q '^steps,episodes,mean_return,.*policy_loss' || fail "progress.csv has no names"
grep -q 'PPO learns CartPole-v1' "$work/whole/report.html" || fail "no page"
grep -q '"returns":\[[0-9]' "$work/whole/report.html" || fail "the page has no returns of the evaluation"
ls "$work"/whole/events.out.tfevents.* >/dev/null || fail "no file for TensorBoard"

rl evaluate whole >"$work/evaluated.json"
[ "$(sed 's/,"steps_per_second.*//' "$work/whole.json")" = "$(sed 's/,"steps_per_second.*//' "$work/evaluated.json")" ] ||
  fail "rl evaluate differs from what rl train said: $(cat "$work/whole.json" "$work/evaluated.json")"

expect_exit 1 "$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --out "$work/whole" --steps 10
grep -q 'add --resume' "$work/stderr" || fail "an agent would be overwritten"
expect_exit 1 "$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --algorithm sac --out "$work/other" --steps 10
grep -q 'PPO takes choices' "$work/stderr" || fail "SAC took choices"
expect_exit 2 "$CALDERA_BIN" rl train --device cpu --env Pong-v5 --out "$work/other"
grep -q 'valid: CartPole-v1' "$work/stderr" || fail "no list of environments"
expect_exit 2 "$CALDERA_BIN" rl walk --env CartPole-v1 --out "$work/other"
expect_exit 1 "$CALDERA_BIN" rl evaluate --device cpu --env Pendulum-v1 --out "$work/whole"
expect_exit 1 "$CALDERA_BIN" rl evaluate --device cpu --env CartPole-v1 --out "$work/nothing"

# Two runs do not write to one folder, and one that was killed leaves it free.
"$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --out "$work/shared" --steps 1000000000 >/dev/null 2>&1 &
other=$!
trap 'kill -9 "$other" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ -e "$work/shared/progress.csv" ] && break
  sleep 0.2
done
expect_exit 1 "$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --out "$work/shared" --steps 256
grep -q 'another run' "$work/stderr" || fail "two runs wrote to one folder: $(cat "$work/stderr")"
kill -9 "$other"
wait "$other" 2>/dev/null || true
rl train shared --steps 256 >/dev/null
# What is learned at such a rate are no numbers.
expect_exit 1 "$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --out "$work/fast" --steps 2000 --learning-rate 1e30
grep -q 'lower the learning rate' "$work/stderr" || fail "nothing is said of losses that are no numbers"
expect_exit 2 "$CALDERA_BIN" rl train --device cpu --env CartPole-v1 --out ""
