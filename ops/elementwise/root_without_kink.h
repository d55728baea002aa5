// Roots of sums of what is never negative: norms, deviations.
#pragma once

#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"

namespace caldera::ops {

/// root(total), a function like sqrt with an infinite slope at 0, where its value is 0 here and its gradient,
/// too.
template <class Root>
LazyTensor root_without_kink(const LazyTensor& total, const Root& root) {
  const LazyTensor zero = equal(total, 0.0);
  return where(zero, zeros_like(total), root(where(zero, ones_like(total), total)));
}

}  // namespace caldera::ops
