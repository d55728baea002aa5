#!/usr/bin/env python3
"""Makes tests/golden/models/mistral and ministral3.

Hugging Face's MistralForCausalLM: Llama (llama.py) whose every layer looks at the last sliding_window positions.
Ministral3ForCausalLM: no window; yarn; turned queries are multiplied by
1 + llama_4_scaling_beta * ln(1 + floor(position / original_max_position_embeddings)).
"""

import torch
from golden_model import make, visible
from llama import SHARED, attention, forward as llama_forward, weights

MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 4, "rope_theta": 1000.0}
MINISTRAL3 = {
    "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "sliding_window": None, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1000.0, "factor": 16.0, "original_max_position_embeddings": 3,
        "beta_fast": 0.4, "beta_slow": 0.01, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.6},
}


def mistral_attention(x, path, c, w, factors):
    return attention(x, path, c, w, factors, mask=visible(x.shape[1], c["sliding_window"]))


def ministral3_attention(x, path, c, w, factors):
    rope = c["rope_parameters"]
    blocks = torch.arange(x.shape[1]) // rope["original_max_position_embeddings"]
    scale = 1 + rope["llama_4_scaling_beta"] * torch.log(1 + blocks.double())
    return attention(x, path, c, w, factors, query_scale=scale[:, None])


if __name__ == "__main__":
    shared = {name: value for name, value in SHARED.items() if name not in ("attention_bias", "mlp_bias")}
    make("mistral", {**shared, **MISTRAL}, weights,
         lambda c, w, f, ids: llama_forward(c, w, f, ids, attention=mistral_attention), seed=41)
    make("ministral3", {**shared, **MINISTRAL3}, weights,
         lambda c, w, f, ids: llama_forward(c, w, f, ids, attention=ministral3_attention), seed=42)
