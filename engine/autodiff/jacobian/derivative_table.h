// DerivativeTable: the derivatives of all elements of some results with respect to all elements of some
// variables. Internal to jacobian.h and grad_mode.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A table for results that were computed from variables; both outlive it. Block [k][i] is of result k with
/// respect to variable i: of shape result.shape + variable.shape and the dtype of the variable. The elements
/// of a space are gone through at once, by vmap over its unit vectors; one after the other where something on
/// the way cannot be mapped.
class DerivativeTable {
 public:
  using Blocks = std::vector<std::vector<LazyTensor>>;
  /// The derivatives of all results along a direction in the space of variable i.
  using Column = std::function<std::vector<LazyTensor>(std::size_t i, const LazyTensor& direction)>;

  /// Throws GradientError naming `transform` for a result that is not floating, and ShapeError where a block
  /// would have more than kMaxRank axes.
  DerivativeTable(std::span<const LazyTensor> results, std::span<const LazyTensor> variables,
                  std::string_view transform);

  /// Makes it in reverse mode, a row for each element of the results. Throws NoGradientRule where an
  /// operation lacks what that needs.
  Blocks by_rows() const;
  /// Makes it in forward mode, a column for each element of the variables. Throws NoTangentRule where an
  /// operation lacks what that needs.
  Blocks by_columns() const;
  /// Makes it of columns that are given, which are asked for one after the other.
  Blocks of_columns(const Column& column) const;

  std::int64_t rows() const;
  std::int64_t columns() const;

 private:
  enum class Along : std::uint8_t { all_at_once, one_by_one };

  Blocks of_columns(const Column& column, Along how) const;
  Shape shape_of(const LazyTensor& result, const LazyTensor& x) const;

  std::span<const LazyTensor> results_, variables_;
  std::string_view transform_;
};

}  // namespace caldera
