#include "ops/nn/random_activations.h"

#include <fmt/core.h>

#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/random/generator.h"
#include "ops/random/uniform_normal.h"

namespace caldera {

LazyTensor alpha_dropout(const LazyTensor& x, double p, std::uint64_t seed) {
  ops::check_domain("alpha_dropout", ScalarDomain::floating, x.dtype());
  // Written so that NaN is refused too.
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("alpha_dropout: probability {} is not in [0, 1]", p));
  if (p == 0) return x;
  if (p == 1) return where(zeros_like(x, DType::boolean), x, 0.0);
  constexpr double alpha = 1.7580993408473766;  // selu's scale times its alpha
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p)), b = alpha * a * p;
  const LazyTensor kept = greater_equal(random_uniform(x.shape(), seed, DType::f32, x.device()), p);
  return where(kept, x * a + b, b - alpha * a);
}
LazyTensor alpha_dropout(const LazyTensor& x, double p) { return alpha_dropout(x, p, next_seed()); }

LazyTensor rrelu(const LazyTensor& x, double lower, double upper, std::uint64_t seed) {
  ops::check_domain("rrelu", ScalarDomain::floating, x.dtype());
  if (!(std::isfinite(lower) && std::isfinite(upper) && lower <= upper))
    throw ValueError(fmt::format("rrelu: slopes from {} to {}", lower, upper));
  const LazyTensor drawn = random_uniform(x.shape(), seed, DType::f32, x.device());
  return where(x >= 0.0, x, x * astype(drawn * (upper - lower) + lower, x.dtype()));
}
LazyTensor rrelu(const LazyTensor& x, double lower, double upper) {
  return rrelu(x, lower, upper, next_seed());
}

}  // namespace caldera
