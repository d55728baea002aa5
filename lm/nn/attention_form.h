// AttentionForm: what a model's attention computes, said once for its families, layers and caches.
#pragma once

#include <cstdint>
#include <optional>

namespace caldera {

/// Says what attention computes besides softmax(q k^T * scale) v.
struct AttentionForm {
  std::optional<double> scale = {};  ///< of the products; 1 / sqrt(head_dim) by default
  /// Scaled products s become softcap * tanh(s / softcap), before they are masked.
  std::optional<double> softcap = {};
  /// Each head has a score of its own that takes part in the softmax, without a value (gpt-oss).
  bool sinks = false;
  /// A query at position i looks at the keys j <= i, or at all keys where attention is bidirectional; with a
  /// window only at those of i - window < j and j < i + window.
  bool bidirectional = false;
  std::optional<std::int64_t> window = {};
};

}  // namespace caldera
