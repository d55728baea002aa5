// Products of rounded rows with weights that are scales times integers: sums of integers a block, each scaled
// once. Each loop exists for several instruction sets, and the best that this CPU has is taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/quantized/quantized_ops.h"
#include "engine/device/cpu/quantized/rounded_rows.h"
#include "engine/tensor/quantized_format.h"

namespace caldera::cpu {

/// Rows of a matrix that are multiplied together where there are many rows of x.
inline constexpr std::int64_t kPanelRows = 16;

/// Formats are those of has_integer_codes(), columns multiples of column_unit().
struct IntegerOps {
  /// Rounds `rows` rows of x, `stride` elements apart.
  void (*round)(const float* x, std::int64_t stride, std::int64_t rows, const RoundedRows& out);
  /// out[i * out_stride + n] = sum_k w[n][k] x[i][k] for `count` rows of the matrix and `m` rows of x.
  void (*dot)(const QuantizedLayout& layout, const QuantizedRow* rows, std::int64_t count,
              const RoundedRows& x, std::int64_t m, float* out, std::int64_t out_stride);
  /// The rest is null where the instruction set has no products of four bytes at a time: to multiply floats
  /// is as fast there.
  ///
  /// Rounds rows of x for weights of `format`: those of tile t, of `rows` rows in all.
  void (*round_tile)(QuantizedFormat format, const float* x, std::int64_t stride, std::int64_t rows,
                     std::int64_t t, const RoundedTiles& out);
  /// Writes kPanelRows rows of a matrix, interleaved, into memory of panel_bytes(), aligned to 64.
  void (*pack)(const QuantizedLayout& layout, const QuantizedRow* rows, std::int64_t columns,
               std::byte* panel);
  /// out[i * out_stride + n] = sum_k w[n][k] x[i][k] for n < count, for `m` rows of x.
  void (*multiply)(const QuantizedLayout& layout, const std::byte* panel, const RoundedTiles& x,
                   std::int64_t m, float* out, std::int64_t out_stride, std::int64_t count);
  /// Do what dot and pack do, of kPanelRows interleaved rows (engine/tensor/interleaved_rows.h).
  void (*dot_interleaved)(QuantizedFormat format, const std::byte* rows, const RoundedRows& x, std::int64_t m,
                          float* out, std::int64_t out_stride);
  void (*pack_interleaved)(QuantizedFormat format, const std::byte* rows, std::int64_t columns,
                           std::byte* panel);
};
const IntegerOps& integer_ops();
/// Chooses again: for tests that forbid some instruction sets (hwy::SetSupportedTargetsForTest), or those
/// that add products of four bytes.
const IntegerOps& choose_integer_ops(bool byte_dots);

/// Bytes of a panel for each block of columns: a code, two scales and two biases a row.
inline constexpr std::size_t kPanelBlockBytes =
    static_cast<std::size_t>(kPanelRows) * (kRoundedBlock + 4 * sizeof(float));
constexpr std::size_t panel_bytes(std::int64_t columns) {
  return static_cast<std::size_t>(columns / kRoundedBlock) * kPanelBlockBytes;
}

}  // namespace caldera::cpu
