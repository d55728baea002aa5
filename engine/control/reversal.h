// Reversals: gradients of a loop that compute turns again rather than keep all of their carries. Internal to
// engine/control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/control/body.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct Reversal;

/// Computes what a call with these arguments gives, in a form that has a gradient in reverse.
using ReversalAsLoops = std::vector<LazyTensor> (*)(const Reversal&, std::span<const LazyTensor> arguments);

/// A loop run from its last turn to its first: engine/graph/control_layout.h says how. Immutable.
struct Reversal {
  std::string title;
  Body advance;  // of carries and slices: the carries of the next turn
  Body back;     // of carries, slices and states: states, then a slice of each stacked result
  std::size_t carries = 0, slices = 0, states = 0, stacked = 0;
  std::int64_t turns = -1;
  bool is_backwards = false;
  std::int64_t snapshots = 1;
  ReversalAsLoops as_loops = nullptr;  // of those of unknown turns
};
using ReversalPtr = std::shared_ptr<const Reversal>;

/// Tells the tensors that a reversal is called with apart.
struct ReversalArguments {
  std::span<const LazyTensor> carries, slices, states, of_advance, of_back;

  ReversalArguments(const Reversal& reversal, std::span<const LazyTensor> all);
};

/// A reversal and what it is called with: first carries, slices of all turns, states, what `advance`
/// captured, what `back` captured, and the number of turns (i64) where it is not known.
struct ReversalCall {
  ReversalPtr reversal;
  std::vector<LazyTensor> arguments;

  /// The states, then the stacked results. Gradients do not pass.
  std::vector<LazyTensor> values() const;
  /// Returns the same, differentiable forward, and where the number of turns is not known in reverse.
  std::vector<LazyTensor> results() const;
};

/// A loop as its gradient needs it. The body's arguments: carries, slices of `over`; its results: carries,
/// and then one of each stacked result.
struct LoopToReverse {
  const Body& body;
  std::span<const LazyTensor> init;
  std::span<const LazyTensor> over;       // of loops of known turns
  std::span<const LazyTensor> constants;  // that the body captured
  std::int64_t turns = -1;
  LazyTensor turns_value = {};  // where the number is not known
  bool is_backwards = false;
  std::int64_t snapshots = 1;
  ReversalAsLoops as_loops = nullptr;
};

/// The reversal that takes cotangents of the last carries (one for each floating one, none empty) and of
/// stacked results (empty where zero) to those of the floating carries, of what `constants` numbers, and,
/// stacked, of what `over` numbers.
ReversalCall reversal_of(const LoopToReverse& loop, std::span<const LazyTensor> carries,
                         std::span<const LazyTensor> stacked, std::span<const std::size_t> constants,
                         std::span<const std::size_t> over, std::string title);

}  // namespace caldera
