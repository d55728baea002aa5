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
  Body advance;  // of carries, slices, lists: the carries of the next turn
  Body back;     // of carries, slices, lists, states: states, a slice of each stacked result, listed results
  std::size_t carries = 0, slices = 0, lists = 0, states = 0, stacked = 0, listed = 0;
  std::int64_t turns = -1;
  bool is_backwards = false;
  std::int64_t snapshots = 1;
  ReversalAsLoops as_loops = nullptr;  // of those of unknown turns

  std::size_t tensors_of_a_list() const { return turns < 0 ? 0 : static_cast<std::size_t>(turns); }
};
using ReversalPtr = std::shared_ptr<const Reversal>;

/// Tells the tensors that a reversal is called with apart.
struct ReversalArguments {
  std::span<const LazyTensor> carries, slices, listed, states, of_advance, of_back;

  ReversalArguments(const Reversal& reversal, std::span<const LazyTensor> all);
};

/// A reversal and what it is called with: first carries, slices of all turns, the tensors of all lists,
/// states, what `advance` captured, what `back` captured, and the number of turns (i64) where it is not
/// known.
struct ReversalCall {
  ReversalPtr reversal;
  std::vector<LazyTensor> arguments;

  /// The states, the stacked results, the listed ones. Gradients do not pass.
  std::vector<LazyTensor> values() const;
  /// Returns the same, differentiable forward, and where the number of turns is not known in reverse.
  std::vector<LazyTensor> results() const;
};

/// A loop as its gradient needs it. The body's arguments: carries, slices of `over`, tensors of lists; its
/// results: carries, then one of each stacked result and of each listed one.
struct LoopToReverse {
  const Body& body;
  std::span<const LazyTensor> init;
  std::span<const LazyTensor> over;       // of loops of known turns
  std::span<const LazyTensor> listed;     // the tensors of their lists
  std::span<const LazyTensor> constants;  // that the body captured
  std::int64_t turns = -1;
  LazyTensor turns_value = {};  // where the number is not known
  bool is_backwards = false;
  std::int64_t snapshots = 1;
  ReversalAsLoops as_loops = nullptr;
};

/// Cotangents of the last carries (one for each floating one, none empty), of stacked and of listed results
/// (empty where zero).
struct CotangentsOfLoop {
  std::span<const LazyTensor> carries, stacked = {}, listed = {};
};
/// Numbers of what a gradient is of, besides the floating carries.
struct TargetsOfLoop {
  std::span<const std::size_t> constants, over = {}, lists = {};
};

/// The reversal that takes cotangents to those of the floating carries, of `targets.constants`, and, stacked
/// and listed, of `targets.over` and `targets.lists`.
ReversalCall reversal_of(const LoopToReverse& loop, const CotangentsOfLoop& along,
                         const TargetsOfLoop& targets, std::string title);

}  // namespace caldera
