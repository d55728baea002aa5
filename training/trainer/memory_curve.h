// Memory against time: what a training step takes under several limits, and what fits into one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/memory/step_memory.h"
#include "training/objectives/objective.h"
#include "training/trainer/train_options.h"

namespace caldera {

class TokenDataset;
class TrainingSet;

/// Plans a step on the longest batch (and validations of `valid`, if it is not null) under limits of these
/// shares of what it takes without one, from that on; the first row is without a limit (limit_bytes 0), and
/// one more, the last, is for `own_limit` bytes, if that is not 0. Nothing is evaluated. The device's limit
/// is as before afterwards. Throws as plan_memory().
std::vector<MemoryRow> memory_curve(const ObjectiveModels& models, const Objective& objective,
                                    const TrainingSet& data, const TokenDataset* valid,
                                    const TrainOptions& options, std::span<const double> shares,
                                    std::uint64_t own_limit = 0);

/// Says what of a kind fits into the device's limit.
struct MemoryFit {
  std::int64_t longest_seq_len = 0;  ///< tokens of a row, at options.batch_size rows; 0: not even one fits
  std::int64_t largest_batch = 0;    ///< rows of `seq_len` tokens; 0: not even one fits
  MemoryChoice choice;               ///< for the longest
  std::uint64_t least_bytes = 0;     ///< that one token a row takes, where not even that fits; else 0
};

/// Finds by planning, with next-token steps of `model` on rows of its first token, the longest row of at most
/// `most_tokens` and the largest batch of at most `most_rows`, with the checkpointing of the options. Nothing
/// is evaluated. Throws ValueError where the device has no limit.
MemoryFit fit_memory(CausalLM& model, const TrainOptions& options, std::int64_t seq_len,
                     std::int64_t most_tokens, std::int64_t most_rows);

}  // namespace caldera
