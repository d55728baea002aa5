// StreamDecoder: turns tokens into text while it is generated, as soon as characters are complete.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// Decodes a growing sequence of tokens piece by piece. The pieces are valid UTF-8 and never end within a
/// character; joined, they are what Tokenizer::decode gives for the whole sequence (where the tokens' bytes
/// form no characters, up to the number of U+FFFD). Text is held back for three tokens at most, and a token
/// takes the same time however many came before. Not for use from several threads at once.
class StreamDecoder {
 public:
  /// `tokenizer` must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  /// Takes tokens as read: later pieces continue their text (a space before the first new word, say). Call it
  /// first.
  void prime(std::span<const std::int32_t> context);

  /// The text that `id` completes; often empty. Throws ValueError for an id outside of the vocabulary.
  std::string push(std::int32_t id);

  /// The rest: what is held back for a character that did not come.
  std::string finish();

 private:
  /// Text of the tokens [begin, end) of the window.
  std::string text(std::size_t begin, std::size_t end) const;
  /// Hands out what the pending tokens before `end` add to the text that is out, and drops context no longer
  /// needed.
  std::string release(std::size_t end);
  /// Drops tokens from the midst of a long context.
  void forget();

  const Tokenizer& tokenizer_;
  bool skip_special_;
  /// Tokens that are out (they give the new ones their context: a decoder may strip a leading space) and,
  /// from `pending_` on, tokens whose text is held back.
  std::vector<std::int32_t> window_;
  std::size_t pending_ = 0;
  int unfinished_ = 0;  ///< tokens in a row that left the text with a U+FFFD at its end
};

}  // namespace caldera
