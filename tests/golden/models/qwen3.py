#!/usr/bin/env python3
"""Makes tests/golden/models/qwen3*: Qwen3, dense, plain and with layers that slide.

Hugging Face's Qwen3ForCausalLM: Llama's layer (llama.py) with an RMSNorm over each head of queries and keys before they
are rotated; head_dim is given. With use_sliding_window the layers from max_window_layers on look at the last
sliding_window positions.
"""

import math

from golden_model import Draw, attend, head_dim, heads_of, make, project, rms_norm, turn, visible
from llama import forward as llama_forward
from rope import frequencies

CONFIGURATION = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 41, "hidden_size": 16,
    "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 1000.0,
    "rope_scaling": None, "attention_bias": False, "tie_word_embeddings": True, "use_sliding_window": False,
    "sliding_window": None, "max_window_layers": 2, "torch_dtype": "float32", "eos_token_id": 2,
}


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c, embedding_scale=0.7)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c)
        for name in ("q_norm", "k_norm"):
            draw.norm(f"{p}self_attn.{name}", head_dim(c))
        draw.mlp(p + "mlp", c["hidden_size"], c["intermediate_size"])
        for name in ("input_layernorm", "post_attention_layernorm"):
            draw.norm(p + name, c["hidden_size"])
    return draw.result()


def attention(x, path, c, w, factors):
    layer = int(path.split(".")[2])
    window = c["sliding_window"] if c["use_sliding_window"] and layer >= c["max_window_layers"] else None
    inverse, _ = frequencies(head_dim(c), c["rope_theta"])

    def heads(name, n, norm=None):
        y = heads_of(project(x, f"{path}.{name}_proj", w, factors), n)
        return y if norm is None else turn(rms_norm(y, w[f"{path}.{norm}.weight"], c["rms_norm_eps"]), inverse)

    q, k = heads("q", c["num_attention_heads"], "q_norm"), heads("k", c["num_key_value_heads"], "k_norm")
    v = heads("v", c["num_key_value_heads"])
    out = attend(q, k, v, visible(x.shape[1], window), 1 / math.sqrt(head_dim(c)))
    return project(out, path + ".o_proj", w, factors)


def forward(c, w, factors, ids):
    return llama_forward(c, w, factors, ids, attention=attention)


if __name__ == "__main__":
    make("qwen3", CONFIGURATION, weights, forward, seed=21)
    sliding = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "tie_word_embeddings": False}
    make("qwen3-sliding", {**CONFIGURATION, **sliding}, weights, forward, seed=22)
