#!/usr/bin/env python3
"""Makes tests/golden/models/gpt2, with the names of the first checkpoints, which leave out "transformer.".

Hugging Face's GPT2LMHeadModel: x = wte[ids] + wpe[positions]; x = x + c_proj(attention(c_attn(ln_1(x)))),
x = x + c_proj(gelu_new(c_fc(ln_2(x)))); LayerNorm with bias; c_attn gives queries, keys and values of the whole width one
after the other; all matrices lie (in, out) and have biases; logits are those of tied embeddings.
"""

import math

import torch.nn.functional as F
from golden_model import ALPHA, RANK, Draw, attend, gelu_tanh, heads_of, make, visible

CONFIGURATION = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 41, "n_embd": 16, "n_layer": 2, "n_head": 2,
    "n_positions": 24, "n_ctx": 24, "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
    "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "summary_type": "cls_index", "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True}}, "bos_token_id": 1, "eos_token_id": 1,
}


def weights(c, generator):
    draw = Draw(generator)
    h = c["n_embd"]
    draw.put("wte.weight", c["vocab_size"], h, scale=0.7)
    draw.put("wpe.weight", c["n_positions"], h, scale=0.7)
    for i in range(c["n_layer"]):
        p = f"transformer.h.{i}."
        for name, n_in, n_out in (("attn.c_attn", h, 3 * h), ("attn.c_proj", h, h), ("mlp.c_fc", h, 4 * h),
                                  ("mlp.c_proj", 4 * h, h)):
            draw.linear(p + name, n_in, n_out, bias=True, turned=True)
        for name in ("ln_1", "ln_2"):
            draw.norm(p + name, h, bias=True)
    draw.norm("ln_f", h, bias=True)
    w, factors = draw.result()
    return {name.removeprefix("transformer."): value for name, value in w.items()}, factors


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    h = c["n_embd"]

    def norm(x, path):
        return F.layer_norm(x, (h,), w[path + ".weight"], w[path + ".bias"], c["layer_norm_epsilon"])

    def conv(x, path):
        y = x @ w[path + ".weight"] + w[path + ".bias"]
        a = factors.get(f"base_model.model.transformer.{path}.lora_A.weight")
        b = factors.get(f"base_model.model.transformer.{path}.lora_B.weight")
        return y if a is None else y + ALPHA / RANK * x @ a.T @ b.T

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(c["n_layer"]):
        p = f"h.{i}."
        q, k, v = (heads_of(y, c["n_head"]) for y in conv(norm(x, p + "ln_1"), p + "attn.c_attn").chunk(3, -1))
        out = attend(q, k, v, visible(ids.shape[1]), 1 / math.sqrt(h / c["n_head"]))
        x = x + conv(out, p + "attn.c_proj")
        x = x + conv(gelu_tanh(conv(norm(x, p + "ln_2"), p + "mlp.c_fc")), p + "mlp.c_proj")
    hidden = norm(x, "ln_f")
    return hidden, hidden @ w["wte.weight"].T


if __name__ == "__main__":
    make("gpt2", CONFIGURATION, weights, forward, seed=111)
