// TrainingSet: what a run trains on, be it in memory (dataset.h) or read as it is needed
// (streamed_dataset.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "training/data/batch.h"

namespace caldera {

class TokenDataset;

/// Says whether rows hold one sequence each or as many as fit (packing.h).
enum class Packing : std::uint8_t { none, best_fit };

/// Holds the place that a BatchSource has reached: a checkpoint saves it.
struct BatchPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t index =
      0;  ///< examples of this epoch already given; with packing and of streams, those before the open window
  std::uint64_t size = 0;  ///< of an epoch, to notice another dataset
  std::uint64_t row = 0;   ///< rows of the open window already given

  bool operator==(const BatchPosition&) const = default;
};

/// An endless series of batches for training, which can be gone on with.
class BatchSource {
 public:
  BatchSource() = default;
  virtual ~BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  virtual Batch next() = 0;
  virtual BatchPosition position() const = 0;
  /// Goes on as the source did that gave `position`. Throws ValueError if that one had data of another size.
  virtual void restore(const BatchPosition& position) = 0;
  /// Number of rows (examples, where those are pairs) of an epoch. With packing it is that of the first
  /// epoch; others may have a few more or less. Of a stream it is estimated.
  virtual std::int64_t rows_per_epoch() const = 0;
};

/// Const methods of one set may be called from several threads, those of a stream from one at a time.
class TrainingSet {
 public:
  TrainingSet() = default;
  virtual ~TrainingSet() = default;

  /// Begins a series of batches in an order that `seed` says; the set must outlive it. Batches have
  /// `batch_size` rows (examples, where those are pairs). Throws ValueError if batch_size is not positive,
  /// and for pairs with packing.
  virtual std::unique_ptr<BatchSource> batches(std::int64_t batch_size, std::uint64_t seed,
                                               Packing packing) const = 0;
  /// Returns a batch as long as any can be, by which memory is planned.
  virtual Batch longest_batch(std::int64_t batch_size, Packing packing) const = 0;
  /// Returns the data, of a stream the first of them. The set's kind, labels and length are those of these.
  virtual const TokenDataset& sample() const = 0;
  /// Returns a hash of all that is trained on, as 16 hexadecimal digits: a run goes on only with the same.
  virtual std::string fingerprint() const = 0;

 protected:
  TrainingSet(const TrainingSet&) = default;
  TrainingSet(TrainingSet&&) = default;
  TrainingSet& operator=(const TrainingSet&) = default;
  TrainingSet& operator=(TrainingSet&&) = default;
};

}  // namespace caldera
