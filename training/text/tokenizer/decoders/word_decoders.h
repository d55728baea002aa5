// Decoders for vocabularies of words and their parts. Private to training/text.
#pragma once

#include "training/text/tokenizer/decoders/decoder.h"

namespace caldera::detail {

/// `suffix` ends a word: it becomes a space, after the last token nothing.
std::unique_ptr<Decoder> make_bpe_decoder(std::string suffix);
/// Drops repeated tokens and the padding token; `delimiter` becomes a space if `cleanup`.
std::unique_ptr<Decoder> make_ctc_decoder(std::string padding, std::string delimiter, bool cleanup);

}  // namespace caldera::detail
