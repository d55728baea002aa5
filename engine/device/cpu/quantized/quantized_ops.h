// The loops over quantised weights: each exists for several instruction sets, and the best that this CPU has
// is taken.
#pragma once

#include <cstdint>

#include "engine/tensor/quantized_format.h"

namespace caldera::cpu {

/// A row of a quantised matrix: where its blocks (codes) begin, and its scales and biases as f32.
struct QuantizedRow {
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;
  const float* biases = nullptr;
  const float* table = nullptr;  // of codebook4
};

/// Columns at which a run of columns may begin: the block, the group; 1 for formats of single codes.
std::int64_t column_unit(const QuantizedLayout& layout);

struct QuantizedOps {
  /// Columns [first, first + count) of the row as floats. Both are multiples of column_unit(), but for a
  /// run that ends with the row.
  void (*decode)(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t first,
                 std::int64_t count, float* out);
  /// out[i * out_stride] = sum_k w[k] x[i * x_stride + k] for `m` rows of x, over all `columns` of the row.
  void (*dot)(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t columns, const float* x,
              std::int64_t x_stride, std::int64_t m, float* out, std::int64_t out_stride);
};
const QuantizedOps& quantized_ops();

/// Returns the value of every f16, by its bits.
const float* half_table();

}  // namespace caldera::cpu
