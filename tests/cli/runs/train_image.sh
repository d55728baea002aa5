# caldera train-image: trains, says how well, goes on from its weights, and refuses what does not fit.
# shellcheck source=tests/support/cli.sh
. tests/support/cli.sh

# Digits that are bars of three directions, in the files of MNIST.
python3 - "$work" <<'PYTHON'
import gzip, os, struct, sys
def write(prefix, count):
    images, labels = bytearray(), bytearray()
    for i in range(count):
        kind, at = i % 3, 8 + i * 7 % 13
        labels.append(kind)
        for y in range(28):
            for x in range(28):
                place = (x, y, (x + y) // 2)[kind]
                images.append(230 if abs(place - at) < 2 else (x * 31 + y * 17 + i * 13) % 40)
    folder = os.path.join(sys.argv[1], "bars")
    os.makedirs(folder, exist_ok=True)
    with gzip.open(os.path.join(folder, prefix + "-images-idx3-ubyte.gz"), "wb", 1) as f:
        f.write(struct.pack(">IIII", 2051, count, 28, 28) + images)
    with gzip.open(os.path.join(folder, prefix + "-labels-idx1-ubyte.gz"), "wb", 1) as f:
        f.write(struct.pack(">II", 2049, count) + labels)
write("train", 600)
write("t10k", 150)
PYTHON

image() {
  "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/bars" --seed 1 --json "$@" 2>"$work/stderr" ||
    fail "train-image $*: $(cat "$work/stderr")"
}

image --iterations 60 --learning-rate 0.02 --optimizer-option momentum=0.9 --out "$work/run" --log "$work/log.jsonl" >"$work/run.json"
for file in model.safetensors metrics.json report.html; do [ -s "$work/run/$file" ] || fail "no $file"; done
image --evaluate --weights "$work/run/model.safetensors" >"$work/again.json"
image --iterations 1 --learning-rate 1e-12 --weights "$work/run/model.safetensors" >"$work/third.json"
python3 - "$work" <<'PYTHON' || fail "what train-image said"
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/{name}"))
run, again, third = read("run.json"), read("again.json"), read("third.json")
assert set(run) == {"accuracy", "top5", "loss", "images_per_second"}, run
assert run["accuracy"] > 0.95 and run["top5"] == 1, run
assert again["accuracy"] == run["accuracy"] == third["accuracy"], (run, again, third)
assert abs(again["loss"] - run["loss"]) < 1e-6, (run, again)
metrics = read("run/metrics.json")
assert sum(map(sum, metrics["confusion"])) == 150, metrics
lines = [json.loads(line) for line in open(f"{sys.argv[1]}/log.jsonl")]
assert [line["step"] for line in lines] == list(range(1, 61)), lines[-1]
assert lines[-1]["loss"] < lines[0]["loss"] / 2, (lines[0], lines[-1])
PYTHON

expect_exit 1 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/nothing"
grep -q 'nothing' "$work/stderr" || fail "the folder that is missing is not named"
expect_exit 2 "$CALDERA_BIN" train-image --device cpu --model lenet6 --data "$work/bars"
expect_exit 2 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/bars" --evaluate
expect_exit 1 "$CALDERA_BIN" train-image --device cpu --model resnet18 --data "$work/bars" --evaluate --weights "$work/run/model.safetensors"
printf 'no weights' >"$work/broken.safetensors"
expect_exit 1 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/bars" --evaluate --weights "$work/broken.safetensors"
# Labels of fewer images than there are.
mkdir "$work/cut"
cp "$work"/bars/* "$work/cut"
python3 -c 'import gzip, sys; p = sys.argv[1]; d = gzip.open(p).read(); gzip.open(p, "wb").write(d[:300])' "$work/cut/train-labels-idx1-ubyte.gz"
expect_exit 1 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/cut"
grep -q 'train-labels' "$work/stderr" || fail "the file that is cut off is not named"
