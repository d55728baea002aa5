#include "ops/nn/response_normalization.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/linalg/products.h"
#include "ops/spatial/pooling.h"

namespace caldera {

LazyTensor local_response_norm(const LazyTensor& x, std::int64_t size, const ResponseNormOptions& options) {
  const char* const op = "local_response_norm";
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  if (x.rank() < 3)
    throw ShapeError(fmt::format("{}: {} is not (examples, channels, ...)", op, x.shape().to_string()));
  if (size < 1) throw ValueError(fmt::format("{}: size is {}, want 1 or more", op, size));
  if (x.numel() == 0) return x;
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  // Channels as one axis of images, the rest as the other.
  const std::int64_t channels = x.shape(1), rest = x.numel() / (x.shape(0) * channels);
  const LazyTensor squares = reshape(square(y), Shape{x.shape(0), 1, channels, rest});
  const LazyTensor wide = pad(squares, {0, 0, size / 2, 0}, {0, 0, (size - 1) / 2, 0});
  const LazyTensor means = reshape(avg_pool(wide, {size, 1}, {.stride = {1}}), x.shape());
  return astype(y / pow(means * options.alpha + options.k, options.beta), x.dtype());
}

LazyTensor renorm(const LazyTensor& x, double p, AxisIndex axis, double maxnorm) {
  ops::check_domain("renorm", ScalarDomain::floating, x.dtype());
  if (x.rank() < 2) throw ShapeError(fmt::format("renorm: {} has fewer than 2 axes", x.shape().to_string()));
  if (!(p > 0)) throw ValueError(fmt::format("renorm: p is {}, want more than 0", p));
  if (!(maxnorm >= 0)) throw ValueError(fmt::format("renorm: maxnorm is {}, want 0 or more", maxnorm));
  const int at = x.shape().normalize_axis(axis, "renorm");
  std::vector<int> others;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at) others.push_back(i);
  }
  if (x.numel() == 0) return x;
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  const LazyTensor norms = vector_norm(y, others, p, true);
  const LazyTensor factors = where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0);
  return astype(y * factors, x.dtype());
}

}  // namespace caldera
