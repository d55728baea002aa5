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

# A run that stopped goes on to the last bit.
image --iterations 60 --learning-rate 0.02 --out "$work/whole" >/dev/null
image --iterations 31 --learning-rate 0.02 --save-every 20 --out "$work/parts" --log "$work/parts.jsonl" >/dev/null
image --iterations 60 --learning-rate 0.02 --resume --out "$work/parts" --log "$work/parts.jsonl" >/dev/null
cmp -s "$work/whole/model.safetensors" "$work/parts/model.safetensors" || fail "a resumed run has other weights"
[ "$(wc -l <"$work/parts.jsonl")" = 60 ] || fail "the log of a resumed run has not 60 lines"
expect_exit 1 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/bars" --seed 2 --resume --out "$work/parts"
grep -q 'ordered by seed 1' "$work/stderr" || fail "a run went on with another seed"
expect_exit 2 "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/bars" --resume

# What flags say is done: nothing is learned where gradients are clipped to nearly nothing.
image --iterations 20 --learning-rate 0.02 --max-grad-value 1e-12 --out "$work/still" >/dev/null
image --iterations 1 --learning-rate 1e-12 --out "$work/first" >/dev/null
python3 - "$work" <<'PYTHON' || fail "--max-grad-value"
import json, sys
still, first = (json.load(open(f"{sys.argv[1]}/{name}/metrics.json")) for name in ("still", "first"))
assert abs(still["loss"] - first["loss"]) < 1e-4, (still["loss"], first["loss"])
PYTHON

# An image for testing that is damaged is met after the training, whose weights are there then.
python3 - "$work" <<'PYTHON'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for number, name in enumerate(("train/a/1", "train/a/2", "train/b/3", "train/b/4", "test/a/5", "test/b/6")):
    path = f"{sys.argv[1]}/pictures/{name}.png"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = b"".join(b"\0" + bytes([40 * number] * 3 * 16) for _ in range(16))
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    open(path, "wb").write((b"\x89PNG\r\n\x1a\n" + body)[: 60 if number == 4 else None])
PYTHON
if "$CALDERA_BIN" train-image --device cpu --model lenet5 --data "$work/pictures" --image-size 16 --iterations 2 --out "$work/kept" 2>"$work/stderr"; then
  fail "a damaged image was read"
fi
grep -q 'libpng-dev' "$work/stderr" || { [ -s "$work/kept/model.safetensors" ] && grep -q '5.png' "$work/stderr"; } ||
  fail "the weights are lost: $(cat "$work/stderr")"
