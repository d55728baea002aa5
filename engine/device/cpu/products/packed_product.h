// Matrix products whose operands are packed once, in panels, and multiplied tile by tile; each block of the
// result is handed on while it is in the caches. In f32, or of pairs of bf16 numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/device/cpu/products/half_product.h"
#include "engine/device/cpu/products/panel_tiles.h"

namespace caldera::cpu {

/// Holds alpha * A B, one term of a sum of products. k > 0.
struct ProductTerm {
  std::int64_t k = 0;
  FloatMatrix a, b;
  float alpha = 1;
};

/// Rows and columns of C that are done. Elements are at data[r * row_stride + c].
struct ProductBlock {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t row = 0, rows = 0;
  std::int64_t column = 0, columns = 0;
};
using ProductBlockDone = std::function<void(const ProductBlock&)>;

/// C[m, n] = the sum of the terms in f32, or that added to C, whose rows are contiguous and `c_row` apart.
/// Outside of a parallel region threads share the work. The bits of an element depend on its row of A and its
/// column of B alone. Tiles of pairs take operands in bf16, and numbers below 2^-126 as zero.
void multiply_packed(const PanelTiles& tiles, std::int64_t m, std::int64_t n,
                     std::span<const ProductTerm> terms, float* c, std::int64_t c_row, bool add);

/// Computes the same in blocks of scratch memory. `done` is called for each, by any thread. Rows of fewer
/// than 256 columns are dense.
void multiply_packed(const PanelTiles& tiles, std::int64_t m, std::int64_t n,
                     std::span<const ProductTerm> terms, const ProductBlockDone& done);

}  // namespace caldera::cpu
