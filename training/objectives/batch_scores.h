// Scores of a batch: the log-probabilities that a model gives to what counts in it.
#pragma once

#include <cstdint>
#include <vector>

#include "lm/models/causal_lm.h"
#include "training/data/batch.h"

namespace caldera {

/// Returns the hidden states of the batch's inputs: (rows, seq_len, hidden).
LazyTensor batch_hidden_states(CausalLM& model, const Batch& batch);

/// Returns the batch's targets, or its weights, on the model's device: (rows, seq_len).
LazyTensor batch_targets(const CausalLM& model, const Batch& batch);
LazyTensor batch_weights(const CausalLM& model, const Batch& batch);

/// Returns the log-probability of each target times its weight, in nats, 0 where it does not count: (rows,
/// seq_len) f32. No tensor of all logits is made (log_probabilities_of_head).
LazyTensor token_log_probabilities(CausalLM& model, const Batch& batch);

/// Returns their sums over each row: (rows) f32.
LazyTensor row_log_probabilities(CausalLM& model, const Batch& batch);

/// Counts the predictions of each row that count: (rows) f32, on the model's device; at least 1.
LazyTensor row_lengths(const CausalLM& model, const Batch& batch);

/// Returns the tokens of a row, the last one included; padding is not.
std::vector<std::int32_t> row_tokens(const Batch& batch, std::int64_t row);

/// Returns the first prediction of a row that counts: the number of tokens before that one, less 1.
std::int64_t first_counted(const Batch& batch, std::int64_t row);

/// Holds whole rows of a batch, the last token of each included, and which of their tokens are there.
struct WholeRows {
  LazyTensor ids;      ///< (rows, width) i32
  LazyTensor present;  ///< (rows, width) boolean
};
WholeRows whole_rows(const CausalLM& model, const Batch& batch);

/// Returns the scores of the rows by their last tokens (CausalLM::scores): (rows, classes) f32.
LazyTensor row_scores(CausalLM& model, const Batch& batch);

/// Returns every `stride`-th of `rows`, (rows), from `first` on: of pairs the chosen ones are 0, 2, 4, ...
LazyTensor every(const LazyTensor& rows, std::int64_t first, std::int64_t stride);

/// Returns whether a gradient reaches a trainable parameter of the model through its logits alone: the head
/// is trained, or its adapter is.
bool is_head_trained(CausalLM& model);

}  // namespace caldera
