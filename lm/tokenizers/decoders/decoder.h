// The last stage of a tokenizer: from tokens back to text. Private to lm/tokenizers/.
#pragma once

#include <string>
#include <vector>

namespace caldera::detail {

/// A token in the midst of a text, as the steps of a decoder rewrite it by itself.
struct InnerToken {
  std::string bytes;    ///< may be part of a character
  bool joined = false;  ///< a step has joined the tokens: later ones see the whole text
};

/// A step that rewrites a list of strings; the text is what the last step leaves, joined. Immutable; may be
/// used from several threads at once.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
  /// Rewrites one token as decode does when others stand before and after it.
  virtual void rewrite_inner(InnerToken& token) const = 0;
};

}  // namespace caldera::detail
