// Decoders for vocabularies of words and their parts. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <string>

#include "lm/tokenizers/decoders/decoder.h"

namespace caldera::detail {

/// From the characters of the byte-level alphabet to the bytes; what is not UTF-8 then becomes U+FFFD.
std::unique_ptr<Decoder> make_byte_level_decoder();
/// Words begin where tokens do not begin with `prefix`. With `cleanup`, no spaces before punctuation and
/// within English contractions.
std::unique_ptr<Decoder> make_wordpiece_decoder(std::string prefix, bool cleanup);
/// `suffix` ends a word: it becomes a space, after the last token nothing.
std::unique_ptr<Decoder> make_bpe_decoder(std::string suffix);
/// Drops repeated tokens and the padding token; `delimiter` becomes a space if `cleanup`.
std::unique_ptr<Decoder> make_ctc_decoder(std::string padding, std::string delimiter, bool cleanup);

}  // namespace caldera::detail
