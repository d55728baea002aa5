// IndexedExamples: tokenised examples by their numbers, in the orders of epochs: what a BatchIterator reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/data/batch.h"

namespace caldera {

/// Const methods may be called from several threads.
class IndexedExamples {
 public:
  IndexedExamples() = default;
  virtual ~IndexedExamples() = default;

  /// Returns the examples of an epoch in their order, which depends on `seed`, `epoch`, sizes and weights
  /// alone: the same on every machine. A file of weight w is there floor(w) times, and a part of it that w
  /// leaves over once, drawn freshly in each epoch.
  virtual std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Number of examples of an epoch.
  virtual std::int64_t epoch_size() const = 0;
  /// 2 where the examples are pairs, else 1.
  virtual std::int64_t sequences_per_example() const = 0;
  virtual std::int64_t seq_len() const = 0;
  /// The tokens of example `index`; of its sequence `which`, where it has several.
  virtual std::span<const std::int32_t> tokens(std::int64_t index, std::int64_t which = 0) const = 0;
  /// The examples `indices` as one batch, with the sequences of each behind one another. Rows are as long as
  /// the longest of them, rounded up to a multiple of 16 (so that few shapes occur, and plans repeat), but at
  /// most seq_len.
  virtual Batch batch(std::span<const std::int64_t> indices) const = 0;
  /// The examples of each element of `rows` one behind the other in a row of seq_len inputs: see packing.h.
  /// Throws ValueError for a row that holds more than that, and for pairs.
  virtual Batch packed_batch(std::span<const std::vector<std::int64_t>> rows) const = 0;

 protected:
  IndexedExamples(const IndexedExamples&) = default;
  IndexedExamples(IndexedExamples&&) = default;
  IndexedExamples& operator=(const IndexedExamples&) = default;
  IndexedExamples& operator=(IndexedExamples&&) = default;
};

}  // namespace caldera
