// Matrix products whose operands are both bf16, by processors that multiply pairs of such numbers: packed
// once, multiplied tile by tile, each block of the result handed on while it is in the caches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/device/cpu/products/half_product.h"

namespace caldera::cpu {

/// Says whether this processor has such instructions.
bool has_bf16_products();

/// Holds alpha * A B, one term of a sum of products.
struct Bf16Term {
  std::int64_t k = 0;
  HalfMatrix a, b;
  float alpha = 1;
};

/// Rows and columns of C that are done. Elements are at data[r * row_stride + c].
struct Bf16Block {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t row = 0, rows = 0;
  std::int64_t column = 0, columns = 0;
};
using Bf16BlockDone = std::function<void(const Bf16Block&)>;

/// C[m, n] = the sum of the terms in f32, or that added to C, whose rows are contiguous and `c_row` apart.
/// Outside of a parallel region threads share the work. The bits of an element depend on its row of A and its
/// column of B alone. Numbers below 2^-126 count as zero.
void multiply_bf16(std::int64_t m, std::int64_t n, std::span<const Bf16Term> terms, float* c,
                   std::int64_t c_row, bool add);

/// Computes the same in blocks of scratch memory. `done` is called for each, by any thread. Rows of fewer
/// than 256 columns are dense.
void multiply_bf16(std::int64_t m, std::int64_t n, std::span<const Bf16Term> terms,
                   const Bf16BlockDone& done);

}  // namespace caldera::cpu
