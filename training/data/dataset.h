// Training data: from examples to token sequences, and to batches of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"
#include "training/data/batch.h"
#include "training/data/forms/example.h"
#include "training/data/indexed_examples.h"
#include "training/data/training_set.h"

namespace caldera {

/// Says which tokens of an example count towards the loss.
enum class LossOn : std::uint8_t {
  usual,  ///< what the form of the data says: all of a text, a completion with its prompt, what an assistant
          ///< says
  all,    ///< every token, prompts and what users say among them
  completion,  ///< completions, and what assistants say; not prompts
  last         ///< of a conversation the last answer; of others as `completion`
};

struct DatasetOptions {
  std::int64_t seq_len = 512;  ///< most inputs in a row; a sequence has at most seq_len + 1 tokens
  LossOn loss_on = LossOn::usual;
  bool may_be_empty = false;  ///< no sequence is no error
};

/// Counts what became of the examples that are not whole in a dataset.
struct DatasetLosses {
  std::int64_t truncated = 0;     ///< cut to seq_len + 1 tokens
  std::int64_t too_short = 0;     ///< left out: fewer than two tokens
  std::int64_t prompt_fills = 0;  ///< left out: nothing that counts is within the first seq_len + 1 tokens
  std::int64_t masked = 0;        ///< left out: nothing in it counts, whatever the length

  DatasetLosses& operator+=(const DatasetLosses& other);
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
class TokenDataset final : public TrainingSet, public IndexedExamples {
 public:
  /// Throws ValueError when seq_len is not positive, no sequence is left (DatasetOptions::may_be_empty), or
  /// some examples are pairs and some are not.
  TokenDataset(const ExampleSet& examples, const Tokenizer& tokenizer, const DatasetOptions& options);
  /// Takes several files, each with its weight (ExampleSet::weight).
  TokenDataset(std::span<const ExampleSet> files, const Tokenizer& tokenizer, const DatasetOptions& options);

  /// Number of examples.
  std::int64_t size() const { return static_cast<std::int64_t>(sequences_.size()) / sequences_per_example_; }
  std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::uint64_t epoch) const override;
  std::int64_t epoch_size() const override;
  std::int64_t sequences_per_example() const override { return sequences_per_example_; }
  ExampleKind kind() const { return kind_; }
  /// Whether every example has a label.
  bool is_labelled() const { return labelled_; }
  /// One more than the largest label; 0 without labels.
  std::int64_t classes() const;
  std::int64_t seq_len() const override { return options_.seq_len; }
  std::span<const std::int32_t> tokens(std::int64_t index, std::int64_t which = 0) const override;
  /// Whether predicting each of those tokens counts; never the first.
  std::vector<bool> counts(std::int64_t index, std::int64_t which = 0) const;
  /// Number of predictions that count, over all sequences.
  std::int64_t counted() const;
  std::int32_t max_token_id() const;
  const DatasetLosses& losses() const { return losses_; }
  /// Number of examples left out.
  std::int64_t skipped() const { return losses_.too_short + losses_.prompt_fills + losses_.masked; }
  std::int64_t truncated() const { return losses_.truncated; }  ///< examples cut to seq_len + 1 tokens

  Batch batch(std::span<const std::int64_t> indices) const override;
  Batch packed_batch(std::span<const std::vector<std::int64_t>> rows) const override;

  /// A BatchIterator (batch_iterator.h).
  std::unique_ptr<BatchSource> batches(std::int64_t batch_size, std::uint64_t seed,
                                       Packing packing) const override;
  /// Rows of the longest example.
  Batch longest_batch(std::int64_t batch_size, Packing packing) const override;
  const TokenDataset& sample() const override { return *this; }
  /// Depends on the tokens of all examples, their order, and how many predictions count: the same on every
  /// machine (FNV-1a, 64 bits).
  std::string fingerprint() const override;

 private:
  struct Sequence {
    std::size_t begin;   ///< in tokens_
    std::size_t length;  ///< in tokens, at least 2
  };

  struct Tokens {
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> counts;  ///< of each token: whether predicting it counts; never of the first
    bool truncated = false;
    bool counts_whole = false;  ///< whether anything counts, were nothing cut
  };

  /// Examples of one file, from `begin` to before `end`.
  struct Part {
    std::int64_t begin, end;
    double weight;
  };

  void add_windows(const std::vector<std::int32_t>& stream);
  void fill_row(Batch& batch, std::int64_t row, std::int64_t column, const Sequence& from) const;
  void add_example(const Example& example, const Tokenizer& tokenizer);
  Tokens tokens_of(const Example& example, const std::string& text, const Tokenizer& tokenizer) const;
  const Sequence& sequence(std::int64_t index, std::int64_t which) const;

  DatasetOptions options_;
  std::int64_t sequences_per_example_ = 1;
  ExampleKind kind_ = ExampleKind::text;
  bool labelled_ = false;
  std::vector<float> labels_;      // of each example, where all have one
  std::vector<std::string> rows_;  // of each prompt
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> counts_;  // of each of tokens_
  std::vector<Sequence> sequences_;
  std::vector<Part> parts_;
  DatasetLosses losses_;
};

/// Every sequence once, in order; the last batch has fewer rows where they do not come out even. At most
/// `max_batches` where that is not negative. Throws ValueError if batch_size is not positive.
std::vector<Batch> batches_for_evaluation(const TokenDataset& dataset, std::int64_t batch_size,
                                          std::int64_t max_batches = -1);

}  // namespace caldera
