// ExpertStack: the matrices of all experts of a layer in one tensor each, so that a product reads those of
// the experts that were chosen and no others.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lm/nn/module.h"

namespace caldera {

/// Says which rows of a product belong to which expert.
struct ExpertRows {
  LazyTensor tokens;   ///< (rows): the token of each row, i32
  LazyTensor experts;  ///< (rows): its expert; equal ones follow one another
  LazyTensor places;   ///< (tokens * chosen): the row of each token's choices, in their order

  /// Makes the rows of choices (tokens, chosen), i32: one for each, sorted by expert.
  static ExpertRows of(const LazyTensor& choices);
};

/// Matrices "gate_proj.weight", "up_proj.weight" and "down_proj.weight" of experts that are gated MLPs.
class ExpertStack {
 public:
  enum Which : std::size_t { gate, up, down };

  /// Says whether the matrices of all experts are there in one tensor each. Puts them there where they are
  /// not: experts then have parts of these tensors, which takes no more memory. That needs frozen matrices of
  /// one form, quantised or not, that are evaluated, and nothing else in the experts: no biases, no adapters.
  bool holds(std::span<const std::unique_ptr<Layer>> experts);

  /// Returns the matrices, (experts, out, in). Only where holds() says that they are there.
  const QuantizedTensor& operator[](Which which) const { return matrices_[which]; }

 private:
  bool is_part(std::size_t which, std::size_t expert, const Weight& weight) const;
  bool is_current(std::size_t which, std::span<Weight* const> weights) const;
  bool stack(std::size_t which, std::span<Weight* const> weights);

  std::array<QuantizedTensor, 3> matrices_;
  std::array<std::vector<std::uint64_t>, 3> nodes_;  // of the experts' first parts
};

}  // namespace caldera
