// Vocabularies of the SentencePiece kind, from its own files and from GGUF. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lm/tokenizers/pipeline/pipeline.h"

namespace caldera::detail {

/// Names what a piece is, as SentencePiece numbers it; GGUF has the same numbers.
enum class PieceType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct SentencePieceVocabulary {
  enum class Kind : std::uint8_t { unigram, bpe };
  /// Says where the space before a text's first word goes.
  enum class Prefix : std::uint8_t {
    none,
    each_part,  ///< before every stretch between special tokens
    first_part  ///< before the text alone
  };

  Kind kind = Kind::unigram;
  std::vector<std::string> pieces;  ///< UTF-8, by id
  std::vector<float> scores;        ///< as many
  std::vector<PieceType> types;     ///< as many
  std::optional<std::int32_t> unknown_id;
  std::optional<std::int32_t> bos_id;
  std::optional<std::int32_t> eos_id;
  std::string charsmap;  ///< its table of replacements
  Prefix prefix = Prefix::each_part;
  bool remove_extra_whitespaces = true;  ///< at the ends, and more than one in a row
};

/// Reads a SentencePiece `.model` file, a serialised ModelProto
/// (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto). Throws FileError,
/// beginning with `where`, for what is none and for models of words and of characters.
SentencePieceVocabulary read_sentencepiece(std::string_view file, const std::string& where);

/// The stages but the post-processor. Texts cut as the SentencePiece library does. Throws FileError.
TokenizerParts make_parts(SentencePieceVocabulary vocabulary, const std::string& where);

}  // namespace caldera::detail
