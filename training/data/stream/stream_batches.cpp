#include "training/data/stream/stream_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/splitmix64.h"
#include "training/data/packing.h"
#include "training/data/shuffle.h"

namespace caldera::detail {
namespace {

/// Rows of a window, times the rows of a batch, as BatchIterator packs them.
constexpr std::uint64_t kWindowBatches = 64;
/// Text of a window, beyond which no row is added.
constexpr std::size_t kWindowBytes = std::size_t{4} << 20;

}  // namespace

StreamBatches::StreamBatches(Stream& stream, BatchShape shape, std::uint64_t seed,
                             std::int64_t rows_per_epoch)
    : stream_(stream), shape_(shape), rows_per_epoch_(rows_per_epoch), order_(stream.source, seed, 0) {
  position_.seed = seed;
  position_.size = static_cast<std::uint64_t>(stream.source.epoch_size());
}

StreamBatches::Window StreamBatches::read_window() {
  const StreamSource& source = stream_.source;
  std::vector<ExampleSet> sets;
  for (std::size_t file = 0; file < source.files().size(); ++file) sets.push_back(source.set_for(file));
  const std::uint64_t end =
      std::min(position_.size, position_.index + kWindowBatches * static_cast<std::uint64_t>(shape_.rows));
  RowLosses lost;
  std::size_t bytes = 0;
  std::uint64_t at = position_.index;
  for (; at < end && bytes < kWindowBytes; ++at) {
    const StreamSource::Place place = order_[static_cast<std::int64_t>(at)];
    bytes += source.read(place, sets[place.file], lost, &stream_.kind);
  }
  DatasetOptions options = stream_.options;
  options.may_be_empty = true;
  std::erase_if(sets, [](const ExampleSet& set) { return set.examples.empty(); });
  Window window{.data = TokenDataset(sets, stream_.tokenizer, options), .rows = {}, .end = at};

  StreamLosses& losses = stream_.losses;
  losses.empty_rows += lost.empty;
  if (losses.bad_rows == 0) losses.first_bad_row = lost.first_bad;
  losses.bad_rows += lost.bad;
  losses.sequences += window.data.losses();

  const std::int64_t size = window.data.size();
  std::vector<std::vector<std::int64_t>> rows;
  if (shape_.packing != Packing::none) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < size; ++i) lengths.push_back(std::ssize(window.data.tokens(i)) - 1);
    rows = pack(lengths, window.data.seq_len());
  } else {
    for (std::int64_t i = 0; i < size; ++i) rows.push_back({i});
  }
  // Windows of one block, and the rows of each file, stand one behind the other.
  for (const std::int64_t i :
       shuffled(std::ssize(rows), position_.seed, splitmix64(position_.epoch) + position_.index))
    window.rows.push_back(std::move(rows[static_cast<std::size_t>(i)]));
  return window;
}

void StreamBatches::advance() {
  if (window_) {
    if (window_->end == position_.size) {
      ++position_.epoch;
      position_.index = 0;
      order_ = StreamSource::Order(stream_.source, position_.seed, position_.epoch);
    } else {
      position_.index = window_->end;
    }
    position_.row = 0;
    window_.reset();  // before the next one is there
  }
  window_ = read_window();
}

Batch StreamBatches::next() {
  std::vector<Batch> parts;
  std::uint64_t left = static_cast<std::uint64_t>(shape_.rows), read = 0;
  if (!window_) window_ = read_window();
  while (left > 0) {
    if (position_.row == window_->rows.size()) {
      if (read > position_.size)
        throw FileError("the stream holds no row in which anything is left to predict");
      advance();
      read = window_->rows.empty() ? read + window_->end - position_.index : 0;
      continue;
    }
    const std::uint64_t taken = std::min(left, window_->rows.size() - position_.row);
    const auto rows = std::span(window_->rows).subspan(position_.row, taken);
    if (shape_.packing != Packing::none) {
      parts.push_back(window_->data.packed_batch(rows));
    } else {
      std::vector<std::int64_t> indices;
      for (const std::vector<std::int64_t>& row : rows) indices.push_back(row.front());
      parts.push_back(window_->data.batch(indices));
    }
    position_.row += taken;
    left -= taken;
  }
  return joined(parts);
}

void StreamBatches::restore(const BatchPosition& position) {
  const bool fits = position.size == position_.size && position.index < position.size;
  if (fits) {
    position_ = position;
    order_ = StreamSource::Order(stream_.source, position.seed, position.epoch);
    window_ = read_window();
  }
  if (!fits || position.row > window_->rows.size())
    throw ValueError(fmt::format(
        "the saved data position (row {} of {}) does not fit a stream of {}: resume with the data "
        "and the options that the run began with",
        position.index, position.size, position_.size));
}

}  // namespace caldera::detail
