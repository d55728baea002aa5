// QuantizedTensor: matrices that stay quantised in memory, as the tensors that they are made of. Part of
// <caldera/caldera.h>.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/quantized_format.h"

namespace caldera {

/// A matrix (rows, columns), or several, (matrices, rows, columns), in one of the formats of
/// engine/tensor/quantized_format.h. Groups and blocks run along columns: of a weight (out_features,
/// in_features), along what a product with its input sums over.
///
/// `parts` are those of parts_of(), in that order, each with the extent `matrices` in front if there are
/// several (a table too); u32 may be i32 with the same bits, for devices that lack the former. They are data:
/// nothing is differentiated with respect to them.
struct QuantizedTensor {
  QuantizedLayout layout;
  Shape shape;
  std::vector<LazyTensor> parts;
  /// Says whether products with the transposed matrix, x W^T, may round x. That of devices that multiply in
  /// f32 anyway, of other formats, and what gradients multiply, is exact.
  Activations activations = Activations::exact;

  bool defined() const { return !parts.empty(); }
  std::int64_t matrices() const { return shape.rank() == 3 ? shape[0] : 1; }
  std::int64_t rows() const { return shape[shape.rank() - 2]; }
  std::int64_t columns() const { return shape[shape.rank() - 1]; }
  Device device() const { return parts.at(0).device(); }
  /// Counts the bytes of all parts.
  std::int64_t bytes() const;
};

/// Makes one of its parts, checked. Throws ShapeError or DTypeError for parts that are not those of `layout`
/// and `shape`, DeviceError for parts on several devices.
QuantizedTensor quantized_tensor(const QuantizedLayout& layout, const Shape& shape,
                                 std::vector<LazyTensor> parts);
/// Moves it to another device; copies nothing if it is there. Interleaved rows are separated on the way.
QuantizedTensor to(const QuantizedTensor& q, Device device);

/// Interleaves its rows (engine/tensor/interleaved_rows.h) where that makes products of rounded rows on the
/// CPU faster, and where its extents and format allow it; returns it as it is elsewhere. The weights are the
/// same, and products give the same but for the order of sums; what reads rows one by one is slower.
QuantizedTensor interleaved(const QuantizedTensor& q);
/// Does the reverse.
QuantizedTensor separated(const QuantizedTensor& q);

}  // namespace caldera
