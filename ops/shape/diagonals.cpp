#include "ops/shape/diagonals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/manipulation.h"

namespace caldera {
namespace {

void check_matrix(const char* op, const LazyTensor& x) {
  if (x.rank() < 2)
    throw ShapeError(
        fmt::format("{}: {} has no matrices; it wants two axes or more", op, x.shape().to_string()));
}

/// x where column - row, compared with k, says so; 0 elsewhere.
LazyTensor triangle(const char* op, const LazyTensor& x, std::int64_t k,
                    LazyTensor (*keeps)(const LazyTensor&, const LazyTensor&)) {
  check_matrix(op, x);
  const std::int64_t rows = x.shape(-2), columns = x.shape(-1);
  const std::int64_t diagonal = std::clamp(k, -rows - 1, columns + 1);
  const Shape matrix{rows, columns};
  const LazyTensor ahead = iota(matrix, 1, DType::i32, x.device()) - iota(matrix, 0, DType::i32, x.device());
  return where(keeps(ahead, static_cast<int>(diagonal)), x, zeros_like(x));
}

}  // namespace

LazyTensor diagonal(const LazyTensor& x, std::int64_t offset, AxisIndex axis1, AxisIndex axis2) {
  check_matrix("diagonal", x);
  const int row = x.shape().normalize_axis(axis1, "diagonal"),
            column = x.shape().normalize_axis(axis2, "diagonal");
  if (row == column)
    throw ShapeError(
        fmt::format("diagonal: axes {} and {} of {} are the same", axis1, axis2, x.shape().to_string()));
  std::vector<int> order;
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == row || i == column) continue;
    order.push_back(i);
    shape.push_back(x.shape(i));
  }
  order.insert(order.end(), {row, column});
  const std::int64_t rows = x.shape(row), columns = x.shape(column);
  shape.push_back(rows * columns);
  const std::int64_t first_row = std::clamp<std::int64_t>(-offset, 0, rows),
                     first = std::clamp<std::int64_t>(offset, 0, columns);
  const std::int64_t count = std::min(rows - first_row, columns - first);
  const int last = shape.rank() - 1;
  const LazyTensor flat = reshape(permute_dims(x, order), shape);
  if (count == 0) return slice(flat, last, 0, 0);
  const std::int64_t start = first_row * columns + first;
  return slice(flat, last, start, start + (count - 1) * (columns + 1) + 1, columns + 1);
}

LazyTensor tril(const LazyTensor& x, std::int64_t k) { return triangle("tril", x, k, less_equal); }
LazyTensor triu(const LazyTensor& x, std::int64_t k) { return triangle("triu", x, k, greater_equal); }

LazyTensor diag(const LazyTensor& x, std::int64_t offset) {
  if (x.rank() == 1) return diag_embed(x, offset);
  if (x.rank() == 2) return diagonal(x, offset);
  throw ShapeError(fmt::format("diag: {} is neither a vector nor a matrix; see diag_embed and diagonal",
                               x.shape().to_string()));
}

LazyTensor diag_embed(const LazyTensor& x, std::int64_t offset, AxisIndex axis1, AxisIndex axis2) {
  if (x.rank() == kMaxRank)
    throw ShapeError(fmt::format("diag_embed: shape {} leaves no room for another axis: {} is the most",
                                 x.shape().to_string(), kMaxRank));
  const int last = x.shape().normalize_axis(-1, "diag_embed");
  constexpr std::int64_t kFarthest = std::numeric_limits<std::int32_t>::max();
  if (offset < -kFarthest || offset > kFarthest)
    throw ShapeError(fmt::format("diag_embed: no matrix has a diagonal {}", offset));
  const std::int64_t n = x.shape(last), extent = n + std::abs(offset);
  Shape shape = x.shape();
  shape[last] = extent;
  shape.push_back(extent);
  ops::check_extents("diag_embed", shape, x.dtype());
  const int row = shape.normalize_axis(axis1, "diag_embed"),
            column = shape.normalize_axis(axis2, "diag_embed");
  if (row == column)
    throw ShapeError(
        fmt::format("diag_embed: axes {} and {} of {} are the same", axis1, axis2, shape.to_string()));
  // In row-major order the elements of a diagonal are a row and one element apart.
  const auto rank = static_cast<std::size_t>(x.rank());
  std::vector<std::int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  low.back() = offset >= 0 ? offset : -offset * extent;
  interior.back() = extent;
  const std::int64_t covered = n == 0 ? 0 : (n - 1) * (extent + 1) + 1;
  high.back() = extent * extent - low.back() - covered;
  const LazyTensor matrices = reshape(ops::pad_with_zeros(x, low, high, interior), shape);
  return moveaxis(matrices, {-2, -1}, {row, column});
}

}  // namespace caldera
