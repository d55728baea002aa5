#include "ops/shape/compositions.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"

namespace caldera {
namespace {

/// The positions of all choices, row after row; empty if there are more than `most` choices.
std::vector<std::int32_t> choices_of(std::int64_t n, std::int64_t r, bool with_replacement,
                                     std::size_t most) {
  std::vector<std::int32_t> out;
  std::vector<std::int64_t> at(static_cast<std::size_t>(r));
  for (std::int64_t i = 0; i < r; ++i) at[static_cast<std::size_t>(i)] = with_replacement ? 0 : i;
  if (n == 0 || (!with_replacement && r > n)) return out;
  std::size_t count = 0;
  for (;;) {
    if (++count > most) return {};
    for (const std::int64_t i : at) out.push_back(static_cast<std::int32_t>(i));
    // The last position that may still move.
    std::int64_t last = r - 1;
    const auto highest = [&](std::int64_t i) { return with_replacement ? n - 1 : n - r + i; };
    while (last >= 0 && at[static_cast<std::size_t>(last)] == highest(last)) --last;
    if (last < 0) return out;
    std::int64_t next = at[static_cast<std::size_t>(last)] + 1;
    for (std::int64_t i = last; i < r; ++i) {
      at[static_cast<std::size_t>(i)] = next;
      next += with_replacement ? 0 : 1;
    }
  }
}

/// How many choices there are, as a floating number: it may be beyond integers.
double count_of(std::int64_t n, std::int64_t r, bool with_replacement) {
  if (n == 0 || (!with_replacement && r > n)) return 0;
  double count = 1;
  for (std::int64_t i = 0; i < r && count < 1e18; ++i) {
    const auto of = static_cast<double>(with_replacement ? n + i : n - i);
    count = count * of / static_cast<double>(i + 1);
  }
  return count;
}

}  // namespace

LazyTensor kron(const LazyTensor& a, const LazyTensor& b) {
  const DType type = promote(ops::dtype_beside(a, b), ops::dtype_beside(b, a));
  ops::check_domain("kron", ScalarDomain::numeric, type);
  const int rank = std::max(a.rank(), b.rank());
  if (2 * rank > kMaxRank)
    throw ShapeError(fmt::format("kron: {} and {} have more than {} axes", a.shape().to_string(),
                                 b.shape().to_string(), kMaxRank / 2));
  const auto extent = [&](const LazyTensor& x, int i) {
    const int own = i - (rank - x.rank());
    return own < 0 ? 1 : x.shape(own);
  };
  Shape of_a, of_b, out;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t outer = extent(a, i), inner = extent(b, i);
    of_a.push_back(outer);
    of_a.push_back(1);
    of_b.push_back(1);
    of_b.push_back(inner);
    std::int64_t both = 0;
    if (__builtin_mul_overflow(outer, inner, &both))
      throw ShapeError(fmt::format("kron: {} and {} have too many products", a.shape().to_string(),
                                   b.shape().to_string()));
    out.push_back(both);
  }
  ops::check_extents("kron", out, type);
  const auto operand = [&](const LazyTensor& x, const LazyTensor& other) {
    return ops::anchored(ops::as_held_operand("kron", x, type), ops::device_of({other, x}));
  };
  return reshape(reshape(operand(a, b), of_a) * reshape(operand(b, a), of_b), out);
}

LazyTensor block_diag(const std::vector<LazyTensor>& given) {
  if (given.empty()) throw ValueError("block_diag: no tensors are given");
  const std::vector<LazyTensor> parts = ops::as_tensors("block_diag", given);
  std::int64_t columns = 0;
  std::vector<LazyTensor> matrices;
  for (const LazyTensor& part : parts) {
    if (part.rank() > 2)
      throw ShapeError(fmt::format("block_diag: {} is no matrix", part.shape().to_string()));
    matrices.push_back(part.rank() == 2 ? part : reshape(part, Shape{1, part.numel()}));
    columns += matrices.back().shape(1);
  }
  std::vector<LazyTensor> rows;
  std::int64_t before = 0;
  for (const LazyTensor& matrix : matrices) {
    const std::int64_t behind = columns - before - matrix.shape(1);
    rows.push_back(pad(matrix, {0, before}, {0, behind}));
    before += matrix.shape(1);
  }
  return concatenate(rows, 0);
}

LazyTensor cartesian_prod(const std::vector<LazyTensor>& vectors) {
  if (vectors.empty()) throw ValueError("cartesian_prod: no vectors are given");
  for (const LazyTensor& vector : vectors) {
    if (vector.rank() != 1)
      throw ShapeError(fmt::format("cartesian_prod: {} is no vector", vector.shape().to_string()));
  }
  if (vectors.size() == 1) return vectors[0];
  if (vectors.size() > static_cast<std::size_t>(kMaxRank))
    throw ShapeError(fmt::format("cartesian_prod: {} vectors, {} is the most", vectors.size(), kMaxRank));
  std::vector<LazyTensor> columns = meshgrid(vectors, GridIndexing::ij);
  for (LazyTensor& column : columns) column = flatten(column);
  return stack(columns, 1);
}

LazyTensor combinations(const LazyTensor& x, std::int64_t r, bool with_replacement) {
  if (x.rank() != 1) throw ShapeError(fmt::format("combinations: {} is no vector", x.shape().to_string()));
  if (r < 0) throw ValueError(fmt::format("combinations: r is {}, want 0 or more", r));
  if (r == 0) return reshape(slice(x, 0, 0, 0), Shape{0, 0});
  constexpr double kMost = 1 << 24;
  const double count = count_of(x.numel(), r, with_replacement);
  if (count * static_cast<double>(r) > kMost)
    throw ShapeError(
        fmt::format("combinations: {} choices of {} of {} elements are too many", count, r, x.numel()));
  const std::vector<std::int32_t> places =
      choices_of(x.numel(), r, with_replacement, static_cast<std::size_t>(kMost));
  const Shape shape{static_cast<std::int64_t>(places.size()) / r, r};
  return take(x, host_leaf<std::int32_t>(places, shape, x.device()), 0);
}

LazyTensor vander(const LazyTensor& x, std::optional<std::int64_t> n, bool increasing) {
  ops::check_domain("vander", ScalarDomain::numeric, x.dtype());
  if (x.rank() == 0) throw ShapeError("vander: () has no elements in a row");
  const std::int64_t count = n.value_or(x.shape(-1));
  if (count < 0) throw ValueError(fmt::format("vander: n is {}, want 0 or more", count));
  if (x.rank() == kMaxRank)
    throw ShapeError(fmt::format("vander: {} leaves no room for another axis", x.shape().to_string()));
  // Twice as many powers at each step: those that are there, times the next one.
  const LazyTensor column = expand_dims(astype(x, compute_type(x.dtype())), -1);
  LazyTensor powers = ones_like(column), next = column;
  while (powers.shape(-1) < count) {
    powers = concatenate({powers, powers * next}, -1);
    next = next * next;
  }
  powers = astype(slice(powers, -1, 0, count), x.dtype());
  return increasing ? powers : flip(powers, -1);
}

}  // namespace caldera
