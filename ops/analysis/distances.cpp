#include "ops/analysis/distances.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/power.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/products.h"

namespace caldera {
namespace {

void check_order(const char* op, double p) {
  if (!(p >= 0)) throw ValueError(fmt::format("{}: p is {}, want 0 or more", op, p));
}

// Distances of all pairs (..., P, R) of the vectors a (..., P, M) and b (..., R, M), whose leading axes are
// the same. Input 0 is the value; 1 and 2 are a and b. Derivatives need no tensor (..., P, R, M) in memory.

/// Longer vectors' derivatives are products with matrices.
constexpr std::int64_t kSubtracted = 4;

/// The sum over j of slopes (..., P, M, R) times factors (i, j).
LazyTensor weighted(const LazyTensor& slopes, const LazyTensor& factors) {
  return sum(slopes * expand_dims(factors, -2), -1);
}
/// All a_i - b_j, (..., P, M, R): sums over the second vectors are of rows.
LazyTensor offsets_in_rows(const LazyTensor& a, const LazyTensor& b) {
  return expand_dims(a, -1) - expand_dims(transpose(b), -3);
}
/// All a_i - b_j, (..., P, R, M).
LazyTensor offsets(const LazyTensor& a, const LazyTensor& b) {
  return expand_dims(a, -2) - expand_dims(b, -3);
}
/// What comes to the distances from the tangents of both, by slopes (..., P, R, M).
LazyTensor along_tangents(const JvpContext& c, const LazyTensor& slopes) {
  const auto tangent = [&](std::size_t i) {
    return c.tangents[i].defined() ? c.tangents[i] : zeros_like(c.inputs[i]);
  };
  return sum(slopes * offsets(tangent(1), tangent(2)), -1);
}
/// A gradient of the shape of what it is of, which vmap may have left without the mapped axis.
LazyTensor fitted(LazyTensor gradient, const LazyTensor& x) {
  while (gradient.rank() > x.rank()) gradient = sum(gradient, 0);
  return gradient;
}

/// Both without the mean of b: a common offset does not count, and would leave its own rounding where
/// products with matrices are subtracted.
struct Centred {
  LazyTensor a, b;
};
Centred centred(const LazyTensor& a, const LazyTensor& b) {
  const auto count = static_cast<double>(std::max<std::int64_t>(b.shape(-2), 1));
  const LazyTensor centre = stop_gradient(sum(b, -2, true) / count);
  return {a - centre, b - centre};
}
/// Euclidean: the slope in a is (a - b) / distance, and 0 at 0.
LazyTensor euclidean_factors(const LazyTensor& cotangent, const LazyTensor& distance) {
  const LazyTensor zero = equal(distance, 0.0);
  return where(zero, zeros_like(distance), cotangent / where(zero, ones_like(distance), distance));
}
/// sum over j of factors (i, j) times (a_i - b_j).
LazyTensor weighted_offsets(const LazyTensor& factors, const LazyTensor& a, const LazyTensor& b) {
  if (a.shape(-1) <= kSubtracted) return weighted(offsets_in_rows(a, b), factors);
  const auto [near_a, near_b] = centred(a, b);
  return sum(factors, -1, true) * near_a - matmul(factors, near_b);
}
void euclidean_vjp(VjpContext& c) {
  const LazyTensor &a = c.inputs[1], &b = c.inputs[2];
  const LazyTensor factors = euclidean_factors(c.cotangent, c.output);
  if (c.needed[1]) c.grads[1] = fitted(weighted_offsets(factors, a, b), a);
  if (c.needed[2]) c.grads[2] = fitted(weighted_offsets(transpose(factors), b, a), b);
}
void euclidean_jvp(JvpContext& c) {
  if (c.inputs[1].shape(-1) <= kSubtracted) {
    c.tangent = euclidean_factors(along_tangents(c, offsets(c.inputs[1], c.inputs[2])), c.output);
    return;
  }
  const auto [a, b] = centred(c.inputs[1], c.inputs[2]);
  LazyTensor total;
  // Of the first vectors' tangents; the products of the second ones with them stand transposed.
  const auto along = [](const LazyTensor& x, const LazyTensor& tangent, const LazyTensor& others) {
    return sum(x * tangent, -1, true) - matmul(tangent, transpose(others));
  };
  if (c.tangents[1].defined()) total = along(a, c.tangents[1], b);
  if (c.tangents[2].defined()) {
    const LazyTensor of_b = transpose(along(b, c.tangents[2], a));
    total = total.defined() ? total + of_b : of_b;
  }
  c.tangent = euclidean_factors(total, c.output);
}

/// The sum of magnitudes: the slopes are signs.
void manhattan_vjp(VjpContext& c) {
  const LazyTensor &a = c.inputs[1], &b = c.inputs[2];
  if (c.needed[1]) c.grads[1] = fitted(weighted(sign(offsets_in_rows(a, b)), c.cotangent), a);
  if (c.needed[2]) c.grads[2] = fitted(weighted(sign(offsets_in_rows(b, a)), transpose(c.cotangent)), b);
}
void manhattan_jvp(JvpContext& c) { c.tangent = along_tangents(c, sign(offsets(c.inputs[1], c.inputs[2]))); }

constexpr OpDef distance_op(std::string_view name, VjpRule vjp, JvpRule jvp) {
  return {.name = name, .kind = OpClass::identity, .vjp = vjp, .jvp = jvp};
}
const OpDef kEuclidean = distance_op("euclidean_distances", euclidean_vjp, euclidean_jvp);
const OpDef kManhattan = distance_op("manhattan_distances", manhattan_vjp, manhattan_jvp);

/// The distances of all pairs, in the type of a and b.
LazyTensor pairwise(const LazyTensor& a, const LazyTensor& b, double p) {
  const LazyTensor off = offsets(a, b);
  if (off.shape(-1) == 0)
    return zeros(Shape(off.shape().span().first(static_cast<std::size_t>(off.rank() - 1))), off.dtype(),
                 off.device());
  if (p != 1 && p != 2) return vector_norm(off, -1, p);
  const LazyTensor value = stop_gradient(p == 1 ? sum(abs(off), -1) : sqrt(sum(square(off), -1)));
  return ops::make(p == 1 ? kManhattan : kEuclidean, value.shape(), value.dtype(), {value, a, b});
}

/// The shape of matrices with these leading axes.
Shape with_rows(Shape batch, std::int64_t rows, std::int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}
/// x with these leading axes in front of its last two.
LazyTensor behind(const Shape& batch, const LazyTensor& x) {
  return broadcast_to(x, with_rows(batch, x.shape(-2), x.shape(-1)));
}

}  // namespace

LazyTensor ops::normalized(const LazyTensor& x, double p, int axis, double eps) {
  ops::check_domain("normalize", ScalarDomain::floating, x.dtype());
  if (x.rank() == 0) throw ShapeError("normalize: () has no axis along which it is a vector");
  const int at = x.shape().normalize_axis(axis, "normalize");
  if (x.numel() == 0) return x;
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  return astype(y / clip(vector_norm(y, at, p, true), LazyTensor(eps)), x.dtype());
}

LazyTensor cdist(const LazyTensor& a, const LazyTensor& b, double p) {
  const DType type = promote(a.dtype(), b.dtype());
  ops::check_domain("cdist", ScalarDomain::floating, type);
  check_order("cdist", p);
  if (a.rank() < 2 || b.rank() < 2 || a.shape(-1) != b.shape(-1))
    throw ShapeError(fmt::format("cdist: needs vectors (..., P, M) and (..., R, M), got {} and {}",
                                 a.shape().to_string(), b.shape().to_string()));
  const auto batch_of = [](const LazyTensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - 2)));
  };
  Shape batch;
  try {
    batch = broadcast_shapes(batch_of(a), batch_of(b), "cdist");
  } catch (const ShapeError&) {
    throw ShapeError(fmt::format("cdist: the leading axes of {} and {} do not broadcast",
                                 a.shape().to_string(), b.shape().to_string()));
  }
  const DType wide = compute_type(type);
  LazyTensor x = behind(batch, astype(a, wide)), y = behind(batch, astype(b, wide));
  const bool is_full = x.rank() == kMaxRank;  // differences have an axis more
  if (is_full) {
    const Shape examples{batch.numel()};
    x = reshape(x, with_rows(examples, x.shape(-2), x.shape(-1)));
    y = reshape(y, with_rows(examples, y.shape(-2), y.shape(-1)));
  }
  LazyTensor found = pairwise(x, y, p);
  if (is_full) found = reshape(found, with_rows(batch, x.shape(-2), y.shape(-2)));
  return astype(found, type);
}

LazyTensor pdist(const LazyTensor& x, double p) {
  ops::check_domain("pdist", ScalarDomain::floating, x.dtype());
  check_order("pdist", p);
  if (x.rank() != 2)
    throw ShapeError(fmt::format("pdist: needs the rows of (N, M), got {}", x.shape().to_string()));
  const std::int64_t n = x.shape(0);
  constexpr std::int64_t kMostRows = 46340;  // whose square int32 counts
  if (n > kMostRows)
    throw ShapeError(
        fmt::format("pdist: {} has more pairs of rows than int32 counts", x.shape().to_string()));
  if (n < 2) return zeros(Shape{0}, x.dtype(), x.device());
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  const LazyTensor all = pairwise(y, y, p);
  std::vector<std::int32_t> places;
  places.reserve(static_cast<std::size_t>(n * (n - 1) / 2));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) places.push_back(static_cast<std::int32_t>(i * n + j));
  }
  const Shape count{static_cast<std::int64_t>(places.size())};
  const LazyTensor found =
      take(reshape(all, Shape{n * n}), host_leaf<std::int32_t>(places, count, x.device()), 0);
  return astype(found, x.dtype());
}

}  // namespace caldera
