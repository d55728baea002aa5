// KeepProblem: which values to keep for a backward pass and which to compute again, as a problem of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/autodiff/checkpoint/keep.h"

namespace caldera {

/// A value of the problem, by what it costs.
struct KeepCost {
  std::int64_t bytes = 0;             ///< that it takes while it is kept
  double seconds = 0;                 ///< to compute it again from its inputs
  std::vector<std::uint32_t> inputs;  ///< earlier values that it is computed from
  bool is_needed = false;             ///< the backward pass reads it
  bool may_be_kept = true;
};

/// An answer.
struct KeepAnswer {
  std::vector<bool> kept;
  std::int64_t bytes = 0;  ///< of what is kept
  double seconds = 0;      ///< of what is computed again, each value once
};

/// Values that are chosen from one by one: the most that cheapest_within() takes.
inline constexpr std::size_t kMostChosenOneByOne = 24;

/// The costs of a call's values: bytes of the tensors, and seconds at rates of a usual device, of which 10
/// multiply-adds take as long as to move a byte. What shares the memory of another value (a view) takes no
/// time and is not kept; nor is what lies inside of an attention.
std::vector<KeepCost> keep_costs(std::span<const InnerValue> values);

/// Counts what it costs to keep `kept` and nothing else.
KeepAnswer answer_of(std::span<const KeepCost> values, std::vector<bool> kept);

/// The cheapest answer that keeps at most `bytes`; of equals the one that keeps the fewest bytes. Exact:
/// branch and bound. Throws ValueError where there are more than kMostChosenOneByOne that may be kept, or
/// where a value's inputs are not earlier ones.
KeepAnswer cheapest_within(std::span<const KeepCost> values, std::int64_t bytes);

/// The answers on the lower convex hull of seconds over bytes, from what keeps the most to what keeps
/// nothing: no answer, nor a mixture of two, is better than these at what they keep. Each is a minimum cut
/// (Picard 1976, "Maximal closure of a graph") for one price of a byte. Many blocks with equal values mix two
/// neighbours. Throws as above for inputs.
std::vector<KeepAnswer> convex_answers(std::span<const KeepCost> values);

/// Finds that of them which keeps the most of those that keep at most `bytes` (0 or more): it halves the
/// hull, and so solves a few minimum cuts instead of one for each answer. Throws as convex_answers() does.
KeepAnswer convex_answer_within(std::span<const KeepCost> values, std::int64_t bytes);

}  // namespace caldera
