// TextFrequencies: on which lengths of a text the frequencies of a model's rotary positions depend.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lm/formats/config/model_config.h"

namespace caldera {

/// Chooses the frequencies of a sequence that is continued, as generate() of Hugging Face's transformers
/// does. With type dynamic a prompt is rotated as its own length asks for, each token behind it as the last
/// of its text, and keys stay as they were rotated. With longrope a text that grows beyond the original
/// length is computed again, all of it, as its keys and its queries are to have the same factors.
class TextFrequencies {
 public:
  explicit TextFrequencies(const ModelConfig& config);

  /// Returns the length that `prompt` tokens and those behind them, `tokens` in all, are rotated for
  /// (TokenPositions::longest).
  std::int64_t text_length(std::int64_t prompt, std::int64_t tokens) const {
    return switch_ ? tokens : prompt;
  }
  /// Texts of these text lengths have equal keys for equal tokens where this is equal; "" where no frequency
  /// depends on the length, or both texts are short.
  std::string kind(std::int64_t text_length) const;
  /// The length beyond which texts are computed again; none where they never are.
  std::optional<std::int64_t> switches_behind() const { return switch_; }
  /// Returns how many tokens behind the one at `position` may be fed together with it, before it is known
  /// that they are of the sequence: less than any number where the sequence would be computed again between
  /// them.
  std::int64_t most_drafts(std::int64_t position) const {
    if (!switch_ || position > *switch_) return max_positions_;
    return std::max<std::int64_t>(*switch_ - position - 1, 0);
  }
  /// Says whether what was computed for one length holds no more at another.
  bool differ(std::int64_t a, std::int64_t b) const { return switch_ && (a > *switch_) != (b > *switch_); }

 private:
  std::int64_t max_positions_;
  std::vector<RopeScaling> scalings_;  // those that depend on the length
  std::optional<std::int64_t> switch_;
};

}  // namespace caldera
