#!/usr/bin/env python3
"""Makes tests/golden/models/phi3-*: texts up to the original context and beyond it.

Hugging Face's Phi3ForCausalLM: Llama's layer (llama.py) with qkv_proj, whose outputs are queries, then keys, then
values, and gate_up_proj, whose outputs are the gate, then what it multiplies. Of each head the first head_dim *
partial_rotary_factor features are rotated; with longrope their frequencies are divided by short_factor, or by
long_factor for texts longer than original_max_position_embeddings, and cosines and sines are multiplied by
sqrt(1 + ln(max_position_embeddings / original) / ln(original)).
"""

import math

import torch.nn.functional as F
from golden_model import Draw, attend, head_dim, heads_of, make, project, rms_norm, turn, visible
from rope import frequencies

CONFIGURATION = {
    "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "vocab_size": 41, "hidden_size": 32,
    "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "hidden_act": "silu", "max_position_embeddings": 24, "original_max_position_embeddings": 6, "rms_norm_eps": 1e-5,
    "rope_theta": 100.0, "partial_rotary_factor": 0.75, "sliding_window": 4, "tie_word_embeddings": True,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.5, 2.5, 4.0]},
    "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attention_dropout": 0.0, "attention_bias": False, "bos_token_id": 1,
    "eos_token_id": 2, "torch_dtype": "float32", "full_attn_mod": 1, "interpolate_factor": 1,
}


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c, embedding_scale=0.5)
    h, m, d = c["hidden_size"], c["intermediate_size"], head_dim(c)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.linear(p + "self_attn.qkv_proj", h, (c["num_attention_heads"] + 2 * c["num_key_value_heads"]) * d)
        draw.linear(p + "self_attn.o_proj", c["num_attention_heads"] * d, h)
        draw.linear(p + "mlp.gate_up_proj", h, 2 * m)
        draw.linear(p + "mlp.down_proj", m, h)
        for name in ("input_layernorm", "post_attention_layernorm"):
            draw.norm(p + name, h)
    return draw.result()


def attention(x, path, c, w, factors):
    d, n, g = head_dim(c), c["num_attention_heads"], c["num_key_value_heads"]
    rope = {**c["rope_scaling"], "original_max_position_embeddings": c["original_max_position_embeddings"]}
    inverse, scale = frequencies(int(d * c["partial_rotary_factor"]), c["rope_theta"], rope,
                                 c["max_position_embeddings"], x.shape[1])
    q, k, v = project(x, path + ".qkv_proj", w, factors).split([n * d, g * d, g * d], -1)
    q, k, v = turn(heads_of(q, n), inverse, scale), turn(heads_of(k, g), inverse, scale), heads_of(v, g)
    mask = visible(x.shape[1], c["sliding_window"])
    return project(attend(q, k, v, mask, 1 / math.sqrt(d)), path + ".o_proj", w, factors)


def mlp(x, path, w, factors):
    gate, up = project(x, path + ".gate_up_proj", w, factors).chunk(2, -1)
    return project(F.silu(gate) * up, path + ".down_proj", w, factors)


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(norm(x, p + "input_layernorm"), p + "self_attn", c, w, factors)
        x = x + mlp(norm(x, p + "post_attention_layernorm"), p + "mlp", w, factors)
    hidden = norm(x, "model.norm")
    return hidden, hidden @ w["model.embed_tokens.weight"].T


if __name__ == "__main__":
    make("phi3-long", CONFIGURATION, weights, forward, seed=81)
    short = {"original_max_position_embeddings": 12, "sliding_window": None}
    make("phi3-short", {**CONFIGURATION, **short}, weights, forward, seed=82)
