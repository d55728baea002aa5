#include "training/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/splitmix64.h"

namespace caldera {
namespace {

/// The standard library's shuffle and distributions differ between implementations; an order of training data
/// must not.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return splitmix64(state_ += kSplitMix64Step); }
  /// Uniform in [0, bound): values from the incomplete last multiple of `bound` are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t value = next();
    while (value < reject) value = next();
    return value % bound;
  }

 private:
  std::uint64_t state_;
};

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  // Seed and epoch pass through the mixer one after the other, so that (1, 0) and (0, 1) are unrelated.
  SplitMix64 random(SplitMix64(seed).next() + epoch);
  random = SplitMix64(random.next());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

void check_batch_size(std::int64_t batch_size) {
  if (batch_size < 1) throw ValueError(fmt::format("batch size {}: must be positive", batch_size));
}

}  // namespace

std::int64_t Batch::counted() const {
  return std::ranges::count_if(weights, [](float w) { return w != 0.0F; });
}

TokenDataset::TokenDataset(const ExampleSet& examples, const Tokenizer& tokenizer,
                           const DatasetOptions& options)
    : options_(options) {
  if (options.seq_len < 1) {
    throw ValueError(fmt::format("sequence length {}: must be positive", options.seq_len));
  }
  const auto is_pair = [](const Example& example) { return example.rejected.has_value(); };
  const auto pairs = std::ranges::count_if(examples.examples, is_pair);
  if (pairs > 0) {
    if (pairs != std::ranges::ssize(examples.examples))
      throw ValueError(fmt::format("of {} examples {} are pairs and the others are not: train on one kind",
                                   examples.examples.size(), pairs));
    sequences_per_example_ = 2;
  }
  for (const auto& example : examples.examples) {
    if (examples.plain_text)
      add_windows(tokenizer.encode(example.prompt + example.text));
    else
      add_example(example, tokenizer);
  }
  if (sequences_.empty()) {
    throw ValueError(
        fmt::format("the data hold no sequence with anything to predict ({} examples, all too short{})",
                    examples.examples.size(),
                    options.mask_prompt ? " or with prompts that fill the sequence length" : ""));
  }
}

void TokenDataset::add_windows(const std::vector<std::int32_t>& stream) {
  const auto step = static_cast<std::size_t>(options_.seq_len);
  const std::size_t base = tokens_.size();
  if (stream.size() < 2) {
    ++skipped_;
    return;
  }
  tokens_.insert(tokens_.end(), stream.begin(), stream.end());
  counts_.insert(counts_.end(), stream.size(), 1);
  for (std::size_t at = 0; at + 1 < stream.size(); at += step) {
    sequences_.push_back({base + at, std::min(step + 1, stream.size() - at)});
  }
}

TokenDataset::Tokens TokenDataset::tokens_of(const Example& example, const std::string& text,
                                             const Tokenizer& tokenizer) const {
  Tokens result;
  const bool add_special = !example.rendered;
  const std::string whole = example.prompt + text;
  std::vector<std::int32_t>& ids = result.ids = tokenizer.encode(whole, add_special);
  // The number of leading tokens that are before byte `end` of the text. A token that reaches across it
  // belongs to what follows: it must be predicted.
  const auto tokens_before = [&](std::size_t end) {
    const auto part = tokenizer.encode(std::string_view(whole).substr(0, end), add_special);
    return static_cast<std::size_t>(std::ranges::mismatch(part, ids).in1 - part.begin());
  };
  const bool pair = example.rejected.has_value();
  if (!example.learned.empty() && !pair) {
    result.counts.assign(ids.size(), 0);
    for (const TextSpan& span : example.learned) {
      const std::size_t begin = tokens_before(example.prompt.size() + span.begin);
      const std::size_t end = tokens_before(example.prompt.size() + span.end);
      std::fill(result.counts.begin() + static_cast<std::ptrdiff_t>(begin),
                result.counts.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end)), 1);
    }
  } else {
    result.counts.assign(ids.size(), 1);
    if ((options_.mask_prompt || pair) && !example.prompt.empty())
      std::fill_n(result.counts.begin(), tokens_before(example.prompt.size()), 0);
  }
  const auto eos = tokenizer.eos_id();
  if (eos && !example.rendered && (ids.empty() || ids.back() != *eos)) {
    ids.push_back(*eos);
    result.counts.push_back(1);
  }
  const auto limit = static_cast<std::size_t>(options_.seq_len) + 1;
  if (ids.size() > limit) {
    ids.resize(limit);
    result.counts.resize(limit);
    result.truncated = true;
  }
  if (!result.counts.empty()) result.counts[0] = 0;  // nothing predicts the first token
  return result;
}

void TokenDataset::add_example(const Example& example, const Tokenizer& tokenizer) {
  std::vector<Tokens> sequences{tokens_of(example, example.text, tokenizer)};
  if (example.rejected) sequences.push_back(tokens_of(example, *example.rejected, tokenizer));
  const auto counts_nothing = [](const Tokens& tokens) {
    return std::ranges::find(tokens.counts, 1) == tokens.counts.end();
  };
  if (std::ranges::any_of(sequences, &Tokens::truncated)) ++truncated_;
  if (std::ranges::any_of(sequences, counts_nothing)) {
    ++skipped_;
    return;
  }
  for (const Tokens& tokens : sequences) {
    sequences_.push_back({tokens_.size(), tokens.ids.size()});
    tokens_.insert(tokens_.end(), tokens.ids.begin(), tokens.ids.end());
    counts_.insert(counts_.end(), tokens.counts.begin(), tokens.counts.end());
  }
}

const TokenDataset::Sequence& TokenDataset::sequence(std::int64_t index, std::int64_t which) const {
  if (index < 0 || index >= size()) {
    throw ValueError(fmt::format("sequence {} of a dataset with {}", index, size()));
  }
  if (which < 0 || which >= sequences_per_example_) {
    throw ValueError(fmt::format("sequence {} of an example with {}", which, sequences_per_example_));
  }
  return sequences_[static_cast<std::size_t>(index * sequences_per_example_ + which)];
}

std::span<const std::int32_t> TokenDataset::tokens(std::int64_t index, std::int64_t which) const {
  const Sequence& found = sequence(index, which);
  return std::span(tokens_).subspan(found.begin, found.length);
}

std::int64_t TokenDataset::counted() const {
  std::int64_t sum = 0;
  for (const auto& sequence : sequences_)
    sum += std::count(counts_.begin() + static_cast<std::ptrdiff_t>(sequence.begin) + 1,
                      counts_.begin() + static_cast<std::ptrdiff_t>(sequence.begin + sequence.length), 1);
  return sum;
}

std::int32_t TokenDataset::max_token_id() const { return *std::ranges::max_element(tokens_); }

Batch TokenDataset::batch(std::span<const std::int64_t> indices) const {
  std::vector<Sequence> rows;
  std::size_t longest = 0;
  for (const auto index : indices) {
    for (std::int64_t which = 0; which < sequences_per_example_; ++which) {
      rows.push_back(sequence(index, which));
      longest = std::max(longest, rows.back().length - 1);
    }
  }
  constexpr std::int64_t kRound = 16;
  Batch batch;
  batch.sequences_per_example = sequences_per_example_;
  batch.batch_size = static_cast<std::int64_t>(rows.size());
  batch.seq_len =
      std::min((static_cast<std::int64_t>(longest) + kRound - 1) / kRound * kRound, options_.seq_len);
  const auto width = static_cast<std::size_t>(batch.seq_len);
  batch.inputs.assign(rows.size() * width, 0);
  batch.targets.assign(rows.size() * width, 0);
  batch.weights.assign(rows.size() * width, 0.0F);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Sequence& from = rows[row];
    for (std::size_t i = 0; i + 1 < from.length; ++i) {
      batch.inputs[row * width + i] = tokens_[from.begin + i];
      batch.targets[row * width + i] = tokens_[from.begin + i + 1];
      batch.weights[row * width + i] = counts_[from.begin + i + 1] != 0 ? 1.0F : 0.0F;
    }
  }
  return batch;
}

BatchIterator::BatchIterator(const TokenDataset& dataset, std::int64_t batch_size, std::uint64_t seed)
    : dataset_(dataset), batch_size_(batch_size) {
  check_batch_size(batch_size);
  position_ = {.seed = seed, .epoch = 0, .index = 0, .size = static_cast<std::uint64_t>(dataset.size())};
  order_ = shuffled(dataset.size(), seed, 0);
}

Batch BatchIterator::next() {
  std::vector<std::int64_t> indices;
  while (static_cast<std::int64_t>(indices.size()) < batch_size_) {
    if (position_.index == position_.size) {
      position_.index = 0;
      order_ = shuffled(dataset_.size(), position_.seed, ++position_.epoch);
    }
    indices.push_back(order_[position_.index++]);
  }
  return dataset_.batch(indices);
}

void BatchIterator::restore(const BatchPosition& position) {
  if (position.size != static_cast<std::uint64_t>(dataset_.size()) || position.index > position.size) {
    throw ValueError(
        fmt::format("the saved data position (sequence {} of {}) does not fit a dataset of {}: "
                    "resume with the data and the options that the run began with",
                    position.index, position.size, dataset_.size()));
  }
  position_ = position;
  order_ = shuffled(dataset_.size(), position.seed, position.epoch);
}

std::vector<Batch> batches_for_evaluation(const TokenDataset& dataset, std::int64_t batch_size,
                                          std::int64_t max_batches) {
  check_batch_size(batch_size);
  std::vector<Batch> batches;
  for (std::int64_t at = 0; at < dataset.size(); at += batch_size) {
    if (max_batches >= 0 && static_cast<std::int64_t>(batches.size()) >= max_batches) break;
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch_size, dataset.size() - at)));
    std::iota(indices.begin(), indices.end(), at);
    batches.push_back(dataset.batch(indices));
  }
  return batches;
}

}  // namespace caldera
