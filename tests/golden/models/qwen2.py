#!/usr/bin/env python3
"""Makes tests/golden/models/qwen2-*: small random Qwen2 models with a LoRA adapter, and what they compute.

    tests/golden/models/qwen2.py

Plain PyTorch in float64, written from the equations of Hugging Face's Qwen2ForCausalLM (RMSNorm, rotary positions in
the rotate_half convention, grouped-query attention with biases on q, k and v alone, SwiGLU) and of PEFT's LoRA
(y = W x + b + alpha / r * B A x); gradients are PyTorch's own. golden_model.py beside it says what a folder holds.
"""

import torch.nn.functional as F
from golden_model import attention, gated_mlp, make, random_weights, rms_norm


def configuration(tied):
    return {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 53, "hidden_size": 24,
        "intermediate_size": 36, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "attention_dropout": 0.0, "initializer_range": 0.02, "tie_word_embeddings": tied, "use_sliding_window": False,
        "sliding_window": 32, "max_window_layers": 2, "use_cache": True, "torch_dtype": "float32",
        "bos_token_id": 1, "eos_token_id": 2,
    }


def weights(c, generator):
    return random_weights(c, generator, biases=("q_proj", "k_proj", "v_proj"))


def forward(c, w, factors, ids):
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
    make("qwen2-untied", configuration(tied=False), weights, forward, seed=1)
    make("qwen2-tied", configuration(tied=True), weights, forward, seed=2)
