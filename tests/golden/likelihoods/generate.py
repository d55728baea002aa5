#!/usr/bin/env python3
"""Writes requests.json, which tests/cli/serving/likelihoods.sh sends to a server: requests of lm-evaluation-harness and the
log-likelihoods that it should read from the answers.

    python3 tests/golden/likelihoods/generate.py STORIES260K

The requests are those that the harness's model "local-completions" sends (lm_eval/models/openai_completions.py of 2025:
_create_payload, with batch_size 4 and tokenized requests): token ids, echo, one token more, the most likely token beside each.
Contexts and continuations are parts of the model's own greedy text, of it with a token changed, and of ids drawn at random;
windows of a long text with one token of context are what "loglikelihood_rolling" asks. The expected sums are those of a Llama
in plain PyTorch, in float64: nothing here shares code with Caldera. It needs Debian's python3-torch.
"""

import json
import math
import pathlib
import random
import struct
import sys

import torch
import torch.nn.functional as F


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        tensors[name] = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]), dtype=torch.float32).reshape(
            entry["shape"]).double()
    return tensors


class Llama:
    def __init__(self, folder):
        self.c = json.loads((folder / "config.json").read_text())
        self.w = read_safetensors(folder / "model.safetensors")

    def norm(self, x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.c["rms_norm_eps"]) * self.w[weight]

    def rotated(self, x):  # (heads, positions, head_dim), pairs as Hugging Face has them
        half = x.shape[-1] // 2
        frequencies = self.c["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequencies
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    def log_probabilities(self, ids):
        c, w = self.c, self.w
        n, heads, kv, dim = len(ids), c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        x = w["model.embed_tokens.weight"][torch.tensor(ids)]
        hidden = torch.full((n, n), -math.inf, dtype=torch.float64).triu(1)
        for i in range(c["num_hidden_layers"]):
            layer = f"model.layers.{i}."

            def linear(y, name, layer=layer):
                return y @ w[layer + name + ".weight"].T

            y = self.norm(x, layer + "input_layernorm.weight")
            q, k, v = (linear(y, f"self_attn.{p}_proj").reshape(n, h, dim).transpose(0, 1)
                       for p, h in (("q", heads), ("k", kv), ("v", kv)))
            q, k = self.rotated(q), self.rotated(k)
            k, v = (t.repeat_interleave(heads // kv, 0) for t in (k, v))
            attended = (q @ k.transpose(1, 2) / math.sqrt(dim) + hidden).softmax(-1) @ v
            x = x + linear(attended.transpose(0, 1).reshape(n, heads * dim), "self_attn.o_proj")
            y = self.norm(x, layer + "post_attention_layernorm.weight")
            x = x + linear(F.silu(linear(y, "mlp.gate_proj")) * linear(y, "mlp.up_proj"), "mlp.down_proj")
        return (self.norm(x, "model.norm.weight") @ w["model.embed_tokens.weight"].T).log_softmax(-1)

    def likelihood(self, context, continuation):
        rows = self.log_probabilities(context + continuation)[len(context) - 1:-1]
        told = rows[range(len(continuation)), continuation]
        return {"log_likelihood": told.sum().item(), "greedy": bool((rows.argmax(-1) == torch.tensor(continuation)).all())}


def main():
    folder = pathlib.Path(sys.argv[1])
    model = Llama(folder)
    greedy = [int(word) for word in (folder / "greedy_token_ids_200.txt").read_text().split()]
    rng = random.Random(7)
    pairs = [([greedy[0]], greedy[1:200])]  # a rolling window
    for _ in range(15):
        begin = rng.randrange(1, 120)
        context, continuation = greedy[:begin], greedy[begin:begin + rng.randrange(1, 40)]
        kind = rng.randrange(3)
        if kind == 1:
            continuation[rng.randrange(len(continuation))] = rng.randrange(3, 512)
        if kind == 2:
            context = [1] + [rng.randrange(3, 512) for _ in range(rng.randrange(1, 300))]
        pairs.append((context, continuation))
    requests = []
    for first in range(0, len(pairs), 4):
        batch = pairs[first:first + 4]
        payload = {"model": "stories", "prompt": [c + n for c, n in batch], "temperature": 0, "max_tokens": 1, "logprobs": 1,
                   "seed": 1234, "echo": True}
        requests.append({"request": payload, "context_lengths": [len(c) for c, _ in batch],
                         "expected": [model.likelihood(c, n) for c, n in batch]})
    out = pathlib.Path(__file__).with_name("requests.json")
    out.write_text("[" + ",\n ".join(json.dumps(request) for request in requests) + "]\n")


if __name__ == "__main__":
    main()
