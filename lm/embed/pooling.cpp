#include "lm/embed/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/reduce/extrema.h"

namespace caldera {
namespace {

struct Named {
  std::string_view name;
  Pooling pooling;
};

constexpr std::array<Named, 5> kPoolings{{{"mean", Pooling::mean},
                                          {"cls", Pooling::cls},
                                          {"lasttoken", Pooling::last},
                                          {"last", Pooling::last},
                                          {"max", Pooling::max}}};
constexpr double kAbsent = -1e30;  // below any hidden state, and finite

void check(const LazyTensor& hidden, const LazyTensor& present) {
  if (hidden.rank() != 3 || present.shape() != Shape{hidden.shape(0), hidden.shape(1)})
    throw ShapeError(fmt::format("pooling: hidden states {} and present tokens {} do not fit",
                                 hidden.shape().to_string(), present.shape().to_string()));
}

/// Ones (B, T, 1) where a token is the last one present of its row.
LazyTensor last_ones(const LazyTensor& present) {
  const LazyTensor counts = sum(astype(present, DType::i32), {1}, true);
  const LazyTensor places =
      reshape(arange(present.shape(1), DType::i32, present.device()), Shape{1, present.shape(1)});
  return expand_dims(astype(equal(places, counts - 1), DType::f32), 2);
}

}  // namespace

Pooling pooling_of(std::string_view name) {
  const auto* found = std::ranges::find(kPoolings, name, &Named::name);
  if (found == kPoolings.end())
    throw ValueError(fmt::format("there is no pooling '{}' (valid: mean, cls, lasttoken, max)", name));
  return found->pooling;
}

std::string_view name(Pooling pooling) {
  return std::ranges::find(kPoolings, pooling, &Named::pooling)->name;
}

LazyTensor mean_pool(const LazyTensor& hidden, const LazyTensor& present) {
  check(hidden, present);
  const LazyTensor weights = expand_dims(astype(present, DType::f32), 2);
  return sum(astype(hidden, DType::f32) * weights, {1}) / maximum(sum(weights, {1}), 1e-9);
}

LazyTensor pool(const LazyTensor& hidden, const LazyTensor& present, Pooling pooling) {
  check(hidden, present);
  const LazyTensor states = astype(hidden, DType::f32);
  switch (pooling) {
    case Pooling::mean:
      return mean_pool(hidden, present);
    case Pooling::cls:
      return squeeze(slice(states, 1, 0, 1), 1);
    case Pooling::last:
      return sum(states * last_ones(present), {1});
    case Pooling::max:
      return max(where(expand_dims(present, 2), states, kAbsent), {1});
  }
  throw ValueError("pooling: not one of the enumeration");
}

LazyTensor normalize(const LazyTensor& x) { return x / maximum(sqrt(sum(x * x, {-1}, true)), 1e-12); }

}  // namespace caldera
