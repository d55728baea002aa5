#!/usr/bin/env python3
"""Makes tests/golden/models/modernbert, of a checkpoint with a head.

Hugging Face's ModernBertModel: x = LayerNorm(tok_embeddings[ids]); x = x + Wo(attention(Wqkv(LayerNorm(x)))) (the first
layer has no norm there), x = x + Wo(gelu(a) * b) with (a, b) the halves of Wi(LayerNorm(x)); then LayerNorm. No biases.
Layers 0, global_attn_every_n_layers, ... look at all positions, turned with global_rope_theta; the others at those no
farther than local_attention / 2, turned with local_rope_theta.
"""

import math

import torch
import torch.nn.functional as F
from golden_model import Draw, attend, heads_of, make_encoder, project, turn
from rope import frequencies

CONFIGURATION = {
    "architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "vocab_size": 41, "hidden_size": 16,
    "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_activation": "gelu",
    "max_position_embeddings": 64, "norm_eps": 1e-5, "norm_bias": False, "attention_bias": False, "mlp_bias": False,
    "global_rope_theta": 1000.0, "local_rope_theta": 50.0, "global_attn_every_n_layers": 3, "local_attention": 5,
    "attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0, "decoder_bias": True,
    "classifier_pooling": "mean", "classifier_activation": "gelu", "classifier_dropout": 0.0, "classifier_bias": False,
    "deterministic_flash_attn": False, "gradient_checkpointing": False, "initializer_cutoff_factor": 2.0,
    "layer_norm_eps": 1e-5, "position_embedding_type": "absolute", "sparse_prediction": False,
    "sparse_pred_ignore_index": -100, "reference_compile": True, "pad_token_id": 3, "bos_token_id": 1, "cls_token_id": 1,
    "eos_token_id": 2, "sep_token_id": 2,
}


def weights(c, generator):
    draw = Draw(generator)
    h, m = c["hidden_size"], c["intermediate_size"]
    draw.put("embeddings.tok_embeddings.weight", c["vocab_size"], h)
    draw.norm("embeddings.norm", h)
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        draw.linear(p + "attn.Wqkv", h, 3 * h, gain=1.6)
        draw.linear(p + "attn.Wo", h, h)
        draw.linear(p + "mlp.Wi", h, 2 * m)
        draw.linear(p + "mlp.Wo", m, h)
        for name in ("mlp_norm",) if i == 0 else ("attn_norm", "mlp_norm"):
            draw.norm(p + name, h)
    draw.norm("final_norm", h)
    w, factors = draw.result()
    w = {"model." + name: value for name, value in w.items()}
    w["head.dense.weight"] = torch.zeros(h, h, dtype=torch.float64)
    w["decoder.bias"] = torch.zeros(c["vocab_size"], dtype=torch.float64)
    return w, factors


def forward(c, w, factors, ids):
    w = {name.removeprefix("model."): value for name, value in w.items()}

    def norm(x, path):
        return F.layer_norm(x, x.shape[-1:], w[path + ".weight"], None, c["norm_eps"])

    t, n = ids.shape[1], c["num_attention_heads"]
    distance = (torch.arange(t)[:, None] - torch.arange(t)).abs()
    x = norm(w["embeddings.tok_embeddings.weight"][ids], "embeddings.norm")
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        everywhere = i % c["global_attn_every_n_layers"] == 0
        theta = c["global_rope_theta"] if everywhere else c["local_rope_theta"]
        mask = distance <= (t if everywhere else c["local_attention"] // 2)
        normed = x if i == 0 else norm(x, p + "attn_norm")
        q, k, v = (heads_of(y, n) for y in project(normed, p + "attn.Wqkv", w, factors).chunk(3, -1))
        inverse, _ = frequencies(q.shape[-1], theta)
        out = attend(turn(q, inverse), turn(k, inverse), v, mask, 1 / math.sqrt(q.shape[-1]))
        x = x + project(out, p + "attn.Wo", w, factors)
        a, b = project(norm(x, p + "mlp_norm"), p + "mlp.Wi", w, factors).chunk(2, -1)
        x = x + project(F.gelu(a) * b, p + "mlp.Wo", w, factors)
    return norm(x, "final_norm")


if __name__ == "__main__":
    make_encoder("modernbert", CONFIGURATION, weights, forward, seed=131)
