#include "training/data/batch_iterator.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "training/data/packing.h"

namespace caldera {
namespace {

/// Examples of a window, times the rows of a batch: so many leave few gaps, and few enough that the order
/// stays random.
constexpr std::uint64_t kWindowBatches = 64;

}  // namespace

BatchIterator::BatchIterator(const IndexedExamples& dataset, std::int64_t batch_size, std::uint64_t seed,
                             Packing packing)
    : dataset_(dataset), batch_size_(batch_size), packing_(packing) {
  if (batch_size < 1) throw ValueError(fmt::format("batch size {}: must be positive", batch_size));
  if (packing != Packing::none && dataset.sequences_per_example() != 1)
    throw ValueError("packing is for data of single sequences; pairs have a row for each answer");
  position_.seed = seed;
  position_.size = static_cast<std::uint64_t>(dataset.epoch_size());
  begin_epoch(0);
}

void BatchIterator::begin_epoch(std::uint64_t epoch) {
  position_.epoch = epoch;
  position_.index = position_.row = 0;
  order_ = dataset_.epoch_order(position_.seed, epoch);
  if (packing_ != Packing::none) window_ = pack_window(0);
}

Batch BatchIterator::next() {
  if (packing_ != Packing::none) return next_packed();
  std::vector<std::int64_t> indices;
  while (static_cast<std::int64_t>(indices.size()) < batch_size_) {
    if (position_.index == position_.size) begin_epoch(position_.epoch + 1);
    indices.push_back(order_[position_.index++]);
  }
  return dataset_.batch(indices);
}

Batch BatchIterator::next_packed() {
  Rows rows;
  while (static_cast<std::int64_t>(rows.size()) < batch_size_) {
    if (position_.row == window_.size()) {
      const std::uint64_t end = window_end(position_.index);
      if (end == position_.size) {
        begin_epoch(position_.epoch + 1);
      } else {
        position_.index = end;
        position_.row = 0;
        window_ = pack_window(end);
      }
    }
    rows.push_back(window_[position_.row++]);
  }
  return dataset_.packed_batch(rows);
}

std::uint64_t BatchIterator::window_end(std::uint64_t first) const {
  return std::min(position_.size, first + kWindowBatches * static_cast<std::uint64_t>(batch_size_));
}

BatchIterator::Rows BatchIterator::pack_window(std::uint64_t first) const {
  std::vector<std::int64_t> lengths;
  for (std::uint64_t i = first; i < window_end(first); ++i)
    lengths.push_back(std::ssize(dataset_.tokens(order_[i])) - 1);
  Rows rows = pack(lengths, dataset_.seq_len());
  for (std::vector<std::int64_t>& row : rows)
    for (std::int64_t& i : row) i = order_[first + static_cast<std::uint64_t>(i)];
  return rows;
}

std::int64_t BatchIterator::rows_per_epoch() const {
  std::uint64_t rows = position_.size;
  if (packing_ != Packing::none) {
    const BatchIterator fresh(dataset_, batch_size_, position_.seed, packing_);
    rows = 0;
    for (std::uint64_t first = 0; first < position_.size; first = window_end(first))
      rows += fresh.pack_window(first).size();
  }
  return static_cast<std::int64_t>(rows);
}

void BatchIterator::restore(const BatchPosition& position) {
  const auto misfit = [&] {
    throw ValueError(
        fmt::format("the saved data position (sequence {} of {}) does not fit a dataset of {}: "
                    "resume with the data and the options that the run began with",
                    position.index, position.size, dataset_.epoch_size()));
  };
  if (position.size != static_cast<std::uint64_t>(dataset_.epoch_size()) || position.index > position.size)
    misfit();
  position_ = position;
  order_ = dataset_.epoch_order(position.seed, position.epoch);
  if (packing_ != Packing::none) {
    if (position.index == position.size) misfit();
    window_ = pack_window(position.index);
    if (position.row > window_.size()) misfit();
  } else if (position.row != 0) {
    misfit();
  }
}

}  // namespace caldera
