// QuantizedNode: what an operation of OpClass::quantized computes. The contract between ops/ and the
// compiler.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/tensor/quantized_format.h"

namespace caldera {

/// Describes a node over quantised matrices by its attributes. Its inputs: x (count, rows or columns; f32) of
/// products; `which` (count; i32) of take_rows, and of products where `is_indexed`; then the parts of the
/// matrices, each (matrices, rows, columns) of its own or without the first. The output, in f32:
/// - dequantize: (matrices, rows, columns);
/// - take_rows: (count, columns): of all rows of all matrices, one after the other, those that `which` names;
/// - product: (count, rows); transposed_product: (count, columns): of the matrix that `which` names for each
///   row of x, else of the only one.
/// What `which` names outside of the matrices (rows) is NaN.
struct QuantizedNode {
  QuantizedWork work{};
  QuantizedLayout layout;
  std::int64_t matrices = 1, rows = 0, columns = 0;
  bool is_indexed = false;
  /// Says whether a product may round x; exact in other work.
  Activations activations = Activations::exact;

  using Attributes = std::array<std::int64_t, 10>;
  Attributes attributes() const {
    return {static_cast<std::int64_t>(work),
            static_cast<std::int64_t>(layout.format),
            layout.group,
            layout.group_rows,
            matrices,
            rows,
            columns,
            is_indexed ? 1 : 0,
            static_cast<std::int64_t>(activations),
            layout.interleaved ? 1 : 0};
  }
  static QuantizedNode of(std::span<const std::int64_t> a) {
    return {.work = static_cast<QuantizedWork>(a[0]),
            .layout = {static_cast<QuantizedFormat>(a[1]), a[2], a[3], a[9] != 0},
            .matrices = a[4],
            .rows = a[5],
            .columns = a[6],
            .is_indexed = a[7] != 0,
            .activations = static_cast<Activations>(a[8])};
  }
  /// Whether x is rounded.
  bool rounds() const { return activations == Activations::rounded; }
  bool is_product() const {
    return work == QuantizedWork::product || work == QuantizedWork::transposed_product;
  }
};

}  // namespace caldera
