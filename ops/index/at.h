// at: part of a tensor, to read it or to make a tensor in which it is something else. Part of ops/ops.h.
//
//   at(x, {{2, 4}, {{}, {}, 2}})   x[2:4, ::2]    slices
//   at(x, i, j)                    x[i, j]        integers that broadcast
//   at(x, mask)                    x[mask]        booleans
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The elements of a tensor that slices select. Values broadcast to the shape of those elements and take the
/// tensor's dtype; they are differentiated like the tensor. The tensor itself never changes.
class At {
 public:
  /// The first axes are sliced in turn, the others are taken whole. Throws ShapeError for more slices than
  /// axes, ValueError for a step of 0.
  At(LazyTensor x, std::vector<Slice> slices);

  LazyTensor get() const;
  /// The tensor with the elements replaced.
  LazyTensor set(const LazyTensor& values) const;
  /// The tensor with the values added to the elements, multiplied with them, or the smaller or larger of
  /// both.
  LazyTensor add(const LazyTensor& values) const;
  LazyTensor multiply(const LazyTensor& values) const;
  LazyTensor minimum(const LazyTensor& values) const;
  LazyTensor maximum(const LazyTensor& values) const;

 private:
  /// The values where they belong in a tensor of the whole shape, `rest` elsewhere.
  LazyTensor spread(const LazyTensor& values, double rest) const;
  LazyTensor selected() const;
  void check_numeric() const;

  LazyTensor x_;
  std::vector<Slice> slices_;
  Shape shape_;                               // of the elements
  std::vector<std::int64_t> low_, interior_;  // where they are: see pad()
  std::vector<std::int64_t> high_;
  std::vector<int> turned_;  // axes that are read backwards
};

/// `at(x, {{2, 4}}).set(y)` is what NumPy writes as `x[2:4] = y`.
inline At at(const LazyTensor& x, std::vector<Slice> slices) { return {x, std::move(slices)}; }

/// x[i, j, ...]: index tensors broadcast to one shape, which replaces the first axes of x, one for each.
/// Negative indices count from the end; what is outside of the axis gives NaN (or 0 in types without one).
LazyTensor index(const LazyTensor& x, const std::vector<LazyTensor>& indices);
/// x with values where index() would read; they broadcast to the shape of that and take x's dtype. Of values
/// with one index the last is left, or `how` combines them with what is there; for booleans add is "any".
/// What is outside is dropped.
LazyTensor index_put(const LazyTensor& x, const std::vector<LazyTensor>& indices, const LazyTensor& values,
                     Scatter how = Scatter::set);

/// The elements of a tensor that index tensors name, or that one mask chooses, whose axes are the first ones
/// of the tensor. Values broadcast to the shape of index(), and with a mask to the tensor's own, of which
/// those are taken for which the mask holds.
class AtTensors {
 public:
  /// Throws DTypeError for tensors that are neither integers nor one mask, ShapeError for a mask of other
  /// extents.
  AtTensors(LazyTensor x, std::vector<LazyTensor> which);

  /// Not of a mask, whose number of elements is known too late: see masked_select.
  LazyTensor get() const;
  LazyTensor set(const LazyTensor& values) const;
  LazyTensor add(const LazyTensor& values) const;
  /// Only with a mask.
  LazyTensor multiply(const LazyTensor& values) const;
  LazyTensor minimum(const LazyTensor& values) const;
  LazyTensor maximum(const LazyTensor& values) const;

 private:
  LazyTensor put(Scatter how, const LazyTensor& values) const;
  /// The values where the mask holds, `rest` elsewhere.
  LazyTensor spread(const LazyTensor& values, const LazyTensor& rest) const;

  LazyTensor x_;
  std::vector<LazyTensor> indices_;  // none with a mask
  LazyTensor mask_;                  // of x's rank
};

template <std::same_as<LazyTensor>... I>
requires(sizeof...(I) > 0) AtTensors at(const LazyTensor& x, const I&... which) { return {x, {which...}}; }

}  // namespace caldera
