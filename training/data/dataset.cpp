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
  for (std::size_t at = 0; at + 1 < stream.size(); at += step) {
    sequences_.push_back({base + at, std::min(step + 1, stream.size() - at), 1});
  }
}

void TokenDataset::add_example(const Example& example, const Tokenizer& tokenizer) {
  auto ids = tokenizer.encode(example.prompt + example.text);
  std::size_t unscored = 1;
  if (options_.mask_prompt && !example.prompt.empty()) {
    // A token that reaches from the prompt into the text counts as text: it must be predicted.
    const auto prompt = tokenizer.encode(example.prompt);
    const auto differ = std::ranges::mismatch(prompt, ids);
    unscored = std::max<std::size_t>(1, static_cast<std::size_t>(differ.in1 - prompt.begin()));
  }
  const auto eos = tokenizer.eos_id();
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
  const auto limit = static_cast<std::size_t>(options_.seq_len) + 1;
  if (ids.size() > limit) {
    ids.resize(limit);
    ++truncated_;
  }
  if (ids.size() <= unscored) {
    ++skipped_;
    return;
  }
  sequences_.push_back({tokens_.size(), ids.size(), unscored});
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
}

std::span<const std::int32_t> TokenDataset::tokens(std::int64_t index) const {
  if (index < 0 || index >= size()) {
    throw ValueError(fmt::format("sequence {} of a dataset with {}", index, size()));
  }
  const auto& sequence = sequences_[static_cast<std::size_t>(index)];
  return std::span(tokens_).subspan(sequence.begin, sequence.length);
}

std::int64_t TokenDataset::counted() const {
  std::size_t sum = 0;
  for (const auto& sequence : sequences_) sum += sequence.length - sequence.unscored;
  return static_cast<std::int64_t>(sum);
}

std::int32_t TokenDataset::max_token_id() const { return *std::ranges::max_element(tokens_); }

Batch TokenDataset::batch(std::span<const std::int64_t> indices) const {
  std::int64_t longest = 0;
  for (const auto index : indices) {
    longest = std::max(longest, static_cast<std::int64_t>(tokens(index).size()) - 1);
  }
  constexpr std::int64_t kRound = 16;
  Batch batch;
  batch.batch_size = static_cast<std::int64_t>(indices.size());
  batch.seq_len = std::min((longest + kRound - 1) / kRound * kRound, options_.seq_len);
  const auto width = static_cast<std::size_t>(batch.seq_len);
  batch.inputs.assign(indices.size() * width, 0);
  batch.targets.assign(indices.size() * width, 0);
  batch.weights.assign(indices.size() * width, 0.0F);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const auto ids = tokens(indices[row]);
    const std::size_t unscored = sequences_[static_cast<std::size_t>(indices[row])].unscored;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      batch.inputs[row * width + i] = ids[i];
      batch.targets[row * width + i] = ids[i + 1];
      batch.weights[row * width + i] = i + 1 >= unscored ? 1.0F : 0.0F;
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
