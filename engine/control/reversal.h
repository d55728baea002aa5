// reversed: gradients of a loop that computes turns again rather than keep all of their carries. Internal to
// engine/control.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/control/body.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A loop as its gradient needs it. The body's arguments: carries, slices of `over`; its results: carries,
/// and then one of each stacked result.
struct ReversedLoop {
  const Body& body;
  std::span<const LazyTensor> init;
  std::span<const LazyTensor> over;       // of known loops
  std::span<const LazyTensor> constants;  // that the body captured
  std::int64_t turns = -1;
  LazyTensor turns_value = {};  // i64, rank 0, where the number is not known
  bool is_backwards = false;
  std::int64_t snapshots = 1;
};

/// What comes back: of the floating carries, of the constants that are wanted, and stacked, of the tensors
/// gone through that are wanted.
struct ReversedGradients {
  std::vector<LazyTensor> carries, constants, over;
};

/// Cotangents of the last carries (one for each floating one, none empty) and of stacked results (empty where
/// zero) become those of what `constants` and `over` number.
ReversedGradients reversed(const ReversedLoop& loop, std::span<const LazyTensor> carries,
                           std::span<const LazyTensor> stacked, std::span<const std::size_t> constants,
                           std::span<const std::size_t> over, std::string_view title);

}  // namespace caldera
