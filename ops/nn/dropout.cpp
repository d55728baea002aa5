#include "ops/nn/dropout.h"

#include <fmt/core.h>

#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/random/generator.h"
#include "ops/random/uniform_normal.h"

namespace caldera {
namespace {

/// x where a number drawn for each place of `mask`, which broadcasts to x, is p or more.
LazyTensor dropped(const char* op, const LazyTensor& x, double p, std::uint64_t seed, const Shape& mask) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  // Written so that NaN is refused too.
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: probability {} is not in [0, 1]", op, p));
  if (p == 0) return x;
  const LazyTensor drawn = random_uniform(mask, seed, DType::f32, x.device());
  // For p = 1 nothing is chosen; what is not chosen must be finite for the sake of the gradient.
  return where(greater_equal(drawn, p), x * (p < 1 ? 1 / (1 - p) : 0), zeros_like(x));
}

}  // namespace

LazyTensor dropout(const LazyTensor& x, double p, std::uint64_t seed) {
  return dropped("dropout", x, p, seed, x.shape());
}

LazyTensor channel_dropout(const LazyTensor& x, double p, std::uint64_t seed) {
  if (x.rank() < 2)
    throw ShapeError(fmt::format("channel_dropout: {} is not (batch, channels, ...)", x.shape().to_string()));
  Shape channels{x.shape(0), x.shape(1)};
  for (int i = 2; i < x.rank(); ++i) channels.push_back(1);
  return dropped("channel_dropout", x, p, seed, channels);
}

LazyTensor dropout(const LazyTensor& x, double p) { return dropout(x, p, next_seed()); }
LazyTensor channel_dropout(const LazyTensor& x, double p) { return channel_dropout(x, p, next_seed()); }

}  // namespace caldera
