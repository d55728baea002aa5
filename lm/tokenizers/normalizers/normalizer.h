// The first stage of a tokenizer: rewriting the text. Private to lm/tokenizers/.
#pragma once

#include <string>

namespace caldera::detail {

/// A step of rewriting. Immutable; may be used from several threads at once.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Takes UTF-8 and returns UTF-8.
  virtual std::string normalize(std::string text) const = 0;
};

}  // namespace caldera::detail
