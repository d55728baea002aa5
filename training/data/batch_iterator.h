// BatchIterator: batches of a dataset in memory, in an order that can be gone on with.
#pragma once

#include <cstdint>
#include <vector>

#include "training/data/indexed_examples.h"
#include "training/data/training_set.h"

namespace caldera {

/// An endless series of batches for training. Every epoch is a fresh permutation of the dataset
/// (IndexedExamples::epoch_order). Batches always have `batch_size` rows (examples, where those are pairs);
/// where an epoch ends within a batch, the next one begins (so a dataset smaller than a batch repeats within
/// it).
///
/// With packing, windows of examples that follow each other in that order become rows; an epoch's last window
/// is as long as what is left.
class BatchIterator final : public BatchSource {
 public:
  /// `dataset` must outlive the iterator. Throws ValueError if batch_size is not positive, and for pairs with
  /// packing.
  BatchIterator(const IndexedExamples& dataset, std::int64_t batch_size, std::uint64_t seed,
                Packing packing = Packing::none);

  Batch next() override;
  std::int64_t rows_per_epoch() const override;
  /// Number of batches after which `epoch` grows by one, rounded up.
  std::int64_t batches_per_epoch() const { return (rows_per_epoch() + batch_size_ - 1) / batch_size_; }
  BatchPosition position() const override { return position_; }
  void restore(const BatchPosition& position) override;

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;

  Batch next_packed();
  void begin_epoch(std::uint64_t epoch);
  /// Packs the window that begins at example `first` of the order.
  Rows pack_window(std::uint64_t first) const;
  std::uint64_t window_end(std::uint64_t first) const;

  const IndexedExamples& dataset_;
  std::int64_t batch_size_;
  Packing packing_;
  BatchPosition position_;
  std::vector<std::int64_t> order_;  ///< of the epoch position_.epoch
  Rows window_;                      ///< the rows of the open window
};

}  // namespace caldera
