"""Frequencies of rotary positions for the scripts beside this one, from the equations of Hugging Face's
modeling_rope_utils.py (compute_default_rope_parameters, _compute_linear_..., _compute_dynamic_ntk_...,
_compute_yarn_..., _compute_longrope_..., _compute_llama3_parameters)."""

import math

import torch


def frequencies(width, theta, rope=None, max_positions=None, length=None):
    """Of `width` features that are rotated, and what cosines and sines are multiplied by. `rope` is rope_scaling or
    rope_parameters of a configuration, `length` that of the text."""
    rope = rope or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    factor = rope.get("factor")
    original = rope.get("original_max_position_embeddings", max_positions)
    i = torch.arange(0, width, 2, dtype=torch.float64)
    plain = theta ** (-i / width)
    if kind == "default":
        return plain, 1.0
    if kind == "linear":
        return plain / factor, 1.0
    if kind == "dynamic":
        seen = max(length, original)
        base = theta * ((factor * seen / original) - (factor - 1)) ** (width / (width - 2))
        return base ** (-i / width), 1.0
    if kind == "llama3":
        wavelengths = 2 * math.pi / plain
        longest, shortest = original / rope["low_freq_factor"], original / rope["high_freq_factor"]
        result = []
        for frequency, wavelength in zip(plain.tolist(), wavelengths.tolist()):
            if wavelength < shortest:
                result.append(frequency)
            elif wavelength > longest:
                result.append(frequency / factor)
            else:
                smooth = (original / wavelength - rope["low_freq_factor"]) / (
                    rope["high_freq_factor"] - rope["low_freq_factor"])
                result.append((1 - smooth) * frequency / factor + smooth * frequency)
        return torch.tensor(result, dtype=torch.float64), 1.0
    if kind == "yarn":
        def correction(rotations):
            return width * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

        low, high = correction(rope.get("beta_fast", 32)), correction(rope.get("beta_slow", 1))
        if rope.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        if low == high:
            high += 0.001
        ramp = ((torch.arange(width // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
        scale = rope.get("attention_factor")
        if scale is None:
            def mscale(m):
                return 0.1 * m * math.log(factor) + 1 if factor > 1 else 1.0

            if rope.get("mscale") and rope.get("mscale_all_dim"):
                scale = mscale(rope["mscale"]) / mscale(rope["mscale_all_dim"])
            else:
                scale = mscale(1)
        return plain / factor * ramp + plain * (1 - ramp), scale
    assert kind == "longrope", kind
    factors = rope["long_factor"] if length > original else rope["short_factor"]
    factor = factor or max_positions / original
    scale = rope.get("attention_factor") or math.sqrt(1 + math.log(factor) / math.log(original))
    return plain / torch.tensor(factors, dtype=torch.float64), scale
