#!/usr/bin/env python3
"""Makes tests/golden/models/granite.

Hugging Face's GraniteForCausalLM: Llama (llama.py) with embeddings times embedding_multiplier, scores times
attention_multiplier in place of 1 / sqrt(head_dim), what attention and feed-forward module add times
residual_multiplier, logits divided by logits_scaling.
"""

import torch.nn.functional as F
from golden_model import attend, gated_mlp, head_dim, heads_of, make, project, rms_norm, turn, visible
from llama import SHARED, weights
from rope import frequencies

CONFIGURATION = {
    "architectures": ["GraniteForCausalLM"], "model_type": "granite", "rope_theta": 1000.0, "embedding_multiplier": 2.5,
    "attention_multiplier": 0.6, "residual_multiplier": 0.7, "logits_scaling": 1.4, "tie_word_embeddings": True,
}


def attention(x, path, c, w, factors):
    inverse, _ = frequencies(head_dim(c), c["rope_theta"])
    q = turn(heads_of(project(x, path + ".q_proj", w, factors), c["num_attention_heads"]), inverse)
    k = turn(heads_of(project(x, path + ".k_proj", w, factors), c["num_key_value_heads"]), inverse)
    v = heads_of(project(x, path + ".v_proj", w, factors), c["num_key_value_heads"])
    return project(attend(q, k, v, visible(x.shape[1]), c["attention_multiplier"]), path + ".o_proj", w, factors)


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids] * c["embedding_multiplier"]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        attended = attention(norm(x, p + "input_layernorm"), p + "self_attn", c, w, factors)
        x = x + attended * c["residual_multiplier"]
        added = gated_mlp(norm(x, p + "post_attention_layernorm"), p + "mlp", F.silu, w, factors)
        x = x + added * c["residual_multiplier"]
    hidden = norm(x, "model.norm")
    return hidden, hidden @ w["model.embed_tokens.weight"].T / c["logits_scaling"]


if __name__ == "__main__":
    make("granite", {**SHARED, **CONFIGURATION}, weights, forward, seed=71)
