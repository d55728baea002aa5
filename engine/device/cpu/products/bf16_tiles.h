// Tiles of products of bf16 by processors that multiply pairs of such numbers (AVX-512 BF16): what packs
// panels of an operand, and what multiplies one panel with another.
#pragma once

#include <cstdint>

namespace caldera::cpu {

/// Rows of a tile of C, and its columns: both are the width of a panel.
inline constexpr std::int64_t kPairRows = 14;
inline constexpr std::int64_t kPairColumns = 32;

/// An operand as panels see it: `width` rows of A or columns of B, each with `depth` terms of the sums.
/// Strides in elements.
struct PairSource {
  const std::uint16_t* data = nullptr;
  std::int64_t width = 0, depth = 0;
  std::int64_t width_stride = 0, depth_stride = 0;
};

/// Says what becomes of the sums of a tile: C = alpha * sum, or that added to C.
struct PairTile {
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0, columns = 0;
  float alpha = 1;
  bool add = false;
};

struct Bf16Tiles {
  /// Packs up to four panels of `panel_width` that are side by side, `panel_words` apart: words[p][w] holds
  /// terms 2 p and 2 p + 1 of row w of A, or column w of B, with zeros beyond depth. Words beyond the width
  /// are zeros in the last group of sixteen, so that up to sixteen words behind a panel are written.
  void (*pack)(const PairSource& source, std::int64_t panel_width, std::uint32_t* words,
               std::int64_t panel_words);
  /// Multiplies panels of kPairRows and kPairColumns. Sums are made in f32 in the order of the terms, pair by
  /// pair, so the bits of one do not depend on its tile. Products are exact but for numbers below 2^-126,
  /// which these instructions take and give as zero.
  void (*multiply)(std::int64_t pairs, const std::uint32_t* a, const std::uint32_t* b, const PairTile& tile);
};

/// Finds the functions of this processor; nullptr where it has no such instructions. Looks at every call, as
/// tests forbid some.
const Bf16Tiles* find_bf16_tiles();

}  // namespace caldera::cpu
