"""What the scripts beside this one share: the pieces of a decoder in plain PyTorch, and make(), which writes a folder.

A folder holds a model folder's config.json and model.safetensors, the adapter as PEFT writes it (adapter/), and
golden.safetensors: "ids" and "targets" (batch, positions), "hidden" (after the last norm), "logits", "loss" (the mean
cross-entropy), all with the adapter applied, "base_logits" without it, and the loss's gradient of every factor under
the factor's name in the adapter. tests/lm/families/family_test.cpp reads them.

A family's script gives make() a configuration, random weights and a forward pass, all in float64. Nothing here shares
code with Caldera or uses transformers or PEFT. It needs Debian's python3-torch.
"""

import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
RANK, ALPHA = 3, 7.0
PROJECTIONS = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def head_dim(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def widths(c):
    """(in, out) of each projection of a layer."""
    q, kv = c["num_attention_heads"] * head_dim(c), c["num_key_value_heads"] * head_dim(c)
    h, m = c["hidden_size"], c["intermediate_size"]
    return {"q_proj": (h, q), "k_proj": (h, kv), "v_proj": (h, kv), "o_proj": (q, h),
            "gate_proj": (h, m), "up_proj": (h, m), "down_proj": (m, h)}


def random_weights(c, generator, biases=(), norm_centre=1.0, embedding_scale=1.0):
    """Weights and LoRA factors by name, with biases on the projections named. Large enough that every part matters:
    logits differ by far more than 1. Values that float32 holds."""
    def normal(*shape, scale=1.0, centre=0.0):
        return (centre + scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).float().double()

    w = {"model.embed_tokens.weight": normal(c["vocab_size"], c["hidden_size"], scale=embedding_scale)}
    factors = {}
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for parent, names in PROJECTIONS.items():
            for name in names:
                n_in, n_out = widths(c)[name]
                path = f"{layer}{parent}.{name}"
                w[path + ".weight"] = normal(n_out, n_in, scale=1.2 / math.sqrt(n_in))
                if name in biases:
                    w[path + ".bias"] = normal(n_out, scale=0.7)
                prefix = "base_model.model." + path
                factors[prefix + ".lora_A.weight"] = normal(RANK, n_in, scale=0.8 / math.sqrt(n_in))
                factors[prefix + ".lora_B.weight"] = normal(n_out, RANK, scale=0.5)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            w[f"{layer}{norm}.weight"] = normal(c["hidden_size"], scale=0.3, centre=norm_centre)
    w["model.norm.weight"] = normal(c["hidden_size"], scale=0.3, centre=norm_centre)
    if not c["tie_word_embeddings"]:
        w["lm_head.weight"] = normal(c["vocab_size"], c["hidden_size"], scale=0.5)
    return w, factors


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """x (batch, heads, positions, d): the pair (i, i + d / 2) turned by position * theta^(-2i / d)."""
    d, t = x.shape[-1], x.shape[-2]
    angles = torch.arange(t, dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    first, second = x[..., : d // 2], x[..., d // 2:]
    return x * cos + torch.cat([-second, first], -1) * sin


def project(x, path, w, factors):
    """The linear map of that name, with its bias and its LoRA factors where there are any."""
    y = x @ w[path + ".weight"].T
    if path + ".bias" in w:
        y = y + w[path + ".bias"]
    a = factors.get(f"base_model.model.{path}.lora_A.weight")
    if a is None:
        return y
    return y + ALPHA / RANK * (x @ a.T) @ factors[f"base_model.model.{path}.lora_B.weight"].T


def attention(x, path, c, w, factors):
    """Causal grouped-query attention with rotary positions, on x (batch, positions, hidden)."""
    b, t, _ = x.shape
    heads, groups, d = c["num_attention_heads"], c["num_key_value_heads"], head_dim(c)
    q = project(x, path + ".q_proj", w, factors).view(b, t, heads, d).transpose(1, 2)
    k = project(x, path + ".k_proj", w, factors).view(b, t, groups, d).transpose(1, 2)
    v = project(x, path + ".v_proj", w, factors).view(b, t, groups, d).transpose(1, 2)
    q, k = rotate(q, c["rope_theta"]), rotate(k, c["rope_theta"])
    k, v = (s.repeat_interleave(heads // groups, dim=1) for s in (k, v))
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    scores = (q @ k.transpose(2, 3) / math.sqrt(d)).masked_fill(~causal, -math.inf)
    attended = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, heads * d)
    return project(attended, path + ".o_proj", w, factors)


def gated_mlp(x, path, activation, w, factors):
    gate = activation(project(x, path + ".gate_proj", w, factors))
    return project(gate * project(x, path + ".up_proj", w, factors), path + ".down_proj", w, factors)


class Draw:
    """Random weights and LoRA factors by name, for models whose layers are not all alike."""

    def __init__(self, generator):
        self.generator, self.w, self.factors = generator, {}, {}

    def normal(self, *shape, scale=1.0, centre=0.0):
        """Values that float32 holds."""
        values = centre + scale * torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        return values.float().double()

    def put(self, name, *shape, scale=1.0, centre=0.0):
        self.w[name] = self.normal(*shape, scale=scale, centre=centre)

    def linear(self, path, n_in, n_out, bias=False, lora=True, gain=1.0, turned=False):
        """A matrix (out, in), or (in, out) where it is turned, with LoRA factors."""
        shape = (n_in, n_out) if turned else (n_out, n_in)
        self.put(path + ".weight", *shape, scale=gain / math.sqrt(n_in))
        if bias:
            self.put(path + ".bias", n_out, scale=0.5)
        if lora:
            prefix = "base_model.model." + path
            self.factors[prefix + ".lora_A.weight"] = self.normal(RANK, n_in, scale=0.8 / math.sqrt(n_in))
            self.factors[prefix + ".lora_B.weight"] = self.normal(n_out, RANK, scale=0.5)

    def norm(self, path, width, centre=1.0, bias=False):
        self.put(path + ".weight", width, scale=0.3, centre=centre)
        if bias:
            self.put(path + ".bias", width, scale=0.3)

    def attention(self, path, c, bias=""):
        """q_proj to o_proj, with biases on those whose letters are in `bias`."""
        h, q = c["hidden_size"], c["num_attention_heads"] * head_dim(c)
        kv = c["num_key_value_heads"] * head_dim(c)
        for name, n_in, n_out in (("q", h, q), ("k", h, kv), ("v", h, kv), ("o", q, h)):
            self.linear(f"{path}.{name}_proj", n_in, n_out, bias=name in bias)

    def mlp(self, path, hidden, intermediate):
        for name in ("gate_proj", "up_proj"):
            self.linear(f"{path}.{name}", hidden, intermediate)
        self.linear(f"{path}.down_proj", intermediate, hidden)

    def ends(self, c, embedding_scale=1.0, norm_centre=1.0):
        """Embeddings, last norm and head."""
        self.put("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"], scale=embedding_scale)
        self.norm("model.norm", c["hidden_size"], centre=norm_centre)
        if not c["tie_word_embeddings"]:
            self.put("lm_head.weight", c["vocab_size"], c["hidden_size"], scale=0.5)

    def result(self):
        return self.w, self.factors


def turn(x, frequencies, scale=1.0):
    """x (batch, heads, positions, d): of its first 2 len(frequencies) features, pair i turned by position *
    frequencies[i]. Cosines and sines are multiplied by the scale."""
    n = len(frequencies)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequencies
    cos, sin = angles.cos() * scale, angles.sin() * scale
    first, second, rest = x[..., :n], x[..., n: 2 * n], x[..., 2 * n:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def visible(t, window=None):
    """Which key each query may look at: itself and those before it, `window` of them at most."""
    i, j = torch.arange(t)[:, None], torch.arange(t)
    return (j <= i) if window is None else (j <= i) & (j > i - window)


def heads_of(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def attend(q, k, v, mask, scale, softcap=None, sinks=None):
    """q (batch, heads, positions, d), k and v (batch, groups, positions, d), to (batch, positions, heads * d). Sinks
    are one more column of scores, whose weight is dropped."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.masked_fill(~mask, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    weights = scores.softmax(-1)[..., : k.shape[2]]
    assert weights.std() > 0.02, "attention is all but uniform"
    return (weights @ v).transpose(1, 2).flatten(2)


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        integer = not tensor.is_floating_point()
        values = tensor.flatten().tolist()
        raw = struct.pack(f"<{len(values)}{'i' if integer else 'f'}", *values)
        header[name] = {"dtype": "I32" if integer else "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_folder(name, c, w, factors, golden):
    folder = HERE / name
    (folder / "adapter").mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    write_safetensors(folder / "model.safetensors", w)
    adapter = {"base_model_name_or_path": folder.name, "bias": "none", "fan_in_fan_out": False, "lora_alpha": ALPHA,
               "lora_dropout": 0.0, "peft_type": "LORA", "r": RANK, "target_modules": "all-linear",
               "task_type": "CAUSAL_LM"}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(adapter, indent=2) + "\n")
    write_safetensors(folder / "adapter" / "adapter_model.safetensors", {n: f.detach() for n, f in factors.items()})
    write_safetensors(folder / "golden.safetensors", golden)


def make(name, c, make_weights, forward, seed):
    """Writes the folder `name` beside this file. `make_weights(c, generator)` returns weights and LoRA factors by name;
    `forward(c, w, factors, ids)` the hidden states after the last norm, and the logits."""
    generator = torch.Generator().manual_seed(seed)
    w, factors = make_weights(c, generator)
    ids = torch.randint(c["vocab_size"], (2, 9), generator=generator)
    targets = torch.randint(c["vocab_size"], (2, 9), generator=generator)

    base_logits = forward(c, w, {}, ids)[1]
    for factor in factors.values():
        factor.requires_grad_(True)
    hidden, logits = forward(c, w, factors, ids)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    grads = torch.autograd.grad(loss, list(factors.values()))
    for which, l in (("base", base_logits), ("adapted", logits.detach())):
        assert (l.amax(-1) - l.amin(-1)).min() > 1, which
    assert (base_logits - logits.detach()).abs().max() > 1
    assert min(g.abs().max() for g in grads) > 1e-3
    write_folder(name, c, w, factors, {
        "ids": ids, "targets": targets, "hidden": hidden.detach(), "logits": logits.detach(),
        "base_logits": base_logits, "loss": loss.detach().reshape(1), **dict(zip(factors, grads))})


def make_encoder(name, c, make_weights, forward, seed):
    """The same of an encoder: `forward` returns the last hidden states. The loss is a twentieth of the sum of their
    products with "weights", random ones; "base_hidden" is without the adapter."""
    generator = torch.Generator().manual_seed(seed)
    w, factors = make_weights(c, generator)
    ids = torch.randint(c["vocab_size"], (2, 9), generator=generator)
    base_hidden = forward(c, w, {}, ids)
    for factor in factors.values():
        factor.requires_grad_(True)
    hidden = forward(c, w, factors, ids)
    weights = torch.randn(hidden.shape, generator=generator, dtype=torch.float64).float().double()
    loss = (hidden * weights).sum() / 20
    grads = torch.autograd.grad(loss, list(factors.values()))
    assert (base_hidden - hidden.detach()).abs().max() > 0.5
    assert min(g.abs().max() for g in grads) > 1e-3
    write_folder(name, c, w, factors, {
        "ids": ids, "hidden": hidden.detach(), "base_hidden": base_hidden, "weights": weights,
        "loss": loss.detach().reshape(1), **dict(zip(factors, grads))})
