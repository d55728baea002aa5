#!/usr/bin/env python3
"""Makes tests/golden/models/qwen3-moe: a layer of experts and, by mlp_only_layers, a dense one.

Hugging Face's Qwen3MoeForCausalLM: Qwen3 (qwen3.py) whose feed-forward module is a sum over experts, each a gated MLP of
moe_intermediate_size. The router's logits become probabilities by a softmax over all experts in float32; a token goes to
the num_experts_per_tok most likely ones, with their probabilities, divided by their sum where norm_topk_prob is set.
"""

import torch
import torch.nn.functional as F
from golden_model import Draw, gated_mlp, head_dim, make, rms_norm
from qwen3 import CONFIGURATION, attention

MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 5, "num_experts_per_tok": 2,
    "moe_intermediate_size": 12, "decoder_sparse_step": 1, "mlp_only_layers": [0], "norm_topk_prob": True,
    "router_aux_loss_coef": 0.001, "output_router_logits": False,
}


def sparse(c, layer):
    return layer not in c["mlp_only_layers"] and (layer + 1) % c["decoder_sparse_step"] == 0


def weights(c, generator):
    draw = Draw(generator)
    draw.ends(c, embedding_scale=0.7)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        draw.attention(p + "self_attn", c)
        for name in ("q_norm", "k_norm"):
            draw.norm(f"{p}self_attn.{name}", head_dim(c))
        if sparse(c, i):
            draw.linear(p + "mlp.gate", c["hidden_size"], c["num_experts"], lora=False)
            for e in range(c["num_experts"]):
                draw.mlp(f"{p}mlp.experts.{e}", c["hidden_size"], c["moe_intermediate_size"])
        else:
            draw.mlp(p + "mlp", c["hidden_size"], c["intermediate_size"])
        for name in ("input_layernorm", "post_attention_layernorm"):
            draw.norm(p + name, c["hidden_size"])
    return draw.result()


def experts(x, path, c, w, factors):
    probabilities = (x @ w[path + ".gate.weight"].T).softmax(-1)
    values, chosen = probabilities.topk(c["num_experts_per_tok"], dim=-1)
    if c["norm_topk_prob"]:
        values = values / values.sum(-1, keepdim=True)
    result = torch.zeros_like(x)
    for e in range(c["num_experts"]):
        weight = (values * (chosen == e)).sum(-1, keepdim=True)
        result = result + weight * gated_mlp(x, f"{path}.experts.{e}", F.silu, w, factors)
    return result


def forward(c, w, factors, ids):
    """Hidden states after the last norm, and logits."""
    def norm(x, path):
        return rms_norm(x, w[path + ".weight"], c["rms_norm_eps"])

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        x = x + attention(norm(x, p + "input_layernorm"), p + "self_attn", c, w, factors)
        normed = norm(x, p + "post_attention_layernorm")
        if sparse(c, i):
            x = x + experts(normed, p + "mlp", c, w, factors)
        else:
            x = x + gated_mlp(normed, p + "mlp", F.silu, w, factors)
    hidden = norm(x, "model.norm")
    return hidden, hidden @ w["model.embed_tokens.weight"].T


if __name__ == "__main__":
    make("qwen3-moe", {**CONFIGURATION, **MOE}, weights, forward, seed=92)
