#!/usr/bin/env python3
"""Makes tests/golden/models/llama-*: Llama with every way to stretch its rotary positions, each at lengths beyond the
original context.

Hugging Face's LlamaForCausalLM: h = x + o(attention(rms_norm(x))), y = h + down(silu(gate(n)) * up(n)) with
n = rms_norm(h); queries and keys are rotated in the rotate_half convention with the frequencies of rope.py; scores are
divided by sqrt(head_dim); no biases.
"""

import math

import torch.nn.functional as F
from golden_model import Draw, attend, gated_mlp, head_dim, heads_of, make, project, rms_norm, turn, visible
from rope import frequencies

SHARED = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 41, "hidden_size": 16,
    "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "attention_bias": False, "mlp_bias": False, "pretraining_tp": 1, "bos_token_id": 1, "eos_token_id": [2, 3],
}
VARIANTS = {
    "linear": {"rope_theta": 100.0, "rope_scaling": {"type": "linear", "factor": 2.5}, "max_position_embeddings": 6},
    "dynamic": {"rope_theta": 100.0, "rope_scaling": {"rope_type": "dynamic", "factor": 3.0},
                "max_position_embeddings": 5},
    # Of the four pairs one is kept, one mixed, two are stretched.
    "llama3": {"rope_parameters": {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 0.3,
                                   "high_freq_factor": 1.2, "original_max_position_embeddings": 8},
               "dtype": "float32"},
    "yarn": {"rope_theta": 100.0, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 6, "beta_fast": 1.5, "beta_slow": 0.05,
        "mscale": 1.5, "mscale_all_dim": 0.5}, "torch_dtype": "float32", "max_position_embeddings": 24},
}


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c)
        draw.mlp(p + "mlp", c["hidden_size"], c["intermediate_size"])
        for name in ("input_layernorm", "post_attention_layernorm"):
            draw.norm(p + name, c["hidden_size"])
    return draw.result()


def attention(x, path, c, w, factors, mask=None, query_scale=None):
    t = x.shape[1]
    rope = c.get("rope_parameters") or c.get("rope_scaling")
    theta = c.get("rope_theta") or rope["rope_theta"]
    inverse, scale = frequencies(head_dim(c), theta, rope, c["max_position_embeddings"], t)
    q = turn(heads_of(project(x, path + ".q_proj", w, factors), c["num_attention_heads"]), inverse, scale)
    k = turn(heads_of(project(x, path + ".k_proj", w, factors), c["num_key_value_heads"]), inverse, scale)
    v = heads_of(project(x, path + ".v_proj", w, factors), c["num_key_value_heads"])
    if query_scale is not None:
        q = q * query_scale
    out = attend(q, k, v, visible(t) if mask is None else mask, 1 / math.sqrt(head_dim(c)))
    return project(out, path + ".o_proj", w, factors)


def forward(c, w, factors, ids, attention=attention):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(norm(x, p + "input_layernorm"), p + "self_attn", c, w, factors)
        x = x + gated_mlp(norm(x, p + "post_attention_layernorm"), p + "mlp", F.silu, w, factors)
    hidden = norm(x, "model.norm")
    head = w["model.embed_tokens.weight"] if c["tie_word_embeddings"] else w["lm_head.weight"]
    return hidden, hidden @ head.T


if __name__ == "__main__":
    for seed, (name, own) in enumerate(VARIANTS.items(), 11):
        make("llama-" + name, {**SHARED, **own}, weights, forward, seed)
