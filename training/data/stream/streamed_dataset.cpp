#include "training/data/stream/streamed_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "training/data/fnv1a.h"
#include "training/data/packing.h"
#include "training/data/stream/stream_batches.h"
#include "training/data/stream/stream_source.h"

namespace caldera {
namespace {

constexpr std::int64_t kSampleRows = 2048;
constexpr std::size_t kSampleBytes = std::size_t{4} << 20;

/// Fills every row up to `seq_len` with its own tokens again.
Batch widened(const Batch& batch, std::int64_t seq_len) {
  Batch wide = batch;
  wide.seq_len = seq_len;
  wide.tokens = batch.batch_size * seq_len;
  const auto widen = [&](auto& to, const auto& from) {
    to.clear();
    for (std::int64_t row = 0; row < batch.batch_size; ++row)
      for (std::int64_t i = 0; i < seq_len; ++i)
        to.push_back(from[static_cast<std::size_t>(row * batch.seq_len + i % batch.seq_len)]);
  };
  widen(wide.inputs, batch.inputs);
  widen(wide.targets, batch.targets);
  widen(wide.weights, batch.weights);
  for (std::vector<std::int64_t>& lengths : wide.lengths) lengths = {seq_len};
  return wide;
}

std::int64_t rows_of(const TokenDataset& data, Packing packing) {
  if (packing == Packing::none) return data.size();
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < data.size(); ++i) lengths.push_back(std::ssize(data.tokens(i)) - 1);
  return std::ssize(pack(lengths, data.seq_len()));
}

}  // namespace

StreamedDataset::StreamedDataset(std::span<const DataPath> files, const Tokenizer& tokenizer,
                                 const DataFileOptions& file_options, const DatasetOptions& options,
                                 std::int64_t held_out)
    : stream_(std::make_unique<detail::Stream>(
          detail::Stream{.source = detail::StreamSource(files, file_options, held_out),
                         .tokenizer = tokenizer,
                         .options = options})) {
  detail::Stream& stream = *stream_;
  std::vector<ExampleSet> sets;
  detail::RowLosses losses;
  const std::size_t count = stream.source.files().size();
  for (std::size_t file = 0; file < count; ++file) {
    ExampleSet& set = sets.emplace_back(stream.source.set_for(file));
    const std::int64_t rows =
        std::min(stream.source.files()[file].rows,
                 std::max<std::int64_t>(1, kSampleRows / static_cast<std::int64_t>(count)));
    std::size_t bytes = 0;
    for (std::int64_t row = 0; row < rows && bytes < kSampleBytes / count + 1; ++row, ++stream.sample_rows)
      bytes += stream.source.read({file, row}, set, losses, nullptr);
    if (set.examples.empty())
      throw FileError(fmt::format("{}: there is no example with text in its first {} rows{}",
                                  stream.source.files()[file].data.path.string(), rows,
                                  losses.bad == 0 ? "" : "; the first bad one: " + losses.first_bad));
  }
  for (const ExampleSet& set : sets)
    for (const Example& example : set.examples)
      stream.has_prompts = stream.has_prompts || !example.prompt.empty() || example.learned;
  stream.sample.emplace(sets, stream.tokenizer, options);
  stream.kind = {.kind = stream.sample->kind(), .labelled = stream.sample->is_labelled()};
}

StreamedDataset::~StreamedDataset() = default;
StreamedDataset::StreamedDataset(StreamedDataset&&) noexcept = default;

std::unique_ptr<BatchSource> StreamedDataset::batches(std::int64_t batch_size, std::uint64_t seed,
                                                      Packing packing) const {
  if (batch_size < 1) throw ValueError(fmt::format("batch size {}: must be positive", batch_size));
  if (packing != Packing::none && sample().sequences_per_example() != 1)
    throw ValueError("packing is for data of single sequences; pairs have a row for each answer");
  const double rows_a_row = static_cast<double>(rows_of(sample(), packing)) /
                            static_cast<double>(std::max<std::int64_t>(stream_->sample_rows, 1));
  const auto rows = static_cast<std::int64_t>(rows_a_row * static_cast<double>(stream_->source.epoch_size()));
  return std::make_unique<detail::StreamBatches>(*stream_,
                                                 detail::BatchShape{.rows = batch_size, .packing = packing},
                                                 seed, std::max<std::int64_t>(rows, 1));
}

Batch StreamedDataset::longest_batch(std::int64_t batch_size, Packing packing) const {
  return widened(sample().longest_batch(batch_size, packing), stream_->options.seq_len);
}

const TokenDataset& StreamedDataset::sample() const { return *stream_->sample; }

std::string StreamedDataset::fingerprint() const {
  detail::Fnv1a hash;
  for (const detail::StreamSource::File& file : stream_->source.files()) {
    hash.mix(file.index.fingerprint());
    hash.mix(static_cast<std::uint64_t>(file.rows));
    hash.mix(static_cast<std::uint64_t>(file.data.weight * 1e6));
  }
  hash.mix(sample().fingerprint());  // of the tokenizer, and how rows are read
  return fmt::format("{:016x}", hash.value());
}

std::int64_t StreamedDataset::rows() const {
  std::int64_t rows = 0;
  for (const detail::StreamSource::File& file : stream_->source.files()) rows += file.rows;
  return rows;
}

std::int64_t StreamedDataset::bytes() const {
  std::int64_t bytes = 0;
  for (const detail::StreamSource::File& file : stream_->source.files()) bytes += file.index.bytes();
  return bytes;
}

std::vector<ExampleSet> StreamedDataset::held_out() const {
  std::vector<ExampleSet> sets;
  detail::RowLosses losses;
  const auto& files = stream_->source.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    ExampleSet set = stream_->source.set_for(i);
    for (std::int64_t row = files[i].rows; row < files[i].index.size(); ++row)
      stream_->source.read({i, row}, set, losses, &stream_->kind);
    if (!set.examples.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

bool StreamedDataset::has_prompts() const { return stream_->has_prompts; }

const StreamLosses& StreamedDataset::losses() const { return stream_->losses; }

}  // namespace caldera
