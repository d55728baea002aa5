"""Writes the folders beside this script: models of one weight or two in each quantised form that Caldera reads.

A folder holds config.json and model.safetensors as the tools named below write them, and golden.safetensors: the
weights' values, worked out here from the forms' definitions. tests/lm/formats/quantized_weights_test.cpp compares bit by bit.
blocks.gguf and blocks.golden.safetensors are the same for the tensor types of GGUF. The packing follows bitsandbytes
(functional.py), MLX (ops.cpp, quantize), AutoGPTQ (qlinear_cuda.py), AutoAWQ (packing_utils.py), DeepSeek-V3's
inference/kernel.py, transformers' integrations/mxfp4.py, and ggml-common.h; nothing is shared with Caldera's code. It
needs Debian's python3-numpy.
"""

import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
F32 = np.float32
NAMES = {"float32": "F32", "float16": "F16", "uint8": "U8", "int32": "I32", "uint32": "U32", "bfloat16": "BF16"}


def write_safetensors(path, tensors):
    """tensors: name -> array, or (type name, array of raw integers)."""
    header, data = {}, b""
    for name, value in tensors.items():
        kind, array = value if isinstance(value, tuple) else (NAMES[str(value.dtype)], value)
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(folder, config, tensors, golden):
    folder = HERE / folder
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "none", **config}, indent=1) + "\n")
    write_safetensors(folder / "model.safetensors", tensors)
    write_safetensors(folder / "golden.safetensors", {n: a.astype(F32) for n, a in golden.items()})


def raw_json(value):
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8).copy()


NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], dtype=F32)
FP4 = np.array([0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25] * 2, dtype=F32)
FP4[8:] *= -1


def bitsandbytes(rng, folder, kind, table, shape, block, nested):
    count = shape[0] * shape[1]
    codes = rng.integers(0, 16, count + count % 2, dtype=np.uint8)
    blocks = -(-count // block)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
    w = "model.layers.0.mlp.up_proj.weight"
    tensors = {w: ((codes[0::2] << 4) | codes[1::2]).reshape(-1, 1), w + ".quant_map": table}
    if nested:
        inner = 4
        outer = -(-blocks // inner)
        q = rng.integers(0, 256, blocks, dtype=np.uint8)
        table2 = np.sort(rng.uniform(-1, 1, 256)).astype(F32)
        outer_max = rng.uniform(0.5, 2, outer).astype(F32)
        offset = 1.25
        absmax = (table2[q] * outer_max[np.arange(blocks) // inner]).astype(F32) + F32(offset)
        state |= {"nested_blocksize": inner, "nested_dtype": "float32", "nested_offset": offset}
        tensors |= {w + ".absmax": q, w + ".nested_absmax": outer_max, w + ".nested_quant_map": table2}
    else:
        absmax = rng.uniform(0.1, 3, blocks).astype(F32)
        tensors |= {w + ".absmax": absmax}
    tensors[w + ".quant_state.bitsandbytes__" + kind] = raw_json(state)
    values = table[codes[:count]] * absmax[np.arange(count) // block]
    bias = rng.normal(size=shape[0]).astype(F32)
    tensors["model.layers.0.mlp.up_proj.bias"] = bias
    write(folder, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True,
                                           "bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested}},
          tensors, {w: values.reshape(shape), "model.layers.0.mlp.up_proj.bias": bias})


def bf16(array):
    """Bits of bfloat16, cut off, and the values that they have."""
    bits = (array.astype(F32).view(np.uint32) >> 16).astype(np.uint16)
    return ("BF16", bits), (bits.astype(np.uint32) << 16).view(F32)


def pack_low_first(codes, bits):
    """Codes along the last axis, which run on from bit to bit, in u32 words."""
    flat = codes.reshape(-1, codes.shape[-1])
    bit = ((flat[:, :, None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & 1).astype(np.uint8)
    packed = np.packbits(bit.reshape(len(flat), -1), axis=1, bitorder="little")
    return packed.view("<u4").reshape(*codes.shape[:-1], -1)


def mlx(rng):
    tensors, golden = {}, {}

    def add(name, shape, bits, group, to_half):
        codes = rng.integers(0, 1 << bits, shape, dtype=np.uint32)
        groups = (*shape[:-1], shape[-1] // group)
        scales, s = to_half(rng.uniform(-0.1, 0.1, groups))
        biases, b = to_half(rng.uniform(-1, 1, groups))
        tensors.update({name + ".weight": pack_low_first(codes, bits), name + ".scales": scales,
                        name + ".biases": biases})
        spread = np.repeat(s, group, axis=-1), np.repeat(b, group, axis=-1)
        golden[name + ".weight"] = (spread[0] * codes.astype(F32)).astype(F32) + spread[1]

    def f16(array):
        half = array.astype(np.float16)
        return half, half.astype(F32)

    def f32(array):
        """Values whose products with codes f32 holds, so that it does not matter whether those are rounded."""
        return array.astype(np.float16).astype(F32), array.astype(np.float16).astype(F32)

    add("four", (6, 128), 4, 64, bf16)
    add("eight", (5, 64), 8, 32, f16)
    add("experts", (2, 3, 64), 4, 64, f32)
    add("three", (4, 64), 3, 64, f16)
    add("six", (4, 64), 6, 64, f16)
    norm = rng.normal(size=8).astype(F32)
    tensors["norm.weight"] = golden["norm.weight"] = norm
    write("mlx", {"quantization": {"group_size": 64, "bits": 4, "mode": "affine", "eight": {"group_size": 32, "bits": 8},
                                   "three": {"group_size": 64, "bits": 3}, "six": {"group_size": 64, "bits": 6},
                                   "norm": False}}, tensors, golden)


def gptq(rng, folder, bits, group, added, order):
    inputs, outputs = 64, 16
    per_word = 32 // bits
    groups = inputs // group
    mask = (1 << bits) - 1
    q = rng.integers(0, 1 << bits, (inputs, outputs)).astype(np.int64)
    z = rng.integers(1, 1 << bits, (groups, outputs)).astype(np.int64)
    scales = rng.uniform(0.01, 0.2, (groups, outputs)).astype(np.float16)
    g_idx = np.arange(inputs) // group
    if order:
        g_idx = rng.permutation(g_idx)
    qweight = np.zeros((inputs // per_word, outputs), dtype=np.uint32)
    for i in range(inputs):
        qweight[i // per_word] |= (q[i] << (bits * (i % per_word))).astype(np.uint32)
    qzeros = np.zeros((groups, outputs // per_word), dtype=np.uint32)
    for o in range(outputs):
        qzeros[:, o // per_word] |= (((z[:, o] - added) & mask) << (bits * (o % per_word))).astype(np.uint32)
    p = "model.layers.0.self_attn.q_proj"
    values = scales.astype(F32)[g_idx] * (q - z[g_idx]).astype(F32)
    write(folder, {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": order,
                                           "checkpoint_format": "gptq" if added else "gptq_v2"}},
          {p + ".qweight": qweight.view(np.int32), p + ".qzeros": qzeros.view(np.int32), p + ".scales": scales,
           p + ".g_idx": g_idx.astype(np.int32)}, {p + ".weight": values.T.copy()})


def awq(rng):
    inputs, outputs, group = 64, 24, 32
    q = rng.integers(0, 16, (inputs, outputs)).astype(np.int64)
    z = rng.integers(0, 16, (inputs // group, outputs)).astype(np.int64)
    scales = rng.uniform(0.01, 0.2, (inputs // group, outputs)).astype(np.float16)

    def pack(codes):
        words = np.zeros((codes.shape[0], outputs // 8), dtype=np.uint32)
        for word in range(outputs // 8):
            for nibble, column in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
                words[:, word] |= (codes[:, word * 8 + column] << (4 * nibble)).astype(np.uint32)
        return words.view(np.int32)

    p = "model.layers.0.self_attn.q_proj"
    values = scales.astype(F32).repeat(group, axis=0) * (q - z.repeat(group, axis=0)).astype(F32)
    write("awq", {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm",
                                          "zero_point": True}},
          {p + ".qweight": pack(q), p + ".qzeros": pack(z), p + ".scales": scales}, {p + ".weight": values.T.copy()})


def e4m3(codes):
    """Values of OCP E4M3, one formula a case."""
    sign = np.where(codes & 128, -1.0, 1.0)
    exponent = ((codes >> 3) & 15).astype(np.int64)
    mantissa = (codes & 7).astype(np.float64)
    values = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    return (sign * values).astype(F32)


def e5m2(codes):
    return (codes.astype(np.uint16) << 8).view(np.float16).astype(F32)


def fp8(rng):
    def codes(*shape, top):
        """Finite ones of either sign."""
        return (rng.integers(0, top, shape) | (rng.integers(0, 2, shape) << 7)).astype(np.uint8)

    tile = codes(10, 80, top=0x7F)
    scales = rng.uniform(0.001, 0.1, (3, 3)).astype(F32)
    spread = scales.repeat(4, axis=0)[:10].repeat(32, axis=1)[:, :80]
    row, row_scales = codes(4, 32, top=0x7F), rng.uniform(0.01, 1, (4, 1)).astype(F32)
    whole = codes(4, 32, top=0x7F)
    plain = codes(3, 8, top=0x7F)
    wide, wide_scale = codes(4, 32, top=0x7C), rng.uniform(0.01, 1, (1, 1)).astype(F32)
    write("fp8", {"quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 32],
                                          "activation_scheme": "dynamic"}},
          {"tile.weight": ("F8_E4M3", tile), "tile.weight_scale_inv": scales,
           "row.weight": ("F8_E4M3", row), "row.weight_scale": row_scales,
           "whole.weight": ("F8_E4M3", whole), "whole.weight_scale": np.array(0.25, dtype=F32),
           "whole.input_scale": np.array(2.0, dtype=F32),
           "wide.weight": ("F8_E5M2", wide), "wide.weight_scale_inv": wide_scale,
           "plain.weight": ("F8_E4M3", plain), "plain5.weight": ("F8_E5M2", plain)},
          {"tile.weight": e4m3(tile) * spread, "row.weight": e4m3(row) * row_scales,
           "whole.weight": e4m3(whole) * F32(0.25), "wide.weight": e5m2(wide) * wide_scale,
           "plain.weight": e4m3(plain), "plain5.weight": e5m2(plain)})


# ggml's table has no negative zero.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=F32)


def mxfp4(rng):
    blocks = rng.integers(0, 256, (2, 6, 3, 16), dtype=np.uint8)
    scales = rng.integers(110, 140, (2, 6, 3), dtype=np.uint8)
    values = np.empty((2, 6, 3, 32), dtype=F32)
    values[..., 0::2] = E2M1[blocks & 15]
    values[..., 1::2] = E2M1[blocks >> 4]
    values = np.ldexp(values, scales.astype(np.int32)[..., None] - 127).reshape(2, 6, 96)
    write("mxfp4", {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}},
          {"experts.gate_up_proj_blocks": blocks, "experts.gate_up_proj_scales": scales},
          {"experts.gate_up_proj": values.transpose(0, 2, 1)})


def main():
    rng = np.random.default_rng(16)
    bitsandbytes(rng, "nf4", "nf4", NF4, (6, 64), 32, False)
    bitsandbytes(rng, "nf4-nested", "nf4", NF4, (6, 64), 32, True)
    bitsandbytes(rng, "fp4-ragged", "fp4", FP4, (5, 21), 16, True)
    mlx(rng)
    gptq(rng, "gptq", 4, 32, 1, False)
    gptq(rng, "gptq-v2", 8, 32, 0, False)
    gptq(rng, "gptq-order", 4, 16, 1, True)
    awq(rng)
    fp8(rng)
    mxfp4(rng)


if __name__ == "__main__":
    main()
