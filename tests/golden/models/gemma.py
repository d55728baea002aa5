#!/usr/bin/env python3
"""Makes tests/golden/models/gemma2, gemma3* and embedding-gemma.

Hugging Face's Gemma2ForCausalLM: embeddings times sqrt(hidden_size); norms multiply by 1 + weight, before and behind
both parts of a layer; scores are scaled by query_pre_attn_scalar^-0.5 and capped, s -> c tanh(s / c), before they are
masked; layers 0, 2, ... slide; down(gelu_tanh(gate) * up); logits are those of tied embeddings, capped.
Gemma3ForCausalLM: no caps; RMSNorm (1 + weight) over each head of queries and keys; every sliding_window_pattern-th
layer looks at all positions, with rope_theta (and rope_scaling), the others slide, with rope_local_base_freq.
With use_bidirectional_attention (EmbeddingGemma) positions look at later ones too; those that slide, no farther than
sliding_window // 2.
"""

import math

from golden_model import (Draw, attend, gated_mlp, gelu_tanh, head_dim, heads_of, make, make_encoder, project, rms_norm, turn,
                          visible)
from rope import frequencies
import torch

SHARED = {
    "vocab_size": 41, "hidden_size": 16, "intermediate_size": 20, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
    "attention_bias": False, "tie_word_embeddings": True, "query_pre_attn_scalar": 5, "sliding_window": 4,
    "torch_dtype": "float32", "cache_implementation": "hybrid", "bos_token_id": 2, "eos_token_id": 1,
}
GEMMA2 = {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "num_hidden_layers": 2, "rope_theta": 10000.0,
    "hidden_act": "gelu_pytorch_tanh", "attn_logit_softcapping": 1.5, "final_logit_softcapping": 4.0,
}
GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": 3, "rope_theta": 1000.0,
    "rope_local_base_freq": 30.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "sliding_window_pattern": 3,
    "attn_logit_softcapping": None, "final_logit_softcapping": None,
}
GEMMA3_NEW_NAMES = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"], "dtype": "float32",
    "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000.0},
                        "sliding_attention": {"rope_type": "default", "rope_theta": 30.0}},
}
EMBEDDING = {**GEMMA3_NEW_NAMES, "architectures": ["Gemma3TextModel"], "use_bidirectional_attention": True}
NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c, embedding_scale=0.5, norm_centre=0.0)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c)
        draw.mlp(p + "mlp", c["hidden_size"], c["intermediate_size"])
        for name in NORMS:
            draw.norm(p + name, c["hidden_size"], centre=0.0)
        if c["model_type"] == "gemma3_text":
            for name in ("q_norm", "k_norm"):
                draw.norm(f"{p}self_attn.{name}", head_dim(c), centre=0.3)
    return draw.result()


def slides(c, layer):
    if "layer_types" in c:
        return c["layer_types"][layer] == "sliding_attention"
    return layer % 2 == 0 if c["model_type"] == "gemma2" else (layer + 1) % c["sliding_window_pattern"] != 0


def turning(c, layer):
    if "rope_parameters" in c:
        rope = c["rope_parameters"]["sliding_attention" if slides(c, layer) else "full_attention"]
        return frequencies(head_dim(c), rope["rope_theta"], rope)[0]
    if c["model_type"] == "gemma3_text" and slides(c, layer):
        return frequencies(head_dim(c), c["rope_local_base_freq"])[0]
    return frequencies(head_dim(c), c["rope_theta"], c.get("rope_scaling"))[0]


def mask_of(c, layer, t):
    if not c.get("use_bidirectional_attention"):
        return visible(t, c["sliding_window"] if slides(c, layer) else None)
    distance = (torch.arange(t)[:, None] - torch.arange(t)).abs()
    return distance <= (c["sliding_window"] // 2 if slides(c, layer) else t)


def attention(x, layer, path, c, w, factors):
    def heads(name, n, norm=None):
        y = heads_of(project(x, f"{path}.{name}_proj", w, factors), n)
        if norm and c["model_type"] == "gemma3_text":
            y = rms_norm(y, 1 + w[f"{path}.{norm}.weight"], c["rms_norm_eps"])
        return turn(y, turning(c, layer)) if norm else y

    q, k = heads("q", c["num_attention_heads"], "q_norm"), heads("k", c["num_key_value_heads"], "k_norm")
    v = heads("v", c["num_key_value_heads"])
    out = attend(q, k, v, mask_of(c, layer, x.shape[1]),
                 c["query_pre_attn_scalar"] ** -0.5, softcap=c.get("attn_logit_softcapping"))
    return project(out, path + ".o_proj", w, factors)


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, 1 + w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids] * math.sqrt(c["hidden_size"])
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        attended = attention(norm(x, p + NORMS[0]), i, p + "self_attn", c, w, factors)
        x = x + norm(attended, p + NORMS[1])
        x = x + norm(gated_mlp(norm(x, p + NORMS[2]), p + "mlp", gelu_tanh, w, factors), p + NORMS[3])
    hidden = norm(x, "model.norm")
    logits = hidden @ w["model.embed_tokens.weight"].T
    cap = c.get("final_logit_softcapping")
    return hidden, logits if cap is None else cap * torch.tanh(logits / cap)


def headless_weights(c, generator):
    """With the names of a model without its head: no "model." """
    w, factors = weights(c, generator)
    return ({name.removeprefix("model."): value for name, value in w.items()},
            {name.replace(".model.model.", ".model."): value for name, value in factors.items()})


def named(w, factors):
    return ({"model." + name: value for name, value in w.items()},
            {name.replace("base_model.model.", "base_model.model.model."): v for name, v in factors.items()})


if __name__ == "__main__":
    make("gemma2", {**SHARED, **GEMMA2}, weights, forward, seed=31)
    make("gemma3", {**SHARED, **GEMMA3}, weights, forward, seed=32)
    make_encoder("embedding-gemma", {**SHARED, **EMBEDDING}, headless_weights,
                 lambda c, w, f, ids: forward(c, *named(w, f), ids)[0], seed=34)
    make("gemma3-new-names", {**SHARED, **GEMMA3_NEW_NAMES}, weights, forward, seed=33)
