// TextDecoder: what happens to a sequence after a token was chosen: its text grows, or it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lm/generate/decoding_options.h"
#include "lm/generate/finish_reason.h"
#include "lm/generate/sampling/stop_text.h"
#include "lm/tokenizers/stream_decoder.h"

namespace caldera {

/// Holds what a token adds to its sequence.
struct DecodedToken {
  std::string text;                    ///< that may be shown from now on; often empty
  std::optional<FinishReason> finish;  ///< set where the token is the last
  std::optional<std::string> stop;     ///< the stop string that ended the text
};

/// Makes text of tokens as soon as characters are complete and cannot be the beginning of a stop string, and
/// says when the sequence ends: at a stop token, at a stop string, or with its last token. One thread at a
/// time.
class TextDecoder {
 public:
  /// `most`: tokens of the sequence, the prompt not counted; stop strings are looked for behind the first
  /// `least` of them.
  TextDecoder(const TextOptions& options, std::vector<std::int32_t> stop_ids, std::int64_t most,
              std::span<const std::int32_t> prompt, std::int64_t least = 0);

  /// Takes the next token; none after one with a `finish`. Throws what the tokenizer throws.
  DecodedToken take(std::int32_t id);
  /// Returns the text that is held back: for a sequence that ends without a last token.
  std::string rest();
  /// Tokens that may still come.
  std::int64_t left() const { return left_; }

 private:
  std::string decode(std::int32_t id);

  TextOptions options_;
  std::vector<std::int32_t> stop_ids_;
  std::int64_t left_;
  std::int64_t least_;  // tokens that come before stop strings are looked for
  std::optional<StreamDecoder> decoder_;
  StopText stops_;
};

}  // namespace caldera
