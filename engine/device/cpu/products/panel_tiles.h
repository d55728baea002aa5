// Tiles of products of f32 numbers, and of bf16 numbers by processors that multiply pairs of such (AVX-512
// BF16) or small matrices (AMX): what packs panels of an operand, and what multiplies one panel with another.
#pragma once

#include <cstdint>

#include "engine/device/cpu/products/panel.h"

namespace caldera::cpu {

/// Words of four bytes that packing may write to behind a panel.
inline constexpr std::int64_t kWordsBehind = 16;

/// Packs some panels of `panel_width` that are side by side, `panel_words` apart: words[p][w] holds the terms
/// of word p of row w of A, or column w of B, with zeros beyond depth. Words beyond the width are zeros in
/// the last group of sixteen, so that up to sixteen words behind a panel are written. `panel_width` is at
/// most sixteen or a multiple of that.
using PackPanelsFn = void (*)(const PanelSource& source, std::int64_t panel_width, std::uint32_t* words,
                              std::int64_t panel_words);

struct PanelTiles {
  /// Rows of a tile of C, and its columns: the width of a panel of A, and of B.
  std::int64_t rows = 0, columns = 0;
  /// Terms of a sum that a word holds: one in f32, or two in bf16.
  std::int64_t terms_of_word = 1;
  /// Words of which the depth of a panel is a multiple.
  std::int64_t depth_step = 1;
  /// A multiplication and addition of words, on one thread.
  double nanoseconds_of_word = 0;
  /// Rows of A may be packed in another order, which `multiply` knows.
  PackPanelsFn pack_rows = nullptr, pack_columns = nullptr;
  /// Multiplies a panel of A and one of B, each `depth` words deep. Sums are made in f32 in the order of the
  /// terms, so the bits of one do not depend on its tile.
  void (*multiply)(std::int64_t depth, const std::uint32_t* a, const std::uint32_t* b,
                   const PanelTile& tile) = nullptr;
  /// Called on a thread before it multiplies, and after that; or null.
  void (*take)() = nullptr;
  void (*release)() = nullptr;
};

/// Finds the functions of this processor (AVX-512) for products in f32 of operands in f32, f16 and bf16,
/// which packing widens; nullptr where it has no such instructions. Looks at every call, as tests forbid
/// some.
const PanelTiles* find_f32_tiles();

/// Finds those for products of bf16 by bf16: of matrices, or else of pairs. Products are exact but for
/// numbers below 2^-126, which these instructions take and give as zero.
const PanelTiles* find_bf16_tiles();
/// Finds those of pairs alone.
const PanelTiles* find_bf16_pair_tiles();

}  // namespace caldera::cpu
