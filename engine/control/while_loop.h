// while_loop: a loop whose count of turns depends on what it computes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct WhileOptions {
  /// Counts the carries that a gradient keeps at a time; the others are computed again, as few as possible
  /// (see scan()). At least 1.
  std::int64_t snapshots = 32;
};

/// Runs `body` on `init`, then on what it gave, for as long as `test` of that is true. `test` gives one bool;
/// `body` gives carries of the shapes and dtypes that it gets (ShapeError, DTypeError). What both capture is
/// the same in every turn, and differentiated like an argument. Both are called once, on stand-ins:
/// evaluating what depends on them is a ValueError.
///
/// Differentiable: forward, and in reverse by running the turns again from `snapshots` of them. In reverse
/// over reverse each of n turns is run again about n / (2 `snapshots`) times more (of 64 snapshots at most):
/// forward over reverse is cheaper.
std::vector<LazyTensor> while_loop(const TensorFunction& test, const VectorFunction& body,
                                   std::span<const LazyTensor> init, WhileOptions options = {});
LazyTensor while_loop(const UnaryFunction& test, const UnaryFunction& body, const LazyTensor& init,
                      WhileOptions options = {});

}  // namespace caldera
