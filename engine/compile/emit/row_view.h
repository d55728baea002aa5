// RowView: a view of rows of numbers, told apart into which row and which number of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compile/program/view.h"

namespace caldera {

/// A number of some matrices of rows, or what is added to one.
struct RowPlace {
  std::int64_t matrix = 0, row = 0, column = 0;
};

/// Says where a view's elements are.
struct RowView {
  RowPlace first;
  std::vector<RowPlace> along;  // one step along each dimension

  /// Returns the view with extents `extents` of dense matrices of `rows` rows of `columns` numbers. None
  /// where an element's row would depend on more than the sum of its steps' rows, or its column likewise.
  static std::optional<RowView> of(const View& view, const Shape& extents, std::int64_t rows,
                                   std::int64_t columns);
};

}  // namespace caldera
