// The `decoder` of a tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lm/tokenizers/decoders/decoder.h"

namespace caldera::detail {

/// The decoder that a tokenizer.json describes: Sequence, ByteLevel, Metaspace, WordPiece, BPEDecoder, CTC,
/// ByteFallback, Fuse, Strip, Replace; null gives nullptr. Throws FileError naming a type that is not known.
std::unique_ptr<Decoder> read_decoder(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
