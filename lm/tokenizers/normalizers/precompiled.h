// SentencePiece's compiled table of replacements. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lm/tokenizers/normalizers/normalizer.h"

namespace caldera::detail {

/// Says how replacements are looked for.
enum class CharsmapMatch : std::uint8_t {
  /// Follows Hugging Face's library: in each grapheme cluster of fewer than 6 bytes, and else in each of its
  /// characters, the shortest entry that it begins with, which replaces all of it.
  shortest_of_cluster,
  /// Follows SentencePiece: at each place the longest entry.
  longest
};

/// `charsmap` is a `precompiled_charsmap`: the size of a double-array trie in bytes (u32, little-endian), the
/// trie, and the replacements, each with a zero byte after it. An empty one gives nullptr. Throws FileError,
/// beginning with `where`, for what is none.
std::unique_ptr<Normalizer> make_precompiled(std::string_view charsmap, CharsmapMatch match,
                                             const std::string& where);

}  // namespace caldera::detail
