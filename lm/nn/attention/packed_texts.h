// PackedTexts: several sequences in each row of a batch, which do not see one another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lm/nn/caches/attention_cache.h"

namespace caldera {

/// The sequences in the rows of a batch (batch, length), one after the other, or beside padding: positions
/// begin again with each sequence, and a token looks at tokens of its own sequence only. Keeps nothing from
/// call to call, and may be handed to any number of them: hidden_states(ids, &packed), for training and
/// evaluation. Where sequences begin is data: batches of one shape have one plan.
class PackedTexts final : public AttentionCache {
 public:
  /// `lengths[b]`: of the sequences of row b. What is left of a row of `length` tokens is padding behind them
  /// (`before`: before the first). Throws ValueError for a sequence without tokens or a row that is too
  /// short.
  enum class Padding : std::uint8_t { behind, before };
  PackedTexts(std::span<const std::vector<std::int64_t>> lengths, std::int64_t length, Device device,
              Padding padding = Padding::behind);

  void begin(std::int64_t batch, std::int64_t length) override;
  TokenPositions positions() const override;
  AttendedKeys attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                        const AttentionForm& form) override;
  void finish() override {}
  bool keeps_nothing() const override { return true; }

  /// Boolean (batch, length): tokens that belong to a sequence.
  const LazyTensor& present() const { return present_; }

 private:
  std::int64_t length_;
  std::int64_t longest_ = 0;
  LazyTensor positions_;  // i32 (batch, length)
  LazyTensor texts_;      // i32 (batch, length): the sequence's number in its row; -1: padding
  LazyTensor present_;
};

}  // namespace caldera
