// Training data: from examples to token sequences, to batches in a reproducible order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"
#include "training/data/batch.h"
#include "training/data/example.h"

namespace caldera {

struct DatasetOptions {
  std::int64_t seq_len = 512;  ///< most inputs in a row; a sequence has at most seq_len + 1 tokens
  bool mask_prompt = false;    ///< leave predictions of prompt tokens out of the loss
};

/// Tokenised examples. Immutable once made; const methods may be called from several threads.
///
/// A plain text becomes one stream of tokens (with the special tokens the tokenizer puts around a text), cut
/// into windows of at most seq_len + 1 tokens. Neighbouring windows share one token, so that each token but
/// the first is predicted exactly once. Every other example becomes one sequence: the tokens of prompt +
/// text, then eos (if the tokenizer has one and the text did not end in it), cut after seq_len + 1 tokens.
/// Prompt and text are tokenised together; the prompt's part is what that has in common with the tokens of
/// the prompt alone. Of a pair the preferred text and the rejected one become a sequence each, and their
/// prompts never count. Of a conversation only what the assistant says counts, and no token is added to it.
///
/// Sequences in which nothing is left to predict (fewer than two tokens, or all of them masked) are left out,
/// a pair with both.
class TokenDataset {
 public:
  /// Throws ValueError when seq_len is not positive, no sequence is left, or some examples are pairs and some
  /// are not.
  TokenDataset(const ExampleSet& examples, const Tokenizer& tokenizer, const DatasetOptions& options);

  /// Number of examples.
  std::int64_t size() const { return static_cast<std::int64_t>(sequences_.size()) / sequences_per_example_; }
  /// 2 where the examples are pairs, else 1.
  std::int64_t sequences_per_example() const { return sequences_per_example_; }
  std::int64_t seq_len() const { return options_.seq_len; }
  /// The tokens of example `index`; of its sequence `which`, where it has several.
  std::span<const std::int32_t> tokens(std::int64_t index, std::int64_t which = 0) const;
  /// Number of predictions that count, over all sequences.
  std::int64_t counted() const;
  std::int32_t max_token_id() const;
  std::int64_t skipped() const { return skipped_; }      ///< examples left out
  std::int64_t truncated() const { return truncated_; }  ///< examples cut to seq_len + 1 tokens

  /// The examples `indices` as one batch, with the sequences of each behind one another. Rows are as long as
  /// the longest of them, rounded up to a multiple of 16 (so that few shapes occur, and plans repeat), but at
  /// most seq_len.
  Batch batch(std::span<const std::int64_t> indices) const;

 private:
  struct Sequence {
    std::size_t begin;   ///< in tokens_
    std::size_t length;  ///< in tokens, at least 2
  };

  struct Tokens {
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> counts;  ///< of each token: whether predicting it counts; never of the first
    bool truncated = false;
  };

  void add_windows(const std::vector<std::int32_t>& stream);
  void add_example(const Example& example, const Tokenizer& tokenizer);
  Tokens tokens_of(const Example& example, const std::string& text, const Tokenizer& tokenizer) const;
  const Sequence& sequence(std::int64_t index, std::int64_t which) const;

  DatasetOptions options_;
  std::int64_t sequences_per_example_ = 1;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> counts_;  // of each of tokens_
  std::vector<Sequence> sequences_;
  std::int64_t skipped_ = 0;
  std::int64_t truncated_ = 0;
};

/// Holds the place that a BatchIterator has reached: a checkpoint saves it.
struct BatchPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  ///< sequences of this epoch already given
  std::uint64_t size = 0;   ///< of the dataset, to notice another one

  bool operator==(const BatchPosition&) const = default;
};

/// An endless series of batches for training. Every epoch is a fresh permutation of the dataset, which
/// depends on seed, epoch number and size alone: the same on every machine. Batches always have `batch_size`
/// rows; where an epoch ends within a batch, the next one begins (so a dataset smaller than a batch repeats
/// within it).
class BatchIterator {
 public:
  /// `dataset` must outlive the iterator. Throws ValueError if batch_size is not positive.
  BatchIterator(const TokenDataset& dataset, std::int64_t batch_size, std::uint64_t seed);

  Batch next();

  /// Number of batches after which `epoch` grows by one, rounded up.
  std::int64_t batches_per_epoch() const { return (dataset_.size() + batch_size_ - 1) / batch_size_; }
  BatchPosition position() const { return position_; }
  /// Goes on as the iterator did that gave `position`. Throws ValueError if that one had a dataset of another
  /// size.
  void restore(const BatchPosition& position);

 private:
  const TokenDataset& dataset_;
  std::int64_t batch_size_;
  BatchPosition position_;
  std::vector<std::int64_t> order_;  ///< of the epoch position_.epoch
};

/// Every sequence once, in order; the last batch has fewer rows where they do not come out even. At most
/// `max_batches` where that is not negative. Throws ValueError if batch_size is not positive.
std::vector<Batch> batches_for_evaluation(const TokenDataset& dataset, std::int64_t batch_size,
                                          std::int64_t max_batches = -1);

}  // namespace caldera
