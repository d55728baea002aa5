// BatchIterator: batches for training, in an order that can be gone on with.
#pragma once

#include <cstdint>
#include <vector>

#include "training/data/dataset.h"

namespace caldera {

/// Holds the place that a BatchIterator has reached: a checkpoint saves it.
struct BatchPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t index =
      0;  ///< examples of this epoch already given; with packing, those before the open window
  std::uint64_t size = 0;  ///< of an epoch, to notice another dataset
  std::uint64_t row = 0;   ///< with packing: rows of the open window already given

  bool operator==(const BatchPosition&) const = default;
};

/// Says whether rows hold one sequence each or as many as fit (packing.h).
enum class Packing : std::uint8_t { none, best_fit };

/// An endless series of batches for training. Every epoch is a fresh permutation of the dataset
/// (TokenDataset::epoch_order). Batches always have `batch_size` rows (examples, where those are pairs);
/// where an epoch ends within a batch, the next one begins (so a dataset smaller than a batch repeats within
/// it).
///
/// With packing, windows of examples that follow each other in that order become rows; an epoch's last window
/// is as long as what is left.
class BatchIterator {
 public:
  /// `dataset` must outlive the iterator. Throws ValueError if batch_size is not positive, and for pairs with
  /// packing.
  BatchIterator(const TokenDataset& dataset, std::int64_t batch_size, std::uint64_t seed,
                Packing packing = Packing::none);

  Batch next();

  /// Number of rows (examples, where those are pairs) of an epoch. With packing it is that of the first
  /// epoch; others may have a few more or less.
  std::int64_t rows_per_epoch() const;
  /// Number of batches after which `epoch` grows by one, rounded up.
  std::int64_t batches_per_epoch() const { return (rows_per_epoch() + batch_size_ - 1) / batch_size_; }
  BatchPosition position() const { return position_; }
  /// Goes on as the iterator did that gave `position`. Throws ValueError if that one had a dataset of another
  /// size.
  void restore(const BatchPosition& position);

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;

  Batch next_packed();
  void begin_epoch(std::uint64_t epoch);
  /// Packs the window that begins at example `first` of the order.
  Rows pack_window(std::uint64_t first) const;
  std::uint64_t window_end(std::uint64_t first) const;

  const TokenDataset& dataset_;
  std::int64_t batch_size_;
  Packing packing_;
  BatchPosition position_;
  std::vector<std::int64_t> order_;  ///< of the epoch position_.epoch
  Rows window_;                      ///< the rows of the open window
};

}  // namespace caldera
