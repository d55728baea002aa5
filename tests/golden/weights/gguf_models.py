"""Writes gpt2.gguf, gpt-oss.gguf, gemma3.gguf, qwen3-moe.gguf and, of encoders, bert.gguf, xlm-roberta.gguf, modernbert.gguf
and embedding-gemma.gguf: models of tests/golden/models as llama.cpp's converter
(convert_hf_to_gguf.py) would write them, in f32. tests/lm/formats/gguf_models_test.cpp reads them, and compares them with the
folders that they are made of: what the converter does to weights is done here, and must be undone there. Nothing is shared
with Caldera's code. It needs Debian's python3-numpy.
"""

import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
MODELS = HERE.parent / "models"


def read_folder(name):
    config = json.loads((MODELS / name / "config.json").read_text())
    data = (MODELS / name / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    weights = {}
    for key, entry in header.items():
        begin, end = (8 + size + o for o in entry["data_offsets"])
        weights[key] = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
    return config, weights


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(v):
    if isinstance(v, str):
        return struct.pack("<I", 8) + string(v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    return struct.pack("<II", 4, v)


def write_gguf(name, keys, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(string(k) + value(v) for k, v in keys.items())
    data = b""
    for tensor, array in tensors.items():
        array = np.ascontiguousarray(array, dtype="<f4")
        head += string(tensor) + struct.pack("<I", array.ndim)
        head += b"".join(struct.pack("<Q", n) for n in reversed(array.shape)) + struct.pack("<IQ", 0, len(data))
        data += array.tobytes() + b"\0" * (-array.nbytes % 32)
    (HERE / (name + ".gguf")).write_bytes(head + b"\0" * (-len(head) % 32) + data)


def decoder_keys(arch, c, **more):
    keys = {"block_count": c["num_hidden_layers"], "context_length": c["max_position_embeddings"],
            "embedding_length": c["hidden_size"], "feed_forward_length": c["intermediate_size"],
            "attention.head_count": c["num_attention_heads"], "attention.head_count_kv": c["num_key_value_heads"],
            "attention.key_length": c["head_dim"], "attention.value_length": c["head_dim"],
            "attention.layer_norm_rms_epsilon": c["rms_norm_eps"], "rope.freq_base": c["rope_theta"], **more}
    return {"general.architecture": arch, **{f"{arch}.{k}": v for k, v in keys.items()}}


SHARED = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
          "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
          "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
          "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def rename(weights, layer_names):
    """The tensors of a decoder, those of layers by layer_names; what has no name is returned apart."""
    tensors, rest = {}, {}
    top = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight"}
    for key, array in weights.items():
        parts = key.split(".")
        module, suffix = ".".join(parts[3:-1]), parts[-1]
        if key in top:
            tensors[top[key]] = array
        elif module in layer_names:
            tensors[f"blk.{parts[2]}.{layer_names[module]}.{suffix}"] = array
        else:
            rest[key] = array
    return tensors, rest


def gpt2():
    c, weights = read_folder("gpt2")
    keys = {"general.architecture": "gpt2", "gpt2.block_count": c["n_layer"], "gpt2.context_length": c["n_positions"],
            "gpt2.embedding_length": c["n_embd"], "gpt2.feed_forward_length": 4 * c["n_embd"],
            "gpt2.attention.head_count": c["n_head"], "gpt2.attention.layer_norm_epsilon": c["layer_norm_epsilon"]}
    modules = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
               "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    tensors = {"token_embd.weight": weights["wte.weight"], "position_embd.weight": weights["wpe.weight"],
               "output_norm.weight": weights["ln_f.weight"], "output_norm.bias": weights["ln_f.bias"]}
    for key, array in weights.items():
        if key.startswith("h."):
            _, layer, rest = key.split(".", 2)
            module, suffix = rest.rsplit(".", 1)
            tensors[f"blk.{layer}.{modules[module]}.{suffix}"] = array.T if array.ndim == 2 else array
    write_gguf("gpt2", keys, tensors)


def gpt_oss():
    c, weights = read_folder("gpt-oss")
    rope = c["rope_scaling"]
    keys = decoder_keys("gpt-oss", c, **{
        "expert_count": c["num_local_experts"], "expert_used_count": c["num_experts_per_tok"],
        "expert_feed_forward_length": c["intermediate_size"], "attention.sliding_window": c["sliding_window"],
        "rope.scaling.type": "yarn", "rope.scaling.factor": rope["factor"],
        "rope.scaling.original_context_length": rope["original_max_position_embeddings"],
        "rope.scaling.yarn_beta_fast": rope["beta_fast"], "rope.scaling.yarn_beta_slow": rope["beta_slow"]})
    tensors, rest = rename(weights, {**SHARED, "post_attention_layernorm": "post_attention_norm",
                                     "mlp.router": "ffn_gate_inp"})
    for key, array in rest.items():
        layer, module = key.split(".")[2], key.split(".", 3)[3]
        block = f"blk.{layer}."
        if module == "self_attn.sinks":
            tensors[block + "attn_sinks.weight"] = array
        elif module == "mlp.experts.gate_up_proj":
            rows = array.transpose(0, 2, 1)
            tensors[block + "ffn_gate_exps.weight"], tensors[block + "ffn_up_exps.weight"] = rows[:, 0::2], rows[:, 1::2]
        elif module == "mlp.experts.gate_up_proj_bias":
            tensors[block + "ffn_gate_exps.bias"], tensors[block + "ffn_up_exps.bias"] = array[:, 0::2], array[:, 1::2]
        elif module == "mlp.experts.down_proj":
            tensors[block + "ffn_down_exps.weight"] = array.transpose(0, 2, 1)
        else:
            assert module == "mlp.experts.down_proj_bias", key
            tensors[block + "ffn_down_exps.bias"] = array
    write_gguf("gpt-oss", keys, tensors)


def gemma3():
    c, weights = read_folder("gemma3")
    keys = decoder_keys("gemma3", c, **{"attention.sliding_window": c["sliding_window"],
                                        "rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
    tensors, rest = rename(weights, {**SHARED, "post_attention_layernorm": "post_attention_norm",
                                     "pre_feedforward_layernorm": "ffn_norm",
                                     "post_feedforward_layernorm": "post_ffw_norm"})
    assert not rest
    write_gguf("gemma3", keys, {k: a + np.float32(1) if k.endswith("norm.weight") else a for k, a in tensors.items()})


def qwen3_moe():
    c, weights = read_folder("qwen3-moe")
    keys = decoder_keys("qwen3moe", c, **{"expert_count": c["num_experts"], "expert_used_count": c["num_experts_per_tok"],
                                          "expert_feed_forward_length": c["moe_intermediate_size"]})
    tensors, rest = rename(weights, {**SHARED, "mlp.gate": "ffn_gate_inp"})
    for layer in range(c["num_hidden_layers"]):
        for part, name in (("gate", "gate_proj"), ("up", "up_proj"), ("down", "down_proj")):
            experts = [rest.pop(f"model.layers.{layer}.mlp.experts.{e}.{name}.weight", None)
                       for e in range(c["num_experts"])]
            if experts[0] is not None:
                tensors[f"blk.{layer}.ffn_{part}_exps.weight"] = np.stack(experts)
    assert not rest
    write_gguf("qwen3-moe", keys, tensors)


def encoder(name, arch, modules, top, prefix="", more=None, cut=0):
    """Of layers named "...<number>.<module>.<suffix>". The first `cut` positions of a table are left out."""
    c, weights = read_folder(name)
    c["max_position_embeddings"] -= cut
    keys = {"block_count": c["num_hidden_layers"], "context_length": c["max_position_embeddings"],
            "embedding_length": c["hidden_size"], "feed_forward_length": c["intermediate_size"],
            "attention.head_count": c["num_attention_heads"], "pooling_type": 2, **more(c)}
    tensors = {}
    for key, array in weights.items():
        path, suffix = key.removeprefix(prefix).rsplit(".", 1)
        if path in top:
            tensors[f"{top[path]}.{suffix}"] = array[cut:] if top[path] == "position_embd" else array
            continue
        parts = path.removeprefix("encoder.layer.").removeprefix("layers.").split(".", 1)
        if parts[0].isdigit():
            tensors[f"blk.{parts[0]}.{modules[parts[1]]}.{suffix}"] = array
    write_gguf(name, {"general.architecture": arch, **{f"{arch}.{k}": v for k, v in keys.items()}}, tensors)


BERT = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
        "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
        "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
BERT_TOP = {"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
            "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm"}


def bert():
    def more(c):
        return {"attention.layer_norm_epsilon": c["layer_norm_eps"]}

    encoder("bert", "bert", BERT, BERT_TOP, more=more)
    # RoBERTa's have the architecture of BERT, without the positions that come before a text's first.
    encoder("xlm-roberta", "bert", BERT, BERT_TOP, prefix="roberta.", more=more, cut=2)


def modernbert():
    modules = {"attn_norm": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp_norm": "ffn_norm",
               "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down"}
    top = {"embeddings.tok_embeddings": "token_embd", "embeddings.norm": "token_embd_norm", "final_norm": "output_norm"}
    encoder("modernbert", "modern-bert", modules, top, prefix="model.", more=lambda c: {
        "attention.layer_norm_epsilon": c["norm_eps"], "attention.sliding_window": c["local_attention"],
        "attention.sliding_window_pattern": c["global_attn_every_n_layers"], "rope.scaling.type": "none",
        "rope.freq_base": c["global_rope_theta"], "rope.freq_base_swa": c["local_rope_theta"]})


def embedding_gemma():
    c, weights = read_folder("embedding-gemma")
    rope = c["rope_parameters"]
    c["rope_theta"] = rope["full_attention"]["rope_theta"]
    keys = decoder_keys("gemma-embedding", c, **{
        "attention.sliding_window": c["sliding_window"], "attention.sliding_window_pattern": 2, "pooling_type": 1,
        "attention.scale": c["query_pre_attn_scalar"] ** -0.5,
        "rope.freq_base_swa": rope["sliding_attention"]["rope_theta"]})
    tensors, rest = rename({"model." + k: a for k, a in weights.items()}, {
        **SHARED, "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm"})
    assert not rest
    write_gguf("embedding-gemma", keys,
               {k: a + np.float32(1) if k.endswith("norm.weight") else a for k, a in tensors.items()})


if __name__ == "__main__":
    bert()
    modernbert()
    embedding_gemma()
    gpt2()
    gpt_oss()
    gemma3()
    qwen3_moe()
