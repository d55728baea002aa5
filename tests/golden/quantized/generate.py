#!/usr/bin/env python3
"""Makes tests/golden/quantized/*.json: quantised matrices of random bits, and their weights in float32; and in
edges/ the same of scales at the ends of their types: subnormal, the largest, infinite, no numbers.

    tests/golden/quantized/generate.py

needs Debian's python3-numpy. Each format is written here as its own project describes it: ggml's blocks from
ggml-quants.c (dequantize_row_*), affine groups from MLX (mx.dequantize), NF4 and FP4 from bitsandbytes
(functional.py: create_normal_map, create_fp4_map), E4M3 from the OCP 8-bit floating point specification.
A file: format, group, group_rows, shape, parts (type and bytes in hexadecimal), weights (float32, the same).
"""

import json
import pathlib

import numpy as np

F32 = np.float32
RNG = np.random.default_rng(16)
ROWS, COLUMNS = 3, 512
FOLDER = pathlib.Path(__file__).parent

IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
E2M1 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]  # doubled
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
FP4 = [v / 12 for v in [0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3]]


EDGES = False  # whether what is made belongs to edges/
FLOAT_EDGES = np.array([1e-45, -3e-45, 2.0 ** -127, -1.1e-39, 1.17549421e-38, 1.17549435e-38, -1.5e-38, 2e-36, 0.0, -0.0,
                        3.4e38, -3.4028235e38, np.inf, -np.inf, np.nan, 0.1], F32)
HALF_EDGES = np.array([6e-8, -1.8e-7, 6.097e-5, -6.104e-5, 0.0, -0.0, 65504, -65504, np.inf, -np.inf, np.nan, 1],
                      np.float16)


def halves(n, low=-14, high=2):
    """Scales of either sign, subnormal ones and 0 among them."""
    if EDGES:
        return RNG.choice(HALF_EDGES, n)
    values = (RNG.uniform(1, 2, n) * 2.0 ** RNG.integers(low, high, n) * RNG.choice([-1, 1], n)).astype(np.float16)
    values[:4] = np.array([0, 6e-8, -6.0e-5, 5.9e-5], np.float16)
    return values


def raw(n, count):
    return RNG.integers(0, 256, (n, count), dtype=np.uint8)


def put(block, at, values):
    values = np.ascontiguousarray(values)
    block[:, at:at + values.itemsize] = values.view(np.uint8).reshape(len(block), -1)


def nibbles(q):
    return np.concatenate([q & 15, q >> 4], 1).astype(np.int32)


def fifths(high):
    bits = high.copy().view(np.uint32).reshape(-1, 1)
    return ((bits >> np.arange(32, dtype=np.uint32)) & 1).astype(np.int32) * 16


def q4_0(n):
    b, d = raw(n, 18), halves(n)
    put(b, 0, d)
    return b, (nibbles(b[:, 2:]) - 8).astype(F32) * d.astype(F32)[:, None]


def q4_1(n):
    b, d, m = raw(n, 20), halves(n), halves(n)
    put(b, 0, d), put(b, 2, m)
    return b, nibbles(b[:, 4:]).astype(F32) * d.astype(F32)[:, None] + m.astype(F32)[:, None]


def q5_0(n):
    b, d = raw(n, 22), halves(n)
    put(b, 0, d)
    return b, ((nibbles(b[:, 6:]) | fifths(b[:, 2:6])) - 16).astype(F32) * d.astype(F32)[:, None]


def q5_1(n):
    b, d, m = raw(n, 24), halves(n), halves(n)
    put(b, 0, d), put(b, 2, m)
    codes = (nibbles(b[:, 8:]) | fifths(b[:, 4:8])).astype(F32)
    return b, codes * d.astype(F32)[:, None] + m.astype(F32)[:, None]


def q8_0(n):
    b, d = raw(n, 34), halves(n)
    put(b, 0, d)
    return b, b[:, 2:].view(np.int8).astype(F32) * d.astype(F32)[:, None]


def q2_k(n):
    b, d, m = raw(n, 84), halves(n), halves(n)
    put(b, 80, d), put(b, 82, m)
    out = np.zeros((n, 256), F32)
    for i in range(n):
        y, s = 0, 0
        for first in (16, 48):
            q = b[i, first:first + 32]
            for shift in (0, 2, 4, 6):
                for part in (q[:16], q[16:]):
                    scale = b[i, s]
                    s += 1
                    dl, ml = F32(d[i]) * F32(scale & 15), F32(m[i]) * F32(scale >> 4)
                    out[i, y:y + 16] = dl * ((part >> shift) & 3).astype(F32) - ml
                    y += 16
    return b, out


def q3_k(n):
    b, d = raw(n, 110), halves(n)
    put(b, 108, d)
    out = np.zeros((n, 256), F32)
    for i in range(n):
        aux = b[i, 96:108].copy().view(np.uint32)
        a, c, t = int(aux[0]), int(aux[1]), int(aux[2])
        low, pairs = 0x0f0f0f0f, 0x03030303
        words = [(a & low) | ((t & pairs) << 4), (c & low) | (((t >> 2) & pairs) << 4),
                 ((a >> 4) & low) | (((t >> 4) & pairs) << 4), ((c >> 4) & low) | (((t >> 6) & pairs) << 4)]
        scales = np.array(words, np.uint32).view(np.int8)
        y, s, mask = 0, 0, 1
        for first in (32, 64):
            q = b[i, first:first + 32]
            for shift in (0, 2, 4, 6):
                for lo in (0, 16):
                    dl = F32(d[i]) * F32(int(scales[s]) - 32)
                    s += 1
                    code = ((q[lo:lo + 16] >> shift) & 3).astype(np.int32)
                    code -= np.where(b[i, lo:lo + 16] & mask, 0, 4)
                    out[i, y:y + 16] = dl * code.astype(F32)
                    y += 16
                mask <<= 1
    return b, out


def scale_min(q, j):
    if j < 4:
        return int(q[j]) & 63, int(q[j + 4]) & 63
    return (int(q[j + 4]) & 15) | (int(q[j - 4]) >> 6) << 4, (int(q[j + 4]) >> 4) | (int(q[j]) >> 6) << 4


def q45_k(n, fifth):
    b, d, m = raw(n, 176 if fifth else 144), halves(n), halves(n)
    put(b, 0, d), put(b, 2, m)
    out = np.zeros((n, 256), F32)
    for i in range(n):
        q = b[i, 48 if fifth else 16:]
        high = b[i, 16:48]
        for j in range(8):
            sc, mn = scale_min(b[i, 4:16], j)
            part = q[j // 2 * 32:j // 2 * 32 + 32]
            code = (part >> 4 if j % 2 else part & 15).astype(np.int32)
            if fifth:
                code += np.where(high & (1 << j), 16, 0)
            out[i, 32 * j:32 * j + 32] = F32(d[i]) * F32(sc) * code.astype(F32) - F32(m[i]) * F32(mn)
    return b, out


def q6_k(n):
    b, d = raw(n, 210), halves(n)
    put(b, 208, d)
    out = np.zeros((n, 256), F32)
    for i in range(n):
        for half in range(2):
            ql, qh = b[i, 64 * half:64 * half + 64].astype(int), b[i, 128 + 32 * half:160 + 32 * half].astype(int)
            sc = b[i, 192 + 8 * half:200 + 8 * half].view(np.int8)
            for l in range(32):
                codes = [(ql[l] & 15) | (qh[l] & 3) << 4, (ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4,
                         (ql[l] >> 4) | (qh[l] >> 4 & 3) << 4, (ql[l + 32] >> 4) | (qh[l] >> 6 & 3) << 4]
                for part, code in enumerate(codes):
                    scale = F32(d[i]) * F32(sc[l // 16 + 2 * part])
                    out[i, 128 * half + l + 32 * part] = scale * F32(code - 32)
    return b, out


def iq4_nl(n):
    b, d = raw(n, 18), halves(n)
    put(b, 0, d)
    return b, d.astype(F32)[:, None] * np.array(IQ4, F32)[nibbles(b[:, 2:])]


def mxfp4(n):
    b = raw(n, 17)
    b[:, 0] = RNG.choice([0, 1, 2, 125, 127, 252, 253, 254, 255], n) if EDGES else RNG.integers(110, 134, n)
    scale = np.ldexp(F32(0.5), b[:, 0].astype(np.int32) - 127).astype(F32)
    return b, np.array(E2M1, F32)[nibbles(b[:, 1:])] * scale[:, None]


def save(name, group, group_rows, parts, weights):
    data = {"format": name, "group": group, "group_rows": group_rows, "shape": list(weights.shape),
            "parts": [{"type": t, "shape": list(p.shape), "bytes": np.ascontiguousarray(p).tobytes().hex()}
                      for t, p in parts],
            "weights": weights.astype(F32).tobytes().hex()}
    stem = name if group == 0 else f"{name}_{group}" + (f"x{group_rows}" if name == "fp8_e4m3" else "")
    if EDGES:
        stem = f"edges/{stem}" + ("" if group == 0 else "_" + parts[1][0])
    (FOLDER / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n")


def blocks():
    makers = {"q4_0": q4_0, "q4_1": q4_1, "q5_0": q5_0, "q5_1": q5_1, "q8_0": q8_0, "q2_k": q2_k, "q3_k": q3_k,
              "q4_k": lambda n: q45_k(n, False), "q5_k": lambda n: q45_k(n, True), "q6_k": q6_k, "iq4_nl": iq4_nl,
              "mxfp4": mxfp4}
    for name, make in makers.items():
        block = 256 if name.endswith("_k") else 32
        b, w = make(ROWS * COLUMNS // block)
        save(name, 0, 1, [("uint8", b.reshape(ROWS, -1))], w.reshape(ROWS, COLUMNS))


def affine(bits, group, dtype):
    codes = RNG.integers(0, 2 ** bits, (ROWS, COLUMNS))
    per = 32 // bits
    words = np.zeros((ROWS, COLUMNS // per), np.uint32)
    for i in range(per):  # least significant first
        words |= codes[:, i::per].astype(np.uint32) << np.uint32(bits * i)
    shape = (ROWS, COLUMNS // group)
    scales = (RNG.normal(size=shape) * 0.01).astype(np.float16)
    biases = (RNG.normal(size=shape) * 0.1).astype(np.float16)
    if dtype == "bfloat16":  # rounded to 8 digits, as the upper halves of float32
        scales, biases = ((x.astype(F32).view(np.uint32) >> 16).astype(np.uint16) for x in (scales, biases))
        wide = [(x.astype(np.uint32) << 16).view(F32) for x in (scales, biases)]
    elif dtype == "float32":  # GPTQ and AWQ: w = s (q - z), as s q - z s
        zeros = RNG.integers(0, 2 ** bits, shape)
        scales = scales.astype(F32)
        biases = (-zeros).astype(F32) * scales
        wide = [scales, biases]
    else:
        wide = [scales.astype(F32), biases.astype(F32)]
    s, b = (np.repeat(x, group, 1) for x in wide)
    w = s * codes.astype(F32) + b
    if dtype == "float32":
        assert np.array_equal(w, s * (codes - np.repeat(zeros, group, 1)).astype(F32))
    save(f"affine{bits}", group, 1, [("uint32", words), (dtype, scales), (dtype, biases)], w)


def codebook(group, table):
    codes = RNG.integers(0, 16, (ROWS, COLUMNS))
    packed = (codes[:, 0::2] << 4 | codes[:, 1::2]).astype(np.uint8)
    absmax = RNG.uniform(0.01, 3, (ROWS, COLUMNS // group)).astype(F32)
    values = np.array(table, F32)
    save("codebook4", group, 1, [("uint8", packed), ("float32", absmax), ("float32", values[None])],
         values[codes] * np.repeat(absmax, group, 1))


def e4m3(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return np.nan
    return sign * (mantissa / 8 * 2.0 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def fp8(group, group_rows, rows, columns):
    codes = raw(rows, columns)
    codes[0, :256 if columns >= 256 else columns] = np.arange(256)[:columns]
    scales = RNG.uniform(0.001, 2, (-(-rows // group_rows), -(-columns // group))).astype(F32)
    table = np.array([e4m3(c) for c in range(256)]).astype(F32)
    s = np.repeat(np.repeat(scales, group_rows, 0), group, 1)[:rows, :columns]
    save("fp8_e4m3", group, group_rows, [("uint8", codes), ("float32", scales)], table[codes] * s)


def plain(dtype, columns):
    values = RNG.normal(size=(ROWS, columns)).astype(F32)
    if dtype == "bfloat16":
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        save("bf16", 0, 1, [(dtype, bits)], (bits.astype(np.uint32) << 16).view(F32))
        return
    values = values.astype(np.float16 if dtype == "float16" else F32)
    save("f16" if dtype == "float16" else "f32", 0, 1, [(dtype, values)], values.astype(F32))


def number_bits(values, dtype):
    """Floats in a type of memory, and what they are in float32. Of bfloat16 the upper half."""
    if dtype == "float32":
        return values.astype(F32), values.astype(F32)
    if dtype == "float16":
        half = values.astype(np.float16)
        return half, half.astype(F32)
    upper = (values.astype(F32).view(np.uint32) >> 16).astype(np.uint16)
    upper[np.isnan(values)] = 0x7fc0
    return upper, (upper.astype(np.uint32) << 16).view(F32)


def scale_edges(shape, dtype):
    return number_bits(RNG.choice(FLOAT_EDGES if dtype != "float16" else HALF_EDGES.astype(F32), shape), dtype)


def affine_edges(bits, group, dtype):
    """Rows: scales of all digits with biases of all digits, which a product and a sum round twice; scales at the ends; and
    scales and biases at the ends."""
    codes = RNG.integers(0, 2 ** bits, (ROWS, COLUMNS))
    per = 32 // bits
    words = np.zeros((ROWS, COLUMNS // per), np.uint32)
    for i in range(per):
        words |= codes[:, i::per].astype(np.uint32) << np.uint32(bits * i)
    shape = (ROWS, COLUMNS // group)
    scales, wide_scales = scale_edges(shape, dtype)
    biases, wide_biases = scale_edges(shape, dtype)
    for values, wide, row in ((scales, wide_scales, 0), (biases, wide_biases, 0), (biases, wide_biases, 1)):
        values[row], wide[row] = number_bits(RNG.normal(size=shape[1]), dtype)
    s, b = (np.repeat(x, group, 1) for x in (wide_scales, wide_biases))
    save(f"affine{bits}", group, 1, [("uint32", words), (dtype, scales), (dtype, biases)], s * codes.astype(F32) + b)


def codebook_edges(group):
    codes = RNG.integers(0, 16, (ROWS, COLUMNS))
    packed = (codes[:, 0::2] << 4 | codes[:, 1::2]).astype(np.uint8)
    scales, wide = scale_edges((ROWS, COLUMNS // group), "float32")
    values = np.array(NF4, F32)
    save("codebook4", group, 1, [("uint8", packed), ("float32", scales), ("float32", values[None])],
         values[codes] * np.repeat(wide, group, 1))


def fp8_edges(group, dtype):
    """Every code with every scale at the ends."""
    edges = HALF_EDGES.astype(F32) if dtype == "float16" else FLOAT_EDGES
    scales, wide = number_bits(np.stack([edges, edges[::-1]]), dtype)
    codes = np.stack([np.tile(np.arange(256, dtype=np.uint8), len(edges) * group // 256)] * 2)
    table = np.array([e4m3(c) for c in range(256)]).astype(F32)
    save("fp8_e4m3", group, 1, [("uint8", codes), (dtype, scales)], table[codes] * np.repeat(wide, group, 1))


def edges():
    global EDGES
    EDGES = True
    with np.errstate(all="ignore"):
        blocks()
        for dtype in ("float32", "float16", "bfloat16"):
            for bits in (2, 4, 8):
                affine_edges(bits, 32, dtype)
            fp8_edges(256, dtype)
        codebook_edges(64)


def main():
    blocks()
    affine(2, 32, "float16")
    affine(4, 64, "bfloat16")
    affine(4, 128, "float32")
    affine(8, 32, "float16")
    codebook(64, NF4)
    codebook(128, FP4)
    fp8(128, 2, 3, 300)
    fp8(301, 1, 3, 301)
    plain("float32", 77)
    plain("float16", 77)
    plain("bfloat16", 77)
    edges()


if __name__ == "__main__":
    main()
