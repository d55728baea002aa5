// The 256 characters that byte-level tokenizers write bytes as: printable Latin ones for themselves, the
// others from U+0100 on (GPT-2's `bytes_to_unicode`). Private to lm/tokenizers/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caldera::detail {

/// Each byte of `bytes` as its character.
std::string bytes_to_characters(std::string_view bytes);
void append_byte_characters(std::string_view bytes, std::string& out);

/// The bytes whose characters make up `text` (UTF-8); nothing where one of its characters stands for no byte.
std::optional<std::string> characters_to_bytes(std::string_view text);

/// The bytes of a token of a byte-level vocabulary, as decoders take them: `text` itself where one of its
/// characters stands for no byte.
std::string byte_level_bytes(std::string_view text);

}  // namespace caldera::detail
