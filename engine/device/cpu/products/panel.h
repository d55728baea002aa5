// PanelSource: what panels of a product are made of. PanelTile: what becomes of two of them. panel_tiles.h
// packs and multiplies panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// An operand as panels see it: `width` rows of A or columns of B, each with `depth` terms of the sums.
/// Strides in elements.
struct PanelSource {
  const std::byte* data = nullptr;
  DType type = DType::f32;
  std::int64_t width = 0, depth = 0;
  std::int64_t width_stride = 0, depth_stride = 0;
};

/// Says what becomes of the sums of a tile: C = alpha * sum, or that added to C.
struct PanelTile {
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0, columns = 0;
  float alpha = 1;
  bool add = false;
};

}  // namespace caldera::cpu
