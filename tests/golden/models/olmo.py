#!/usr/bin/env python3
"""Makes tests/golden/models/olmo2 and olmo3.

Hugging Face's Olmo2ForCausalLM: x = x + rms_norm(attention(x)), x = x + rms_norm(mlp(x)), nothing is normed before;
queries and keys get an RMSNorm over all their heads together before they are split and turned. Olmo3ForCausalLM: three
layers of four slide, with unscaled frequencies; the others have those of rope_scaling.
"""

import math

import torch.nn.functional as F
from golden_model import Draw, attend, gated_mlp, head_dim, heads_of, make, project, rms_norm, turn, visible
from llama import SHARED
from rope import frequencies

OLMO2 = {"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "rope_theta": 1000.0}
OLMO3 = {
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "rope_theta": 1000.0, "sliding_window": 3,
    "layer_types": ["sliding_attention", "full_attention"], "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 6, "beta_fast": 1.0, "beta_slow": 0.05,
        "attention_factor": 1.2},
}
NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c)
        for name, heads in (("q_norm", c["num_attention_heads"]), ("k_norm", c["num_key_value_heads"])):
            draw.norm(f"{p}self_attn.{name}", heads * head_dim(c))
        draw.mlp(p + "mlp", c["hidden_size"], c["intermediate_size"])
        for name in NORMS:
            draw.norm(p + name, c["hidden_size"])
    return draw.result()


def attention(x, layer, path, c, w, factors):
    slides = "layer_types" in c and c["layer_types"][layer] == "sliding_attention"
    inverse, scale = frequencies(head_dim(c), c["rope_theta"], None if slides else c.get("rope_scaling"))

    def heads(name, n, norm):
        y = rms_norm(project(x, f"{path}.{name}_proj", w, factors), w[f"{path}.{norm}.weight"], c["rms_norm_eps"])
        return turn(heads_of(y, n), inverse, scale)

    q, k = heads("q", c["num_attention_heads"], "q_norm"), heads("k", c["num_key_value_heads"], "k_norm")
    v = heads_of(project(x, path + ".v_proj", w, factors), c["num_key_value_heads"])
    mask = visible(x.shape[1], c["sliding_window"] if slides else None)
    return project(attend(q, k, v, mask, 1 / math.sqrt(head_dim(c))), path + ".o_proj", w, factors)


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + norm(attention(x, i, p + "self_attn", c, w, factors), p + NORMS[0])
        x = x + norm(gated_mlp(x, p + "mlp", F.silu, w, factors), p + NORMS[1])
    hidden = norm(x, "model.norm")
    return hidden, hidden @ w["lm_head.weight"].T


if __name__ == "__main__":
    shared = {name: value for name, value in SHARED.items() if name != "mlp_bias"}
    make("olmo2", {**shared, **OLMO2}, weights, forward, seed=61)
    make("olmo3", {**shared, **OLMO3}, weights, forward, seed=62)
