// Batch: rows of tokens for one step.
#pragma once

#include <cstdint>
#include <vector>

namespace caldera {

/// Rows of tokens. The arrays are row-major (batch_size, seq_len): targets[i] is what follows inputs[i],
/// weights[i] is 1 where that prediction counts and 0 on padding and masked prompts. Padding is id 0.
struct Batch {
  std::int64_t batch_size = 0;  ///< rows
  std::int64_t seq_len = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<float> weights;
  /// Rows that belong to one example: of a pair 2, the preferred one first.
  std::int64_t sequences_per_example = 1;

  /// Lengths of the sequences that stand one behind the other in each row, where rows are packed; padding
  /// following the last. Empty: each row is one sequence.
  std::vector<std::vector<std::int64_t>> lengths;

  bool packed() const { return !lengths.empty(); }
  std::int64_t tokens = 0;  ///< inputs that are tokens, not padding

  /// Number of predictions that count.
  std::int64_t counted() const;
};

}  // namespace caldera
