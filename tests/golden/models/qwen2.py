#!/usr/bin/env python3
"""Makes tests/golden/models/qwen2-*: small random Qwen2 models with a LoRA adapter, and what they compute.

    tests/golden/models/qwen2.py

needs Debian's python3-torch. The forward pass below is plain PyTorch in float64, written from the equations of Hugging
Face's Qwen2ForCausalLM (RMSNorm, rotary positions in the rotate_half convention, grouped-query attention with biases on
q, k and v alone, SwiGLU) and of PEFT's LoRA (y = W x + b + alpha / r * B A x); gradients are PyTorch's own. It shares
no code with Caldera and uses neither library.

A folder holds a model folder's config.json and model.safetensors, the adapter as PEFT writes it (adapter/), and
golden.safetensors: "ids" and "targets" (batch, positions), "hidden" (after the last norm), "logits", "loss" (the mean
cross-entropy), all with the adapter applied, "base_logits" without it, and the loss's gradient of every factor under
the factor's name in the adapter.
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


def configuration(tied):
    return {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 53, "hidden_size": 24,
        "intermediate_size": 36, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "attention_dropout": 0.0, "initializer_range": 0.02, "tie_word_embeddings": tied, "use_sliding_window": False,
        "sliding_window": 32, "max_window_layers": 2, "use_cache": True, "torch_dtype": "float32",
        "bos_token_id": 1, "eos_token_id": 2,
    }


def widths(c):
    d = c["hidden_size"] // c["num_attention_heads"]
    h, kv, m = c["hidden_size"], c["num_key_value_heads"] * d, c["intermediate_size"]
    return {"q_proj": (h, h), "k_proj": (h, kv), "v_proj": (h, kv), "o_proj": (h, h),
            "gate_proj": (h, m), "up_proj": (h, m), "down_proj": (m, h)}


def random_weights(c, generator):
    """Large enough that every part matters: logits differ by far more than 1. Values that float32 holds."""
    def normal(*shape, scale=1.0, centre=0.0):
        return (centre + scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).float().double()

    w = {"model.embed_tokens.weight": normal(c["vocab_size"], c["hidden_size"])}
    factors = {}
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for parent, names in PROJECTIONS.items():
            for name in names:
                n_in, n_out = widths(c)[name]
                path = f"{layer}{parent}.{name}"
                w[path + ".weight"] = normal(n_out, n_in, scale=1.2 / math.sqrt(n_in))
                if name in ("q_proj", "k_proj", "v_proj"):
                    w[path + ".bias"] = normal(n_out, scale=0.7)
                prefix = "base_model.model." + path
                factors[prefix + ".lora_A.weight"] = normal(RANK, n_in, scale=0.8 / math.sqrt(n_in))
                factors[prefix + ".lora_B.weight"] = normal(n_out, RANK, scale=0.5)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            w[f"{layer}{norm}.weight"] = normal(c["hidden_size"], scale=0.3, centre=1.0)
    w["model.norm.weight"] = normal(c["hidden_size"], scale=0.3, centre=1.0)
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


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def project(x, path):
        y = x @ w[path + ".weight"].T
        if path + ".bias" in w:
            y = y + w[path + ".bias"]
        a = factors.get(f"base_model.model.{path}.lora_A.weight")
        if a is None:
            return y
        return y + ALPHA / RANK * (x @ a.T) @ factors[f"base_model.model.{path}.lora_B.weight"].T

    b, t = ids.shape
    heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
    d = c["hidden_size"] // heads
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        n = rms_norm(x, w[p + "input_layernorm.weight"], c["rms_norm_eps"])
        q = project(n, p + "self_attn.q_proj").view(b, t, heads, d).transpose(1, 2)
        k = project(n, p + "self_attn.k_proj").view(b, t, groups, d).transpose(1, 2)
        v = project(n, p + "self_attn.v_proj").view(b, t, groups, d).transpose(1, 2)
        q, k = rotate(q, c["rope_theta"]), rotate(k, c["rope_theta"])
        k, v = (s.repeat_interleave(heads // groups, dim=1) for s in (k, v))
        scores = (q @ k.transpose(2, 3) / math.sqrt(d)).masked_fill(~causal, -math.inf)
        attended = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, heads * d)
        x = x + project(attended, p + "self_attn.o_proj")
        n = rms_norm(x, w[p + "post_attention_layernorm.weight"], c["rms_norm_eps"])
        x = x + project(F.silu(project(n, p + "mlp.gate_proj")) * project(n, p + "mlp.up_proj"), p + "mlp.down_proj")
    hidden = rms_norm(x, w["model.norm.weight"], c["rms_norm_eps"])
    head = w["model.embed_tokens.weight"] if c["tie_word_embeddings"] else w["lm_head.weight"]
    return hidden, hidden @ head.T


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


def make(folder, tied, seed):
    c = configuration(tied)
    generator = torch.Generator().manual_seed(seed)
    w, factors = random_weights(c, generator)
    ids = torch.randint(c["vocab_size"], (2, 9), generator=generator)
    targets = torch.randint(c["vocab_size"], (2, 9), generator=generator)

    base_logits = forward(c, w, {}, ids)[1]
    for factor in factors.values():
        factor.requires_grad_(True)
    hidden, logits = forward(c, w, factors, ids)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    grads = torch.autograd.grad(loss, list(factors.values()))
    for name, l in (("base", base_logits), ("adapted", logits.detach())):
        assert (l.amax(-1) - l.amin(-1)).min() > 1, name
    assert (base_logits - logits.detach()).abs().max() > 1
    assert min(g.abs().max() for g in grads) > 1e-3

    (folder / "adapter").mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    write_safetensors(folder / "model.safetensors", w)
    adapter = {"base_model_name_or_path": folder.name, "bias": "none", "fan_in_fan_out": False, "lora_alpha": ALPHA,
               "lora_dropout": 0.0, "peft_type": "LORA", "r": RANK, "target_modules": "all-linear",
               "task_type": "CAUSAL_LM"}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(adapter, indent=2) + "\n")
    write_safetensors(folder / "adapter" / "adapter_model.safetensors", {n: f.detach() for n, f in factors.items()})
    write_safetensors(folder / "golden.safetensors", {
        "ids": ids, "targets": targets, "hidden": hidden.detach(), "logits": logits.detach(),
        "base_logits": base_logits, "loss": loss.detach().reshape(1), **dict(zip(factors, grads))})


if __name__ == "__main__":
    make(HERE / "qwen2-untied", tied=False, seed=1)
    make(HERE / "qwen2-tied", tied=True, seed=2)
