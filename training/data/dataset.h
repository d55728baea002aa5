// Training data: from files to examples, to token sequences, to batches in a reproducible order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// One example of a data file. The model sees `prompt` followed by `text`; `prompt` may be empty.
struct Example {
  std::string prompt;
  std::string text;
};

/// The examples of one file.
struct ExampleSet {
  /// From a .txt: one long document, to be cut into windows. Otherwise each example is a sequence of its own.
  bool plain_text = false;
  std::vector<Example> examples;
};

/// Reads a data file. `.jsonl`: an object a line, with {"text"} or {"prompt", "completion"}; other fields are
/// ignored, blank lines and examples without text are skipped. `.txt`: the whole text is one document. Throws
/// FileError, for a line "path:line: ...": a missing or empty file, another extension, broken JSON, a field
/// that is not a string, chat messages (not supported yet), no example with text.
ExampleSet load_examples(const std::filesystem::path& path);

/// The parts of a data folder.
struct DataSplits {
  ExampleSet train;
  std::optional<ExampleSet> valid;
  std::optional<ExampleSet> test;
};

/// Reads a folder with train, valid and test (each .jsonl or .txt; only train must be there), or one file as
/// train. Throws FileError as load_examples does, and when a part is there in both forms.
DataSplits load_splits(const std::filesystem::path& path);

/// Rows of tokens for one step. The arrays are row-major (batch_size, seq_len): targets[i] is what follows
/// inputs[i], weights[i] is 1 where that prediction counts and 0 on padding and masked prompts. Padding is id
/// 0.
struct Batch {
  std::int64_t batch_size = 0;
  std::int64_t seq_len = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<float> weights;

  /// Number of predictions that count.
  std::int64_t counted() const;
};

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
/// the prompt alone.
///
/// Sequences in which nothing is left to predict (fewer than two tokens, or all of them masked) are left out.
class TokenDataset {
 public:
  /// Throws ValueError when seq_len is not positive, or no sequence is left.
  TokenDataset(const ExampleSet& examples, const Tokenizer& tokenizer, const DatasetOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(sequences_.size()); }
  std::int64_t seq_len() const { return options_.seq_len; }
  /// The tokens of sequence `index`.
  std::span<const std::int32_t> tokens(std::int64_t index) const;
  /// Number of predictions that count, over all sequences.
  std::int64_t counted() const;
  std::int32_t max_token_id() const;
  std::int64_t skipped() const { return skipped_; }      ///< examples left out
  std::int64_t truncated() const { return truncated_; }  ///< examples cut to seq_len + 1 tokens

  /// The sequences `indices` as one batch. Rows are as long as the longest of them, rounded up to a multiple
  /// of 16 (so that few shapes occur, and plans repeat), but at most seq_len.
  Batch batch(std::span<const std::int64_t> indices) const;

 private:
  struct Sequence {
    std::size_t begin;     ///< in tokens_
    std::size_t length;    ///< in tokens, at least 2
    std::size_t unscored;  ///< leading tokens that are no prediction of interest, at least 1 (nothing
                           ///< predicts the first)
  };

  void add_windows(const std::vector<std::int32_t>& stream);
  void add_example(const Example& example, const Tokenizer& tokenizer);

  DatasetOptions options_;
  std::vector<std::int32_t> tokens_;
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
