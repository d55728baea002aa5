// The kinds of tokens that a GGUF vocabulary tells apart. Private to lm/formats/.
#pragma once

#include <cstdint>

namespace caldera::detail {

/// Values of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

}  // namespace caldera::detail
