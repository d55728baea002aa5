// Batch: rows of tokens for one step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace caldera {

/// Holds what is known of rows that the model itself has written; all empty for rows of data.
struct Drawn {
  std::vector<float> rewards;     ///< of each row
  std::vector<float> advantages;  ///< of each row: by how much it is better than its like
  std::vector<float> deviations;  ///< of each row: the standard deviation of its group's rewards
  std::vector<float> log_p;       ///< of each target, by the model that drew it; empty: by the present one
};

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
  std::vector<float> labels = {};      ///< of each example; empty where they have none
  std::vector<std::string> data = {};  ///< of each prompt, Example::row
  Drawn drawn = {};

  /// Lengths of the sequences that stand one behind the other in each row, where rows are packed; padding
  /// following the last. Empty: each row is one sequence.
  std::vector<std::vector<std::int64_t>> lengths;

  bool packed() const { return !lengths.empty(); }
  std::int64_t tokens = 0;  ///< inputs that are tokens, not padding

  /// Number of predictions that count.
  std::int64_t counted() const;
};

/// Returns the rows of all batches as one, each padded to the longest. All must be packed or none, and have
/// or lack labels and the rest alike.
Batch joined(std::span<const Batch> batches);

}  // namespace caldera
