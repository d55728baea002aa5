#include "ops/analysis/distances.h"

#include <fmt/core.h>

#include <cstdint>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/linalg/products.h"

namespace caldera {
namespace {

void check_order(const char* op, double p) {
  if (!(p >= 0)) throw ValueError(fmt::format("{}: p is {}, want 0 or more", op, p));
}

/// The distances of all pairs, in the type of a and b.
LazyTensor pairwise(const LazyTensor& a, const LazyTensor& b, double p) {
  const LazyTensor off = expand_dims(a, -2) - expand_dims(b, -3);
  if (off.shape(-1) == 0)
    return zeros(Shape(off.shape().span().first(static_cast<std::size_t>(off.rank() - 1))), off.dtype(),
                 off.device());
  return vector_norm(off, -1, p);
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
  try {
    broadcast_shapes(batch_of(a), batch_of(b), "cdist");
  } catch (const ShapeError&) {
    throw ShapeError(fmt::format("cdist: the leading axes of {} and {} do not broadcast",
                                 a.shape().to_string(), b.shape().to_string()));
  }
  const DType wide = compute_type(type);
  return astype(pairwise(astype(a, wide), astype(b, wide), p), type);
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
