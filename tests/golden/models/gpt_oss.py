#!/usr/bin/env python3
"""Makes tests/golden/models/gpt-oss.

Hugging Face's GptOssForCausalLM: biases on q, k, v and o; each head has a sink, a score that takes part in the softmax
without a value; layers 0, 2, ... slide; yarn without rounding the ends of its ramp (truncate is false), cosines and sines
times 0.1 ln(factor) + 1. A token goes to the num_experts_per_tok experts with the largest router logits, weighted by the
softmax over those. Of an expert's gate_up outputs the even ones are g, at most 7, the odd ones u, within +-7;
the expert gives down((u + 1) g sigmoid(1.702 g)); all with biases.
"""

import math

import torch
from golden_model import Draw, attend, head_dim, heads_of, make, project, rms_norm, turn, visible
from rope import frequencies

CONFIGURATION = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": 41, "hidden_size": 16,
    "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 100.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 1.5, "beta_slow": 0.05, "truncate": False,
                     "original_max_position_embeddings": 4},
    "attention_bias": True, "attention_dropout": 0.0, "sliding_window": 3,
    "layer_types": ["sliding_attention", "full_attention"], "num_local_experts": 4, "num_experts_per_tok": 2,
    "experts_per_token": 2, "swiglu_limit": 7.0, "router_aux_loss_coef": 0.9, "initial_context_length": 4096,
    "tie_word_embeddings": False, "eos_token_id": 2, "torch_dtype": "float32",
}


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c)
    h, m, n = c["hidden_size"], c["intermediate_size"], c["num_local_experts"]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c, bias="qkvo")
        draw.put(p + "self_attn.sinks", c["num_attention_heads"])
        draw.linear(p + "mlp.router", h, n, bias=True, lora=False)
        draw.put(p + "mlp.experts.gate_up_proj", n, h, 2 * m, scale=3 / math.sqrt(h))
        draw.put(p + "mlp.experts.gate_up_proj_bias", n, 2 * m, scale=2.0)
        draw.put(p + "mlp.experts.down_proj", n, m, h, scale=0.2 / math.sqrt(m))
        draw.put(p + "mlp.experts.down_proj_bias", n, h, scale=0.5)
        for name in ("input_layernorm", "post_attention_layernorm"):
            draw.norm(p + name, h)
    return draw.result()


def attention(x, layer, path, c, w, factors):
    inverse, scale = frequencies(head_dim(c), c["rope_theta"], c["rope_scaling"])
    q = turn(heads_of(project(x, path + ".q_proj", w, factors), c["num_attention_heads"]), inverse, scale)
    k = turn(heads_of(project(x, path + ".k_proj", w, factors), c["num_key_value_heads"]), inverse, scale)
    v = heads_of(project(x, path + ".v_proj", w, factors), c["num_key_value_heads"])
    mask = visible(x.shape[1], c["sliding_window"] if c["layer_types"][layer] == "sliding_attention" else None)
    out = attend(q, k, v, mask, 1 / math.sqrt(head_dim(c)), sinks=w[path + ".sinks"])
    return project(out, path + ".o_proj", w, factors)


def experts(x, path, c, w):
    values, chosen = (x @ w[path + ".router.weight"].T + w[path + ".router.bias"]).topk(c["num_experts_per_tok"], dim=-1)
    values = values.softmax(-1)
    result = torch.zeros_like(x)
    for e in range(c["num_local_experts"]):
        gate_up = x @ w[path + ".experts.gate_up_proj"][e] + w[path + ".experts.gate_up_proj_bias"][e]
        assert gate_up.max() > 7 and gate_up.min() < -7, "the limits do not matter"
        g, u = gate_up[..., ::2].clamp(max=7), gate_up[..., 1::2].clamp(-7, 7)
        out = (u + 1) * g * torch.sigmoid(1.702 * g) @ w[path + ".experts.down_proj"][e]
        out = out + w[path + ".experts.down_proj_bias"][e]
        result = result + (values * (chosen == e)).sum(-1, keepdim=True) * out
    return result


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(norm(x, p + "input_layernorm"), i, p + "self_attn", c, w, factors)
        x = x + experts(norm(x, p + "post_attention_layernorm"), p + "mlp", c, w)
    hidden = norm(x, "model.norm")
    return hidden, hidden @ w["lm_head.weight"].T


if __name__ == "__main__":
    make("gpt-oss", CONFIGURATION, weights, forward, seed=101)
