// Decoders for vocabularies of the SentencePiece kind. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lm/base/regex/text_pattern.h"
#include "lm/tokenizers/decoders/decoder.h"

namespace caldera::detail {

std::unique_ptr<Decoder> make_replace_decoder(TextPattern pattern, std::string content);
/// Joins byte tokens ("<0x0A>") to characters.
std::unique_ptr<Decoder> make_byte_fallback_decoder();
/// Joins all tokens to one.
std::unique_ptr<Decoder> make_fuse_decoder();
/// Removes up to `start` leading and up to `stop` trailing copies of `content` from each string.
std::unique_ptr<Decoder> make_strip_decoder(std::string content, std::int64_t start, std::int64_t stop);
/// Makes `replacement` a space; in the first token, nothing if `drop_first`.
std::unique_ptr<Decoder> make_metaspace_decoder(std::string replacement, bool drop_first);
/// Makes the decoder that undoes SentencePiece's writing of spaces and bytes; the first space of a text goes
/// if `strip_first_space`.
std::unique_ptr<Decoder> make_sentencepiece_decoder(bool strip_first_space);

}  // namespace caldera::detail
