#!/usr/bin/env python3
"""Makes tests/golden/models/smollm3.

Hugging Face's SmolLM3ForCausalLM: Llama (llama.py); in the layers whose entry of no_rope_layers is 0 neither queries nor
keys are rotated, and these layers slide where use_sliding_window says so.
"""

import math

from golden_model import attend, head_dim, heads_of, make, project, turn, visible
from llama import SHARED, forward as llama_forward, weights
from rope import frequencies

CONFIGURATION = {
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "rope_theta": 1000.0, "no_rope_layers": [1, 0],
    "no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 5, "tie_word_embeddings": True,
}


def attention(x, path, c, w, factors):
    turned = c["no_rope_layers"][int(path.split(".")[2])]
    inverse, _ = frequencies(head_dim(c), c["rope_theta"])
    q = heads_of(project(x, path + ".q_proj", w, factors), c["num_attention_heads"])
    k = heads_of(project(x, path + ".k_proj", w, factors), c["num_key_value_heads"])
    v = heads_of(project(x, path + ".v_proj", w, factors), c["num_key_value_heads"])
    if turned:
        q, k = turn(q, inverse), turn(k, inverse)
    mask = visible(x.shape[1], None if turned else c["sliding_window"])
    return project(attend(q, k, v, mask, 1 / math.sqrt(head_dim(c))), path + ".o_proj", w, factors)


if __name__ == "__main__":
    make("smollm3", {**SHARED, **CONFIGURATION}, weights,
         lambda c, w, f, ids: llama_forward(c, w, f, ids, attention=attention), seed=51)
