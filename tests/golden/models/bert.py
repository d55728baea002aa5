#!/usr/bin/env python3
"""Makes tests/golden/models/bert and xlm-roberta.

Hugging Face's BertModel: x = LayerNorm(word[ids] + position[p] + type[0]); per layer h = LayerNorm(x + dense(attention(x))),
x = LayerNorm(h + dense(gelu(dense(h)))); every position looks at every other; gelu is exact; all projections have
biases; there is no last norm. XLMRobertaModel: p counts from pad_token_id + 1. (It passes over pad_token_id inside of a
text when it counts; the text here holds none.)
"""

import math

import torch
import torch.nn.functional as F
from golden_model import Draw, attend, heads_of, make_encoder, project

SHARED = {
    "vocab_size": 41, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2,
    "hidden_act": "gelu", "max_position_embeddings": 24, "position_embedding_type": "absolute", "initializer_range": 0.02,
    "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "classifier_dropout": None, "torch_dtype": "float32",
}
BERT = {"architectures": ["BertModel"], "model_type": "bert", "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "id2label": {"0": "LABEL_0"}}
XLM_R = {"architectures": ["XLMRobertaForMaskedLM"], "model_type": "xlm-roberta", "type_vocab_size": 1,
         "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


def weights(c, generator):
    draw = Draw(generator)
    h, m = c["hidden_size"], c["intermediate_size"]
    draw.put("embeddings.word_embeddings.weight", c["vocab_size"], h)
    draw.put("embeddings.position_embeddings.weight", c["max_position_embeddings"], h)
    draw.put("embeddings.token_type_embeddings.weight", c["type_vocab_size"], h)
    draw.norm("embeddings.LayerNorm", h, bias=True)
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            draw.linear(p + name, h, h, bias=True)
        draw.linear(p + "intermediate.dense", h, m, bias=True)
        draw.linear(p + "output.dense", m, h, bias=True)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            draw.norm(p + name, h, bias=True)
    draw.linear("pooler.dense", h, h, bias=True, lora=False)
    w, factors = draw.result()
    if c["architectures"][0].endswith("ForMaskedLM"):  # all but the head is in a module
        w = {"roberta." + name: value for name, value in w.items()}
        w["lm_head.bias"] = torch.zeros(c["vocab_size"], dtype=torch.float64)
    return w, factors


def forward(c, w, factors, ids):
    w = {name.removeprefix("roberta."): value for name, value in w.items()}

    def norm(x, path):
        return F.layer_norm(x, x.shape[-1:], w[path + ".weight"], w[path + ".bias"], c["layer_norm_eps"])

    t, first = ids.shape[1], c["pad_token_id"] + 1 if c["model_type"] == "xlm-roberta" else 0
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x + w["embeddings.position_embeddings.weight"][first: first + t], "embeddings.LayerNorm")
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        n = c["num_attention_heads"]
        q, k, v = (heads_of(project(x, f"{p}attention.self.{name}", w, factors), n) for name in ("query", "key", "value"))
        out = attend(q, k, v, torch.ones(t, t, dtype=torch.bool), 1 / math.sqrt(q.shape[-1]))
        x = norm(x + project(out, p + "attention.output.dense", w, factors), p + "attention.output.LayerNorm")
        inner = F.gelu(project(x, p + "intermediate.dense", w, factors))
        x = norm(x + project(inner, p + "output.dense", w, factors), p + "output.LayerNorm")
    return x


if __name__ == "__main__":
    make_encoder("bert", {**SHARED, **BERT}, weights, forward, seed=121)
    make_encoder("xlm-roberta", {**SHARED, **XLM_R}, weights, forward, seed=123)
