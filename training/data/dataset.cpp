#include "training/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/splitmix64.h"
#include "training/data/batch_iterator.h"
#include "training/data/fnv1a.h"
#include "training/data/shuffle.h"

namespace caldera {
namespace {

Batch empty_batch(std::int64_t rows, std::int64_t seq_len) {
  Batch batch;
  batch.batch_size = rows;
  batch.seq_len = seq_len;
  const auto elements = static_cast<std::size_t>(rows * seq_len);
  batch.inputs.assign(elements, 0);
  batch.targets.assign(elements, 0);
  batch.weights.assign(elements, 0.0F);
  return batch;
}

void check_batch_size(std::int64_t batch_size) {
  if (batch_size < 1) throw ValueError(fmt::format("batch size {}: must be positive", batch_size));
}

}  // namespace

DatasetLosses& DatasetLosses::operator+=(const DatasetLosses& other) {
  truncated += other.truncated;
  too_short += other.too_short;
  prompt_fills += other.prompt_fills;
  masked += other.masked;
  return *this;
}

TokenDataset::TokenDataset(const ExampleSet& examples, const Tokenizer& tokenizer,
                           const DatasetOptions& options)
    : TokenDataset(std::span(&examples, 1), tokenizer, options) {}

TokenDataset::TokenDataset(std::span<const ExampleSet> files, const Tokenizer& tokenizer,
                           const DatasetOptions& options)
    : options_(options) {
  if (options.seq_len < 1) {
    throw ValueError(fmt::format("sequence length {}: must be positive", options.seq_len));
  }
  std::int64_t examples = 0, pairs = 0;
  for (const ExampleSet& file : files) {
    examples += std::ssize(file.examples);
    pairs += std::ranges::count_if(file.examples, [](const Example& e) { return e.rejected.has_value(); });
  }
  if (pairs > 0) {
    if (pairs != examples)
      throw ValueError(fmt::format("of {} examples {} are pairs and the others are not: train on one kind",
                                   examples, pairs));
    sequences_per_example_ = 2;
  }
  bool all_labelled = examples > 0;
  bool first = true;
  for (const ExampleSet& file : files)
    for (const Example& example : file.examples) {
      all_labelled = all_labelled && example.label.has_value();
      if (std::exchange(first, false)) kind_ = example.kind;
      if (example.kind != kind_)
        throw ValueError("some examples are prompts or pairs, and others are not: train on one kind");
    }
  labelled_ = all_labelled;
  for (const ExampleSet& file : files) {
    const std::int64_t begin = size();
    for (const Example& example : file.examples) {
      if (file.plain_text)
        add_windows(tokenizer.encode(example.prompt + example.text));
      else
        add_example(example, tokenizer);
    }
    parts_.push_back({begin, size(), file.weight});
  }
  if (sequences_.empty() && !options.may_be_empty) {
    throw ValueError(
        fmt::format("the data hold no sequence with anything to predict: of {} examples {} are too short, {} "
                    "have prompts that "
                    "fill the sequence length {}, and in {} nothing counts",
                    examples, losses_.too_short, losses_.prompt_fills, options.seq_len, losses_.masked));
  }
}

void TokenDataset::add_windows(const std::vector<std::int32_t>& stream) {
  const auto step = static_cast<std::size_t>(options_.seq_len);
  const std::size_t base = tokens_.size();
  if (stream.size() < 2) {
    ++losses_.too_short;
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
  const LossOn loss_on = pair ? LossOn::completion : options_.loss_on;
  if (loss_on == LossOn::all) {
    result.counts.assign(ids.size(), 1);
  } else if (example.learned && !pair) {
    result.counts.assign(ids.size(), 0);
    std::span<const TextSpan> learned = *example.learned;
    if (loss_on == LossOn::last && !learned.empty()) learned = learned.last(1);
    for (const TextSpan& span : learned) {
      const std::size_t begin = tokens_before(example.prompt.size() + span.begin);
      const std::size_t end = tokens_before(example.prompt.size() + span.end);
      std::fill(result.counts.begin() + static_cast<std::ptrdiff_t>(begin),
                result.counts.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end)), 1);
    }
  } else {
    result.counts.assign(ids.size(), 1);
    if (loss_on != LossOn::usual && !example.prompt.empty())
      std::fill_n(result.counts.begin(), tokens_before(example.prompt.size()), 0);
  }
  const auto eos = tokenizer.eos_id();
  if (eos && !example.rendered && example.kind != ExampleKind::prompt &&
      (ids.empty() || ids.back() != *eos)) {
    ids.push_back(*eos);
    result.counts.push_back(1);
  }
  if (!result.counts.empty()) result.counts[0] = 0;  // nothing predicts the first token
  result.counts_whole = std::ranges::find(result.counts, 1) != result.counts.end();
  const auto limit = static_cast<std::size_t>(options_.seq_len) + 1;
  if (ids.size() > limit) {
    ids.resize(limit);
    result.counts.resize(limit);
    result.truncated = true;
  }
  return result;
}

void TokenDataset::add_example(const Example& example, const Tokenizer& tokenizer) {
  std::vector<Tokens> sequences{tokens_of(example, example.text, tokenizer)};
  if (example.rejected) sequences.push_back(tokens_of(example, *example.rejected, tokenizer));
  const auto counts_nothing = [](const Tokens& tokens) {
    return std::ranges::find(tokens.counts, 1) == tokens.counts.end();
  };
  if (const auto empty = std::ranges::find_if(sequences, counts_nothing); empty != sequences.end()) {
    ++(empty->counts_whole     ? losses_.prompt_fills
       : empty->ids.size() < 2 ? losses_.too_short
                               : losses_.masked);
    return;
  }
  if (std::ranges::any_of(sequences, &Tokens::truncated)) ++losses_.truncated;
  if (labelled_) labels_.push_back(static_cast<float>(*example.label));
  if (kind_ == ExampleKind::prompt) rows_.push_back(example.row);
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

std::vector<bool> TokenDataset::counts(std::int64_t index, std::int64_t which) const {
  const Sequence& found = sequence(index, which);
  const auto first = counts_.begin() + static_cast<std::ptrdiff_t>(found.begin);
  std::vector<bool> counts(first, first + static_cast<std::ptrdiff_t>(found.length));
  counts[0] = false;
  return counts;
}

std::int64_t TokenDataset::counted() const {
  std::int64_t sum = 0;
  for (const auto& sequence : sequences_)
    sum += std::count(counts_.begin() + static_cast<std::ptrdiff_t>(sequence.begin) + 1,
                      counts_.begin() + static_cast<std::ptrdiff_t>(sequence.begin + sequence.length), 1);
  return sum;
}

std::int64_t TokenDataset::classes() const {
  return labels_.empty() ? 0 : static_cast<std::int64_t>(*std::ranges::max_element(labels_)) + 1;
}

std::int32_t TokenDataset::max_token_id() const { return *std::ranges::max_element(tokens_); }

std::int64_t TokenDataset::epoch_size() const {
  std::int64_t size = 0;
  for (const Part& part : parts_)
    size += std::llround(part.weight * static_cast<double>(part.end - part.begin));
  return std::max<std::int64_t>(size, 1);
}

std::vector<std::int64_t> TokenDataset::epoch_order(std::uint64_t seed, std::uint64_t epoch) const {
  std::vector<std::int64_t> order;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const std::int64_t size = part.end - part.begin;
    std::int64_t left = std::llround(part.weight * static_cast<double>(size));
    // Whole passes, and of the last one examples that no other epoch is likely to draw alike.
    for (; left >= size && size > 0; left -= size)
      for (std::int64_t i = part.begin; i < part.end; ++i) order.push_back(i);
    const std::vector<std::int64_t> drawn =
        left > 0 ? shuffled(size, splitmix64(seed + p + 1), epoch) : std::vector<std::int64_t>();
    for (std::int64_t i = 0; i < left; ++i) order.push_back(part.begin + drawn[static_cast<std::size_t>(i)]);
  }
  if (order.empty()) order.push_back(0);
  std::vector<std::int64_t> result(order.size());
  std::ranges::transform(shuffled(std::ssize(order), seed, epoch), result.begin(),
                         [&](std::int64_t i) { return order[static_cast<std::size_t>(i)]; });
  return result;
}

void TokenDataset::fill_row(Batch& batch, std::int64_t row, std::int64_t column, const Sequence& from) const {
  const auto at = static_cast<std::size_t>(row * batch.seq_len + column);
  batch.tokens += static_cast<std::int64_t>(from.length) - 1;
  for (std::size_t i = 0; i + 1 < from.length; ++i) {
    batch.inputs[at + i] = tokens_[from.begin + i];
    batch.targets[at + i] = tokens_[from.begin + i + 1];
    batch.weights[at + i] = counts_[from.begin + i + 1] != 0 ? 1.0F : 0.0F;
  }
}

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
  Batch batch = empty_batch(
      std::ssize(rows),
      std::min((static_cast<std::int64_t>(longest) + kRound - 1) / kRound * kRound, options_.seq_len));
  batch.sequences_per_example = sequences_per_example_;
  for (const auto index : indices) {
    if (labelled_) batch.labels.push_back(labels_[static_cast<std::size_t>(index)]);
    if (!rows_.empty()) batch.data.push_back(rows_[static_cast<std::size_t>(index)]);
  }
  for (std::size_t row = 0; row < rows.size(); ++row)
    fill_row(batch, static_cast<std::int64_t>(row), 0, rows[row]);
  return batch;
}

Batch TokenDataset::packed_batch(std::span<const std::vector<std::int64_t>> rows) const {
  if (sequences_per_example_ != 1) throw ValueError("packed_batch: pairs have a row for each answer");
  Batch batch = empty_batch(std::ssize(rows), options_.seq_len);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::int64_t>& lengths = batch.lengths.emplace_back();
    std::int64_t column = 0;
    for (const std::int64_t index : rows[row]) {
      const Sequence& from = sequence(index, 0);
      lengths.push_back(static_cast<std::int64_t>(from.length) - 1);
      if (column + lengths.back() > options_.seq_len)
        throw ValueError(
            fmt::format("packed_batch: row {} holds more than {} tokens", row, options_.seq_len));
      fill_row(batch, static_cast<std::int64_t>(row), column, from);
      column += lengths.back();
    }
  }
  return batch;
}

std::unique_ptr<BatchSource> TokenDataset::batches(std::int64_t batch_size, std::uint64_t seed,
                                                   Packing packing) const {
  return std::make_unique<BatchIterator>(*this, batch_size, seed, packing);
}

Batch TokenDataset::longest_batch(std::int64_t batch_size, Packing packing) const {
  const auto length = [&](std::int64_t i) {
    std::size_t longest = 0;
    for (std::int64_t which = 0; which < sequences_per_example_; ++which)
      longest = std::max(longest, tokens(i, which).size());
    return longest;
  };
  std::int64_t longest = 0;
  for (std::int64_t i = 1; i < size(); ++i)
    if (length(i) > length(longest)) longest = i;
  const auto rows = static_cast<std::size_t>(batch_size);
  return packing == Packing::none ? batch(std::vector<std::int64_t>(rows, longest))
                                  : packed_batch(std::vector<std::vector<std::int64_t>>(rows, {longest}));
}

std::string TokenDataset::fingerprint() const {
  detail::Fnv1a hash;
  hash.mix(static_cast<std::uint64_t>(counted()));
  hash.mix(static_cast<std::uint64_t>(epoch_size()));
  for (const Sequence& sequence : sequences_) {
    hash.mix(sequence.length);
    for (const std::int32_t token : std::span(tokens_).subspan(sequence.begin, sequence.length))
      hash.mix(static_cast<std::uint32_t>(token));
  }
  return fmt::format("{:016x}", hash.value());
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
