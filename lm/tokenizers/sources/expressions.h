// The regular expressions by which BPE models cut texts, by the name that GGUF files have for them. Private
// to lm/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

/// Says how a family's texts are cut, and what else its name implies.
struct PreTokenization {
  std::string_view name;
  /// Each cuts what those before it leave; matches and what is between them are words.
  std::span<const std::string_view> expressions;
  bool ignore_merges = false;  ///< a word that is a token becomes it
  bool add_bos = false;        ///< where the file does not say
  bool add_sep = false;        ///< a text ends with the separator (or eos) as well
  bool nfc = false;            ///< the authors' tokenizer composes characters first
};

/// The entry of a name; nullptr where it is not known.
const PreTokenization* find_pre_tokenization(std::string_view name);

/// Cuts by the expressions, then writes bytes as characters.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const PreTokenization& entry, const std::string& where);

}  // namespace caldera::detail
