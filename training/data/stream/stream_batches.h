// StreamBatches: the batches of a stream. Private to training/data/stream/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lm/tokenizers/tokenizer.h"
#include "training/data/dataset.h"
#include "training/data/stream/stream_losses.h"
#include "training/data/stream/stream_source.h"

namespace caldera::detail {

/// Holds what a StreamedDataset is made of.
struct Stream {
  StreamSource source;
  const Tokenizer& tokenizer;
  DatasetOptions options;
  std::optional<TokenDataset> sample = {};
  std::int64_t sample_rows = 0;  ///< of the files, from which the sample is
  RowKind kind = {};
  bool has_prompts = false;
  StreamLosses losses = {};  ///< so far, of all series of batches
};

struct BatchShape {
  std::int64_t rows = 1;
  Packing packing = Packing::none;
};

class StreamBatches final : public BatchSource {
 public:
  /// `stream` must outlive this. `rows_per_epoch` is an estimate.
  StreamBatches(Stream& stream, BatchShape shape, std::uint64_t seed, std::int64_t rows_per_epoch);

  Batch next() override;
  BatchPosition position() const override { return position_; }
  void restore(const BatchPosition& position) override;
  std::int64_t rows_per_epoch() const override { return rows_per_epoch_; }

 private:
  /// Rows of an epoch that follow each other, tokenised.
  struct Window {
    TokenDataset data;
    std::vector<std::vector<std::int64_t>> rows;  ///< the examples of each row
    std::uint64_t end;                            ///< its end in the order of the epoch
  };

  /// Reads the window that begins at position_.index.
  Window read_window();
  /// Goes to the next window.
  void advance();

  Stream& stream_;
  BatchShape shape_;
  std::int64_t rows_per_epoch_;
  BatchPosition position_;
  StreamSource::Order order_;  ///< of the epoch position_.epoch
  std::optional<Window> window_;
};

}  // namespace caldera::detail
