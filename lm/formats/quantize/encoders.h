// Encoders: matrices of floats into quantised formats, on the host. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/tensor/quantized_format.h"

namespace caldera::detail {

/// Rows of `columns` floats as ggml's blocks of `format`. Q8_0 and Q4_0 round as ggml's reference does, bit
/// for bit; Q4_K and Q6_K search scales (and minima) that make the weighted squared error small, as ggml's
/// do; MXFP4 is as its standard has it. Throws ValueError for another format, for columns that are no whole
/// blocks, and, naming `weight`, for values that are infinite, no numbers, or so large that the scale of
/// their block is.
std::vector<std::byte> encode_blocks(QuantizedFormat format, std::span<const float> values,
                                     std::int64_t columns, const std::string& weight);

/// Affine codes as MLX packs them: see parts_of() of affine formats.
struct AffineCodes {
  std::vector<std::uint32_t> codes;
  std::vector<float> scales;
  std::vector<float> biases;
};

/// Rows as mlx.core.quantize encodes them with 4 or 8 bits. Throws ValueError unless groups divide columns,
/// and as encode_blocks() for values.
AffineCodes encode_affine(std::span<const float> values, std::int64_t columns, std::int64_t group,
                          std::int64_t bits, const std::string& weight);

}  // namespace caldera::detail
