// The first stage of a tokenizer: rewriting the text. Private to training/text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace caldera::detail {

/// A step of rewriting. Immutable; may be used from several threads at once.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Takes UTF-8 and returns UTF-8.
  virtual std::string normalize(std::string text) const = 0;
};

/// The normalizer that a tokenizer.json describes: Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip,
/// StripAccents, Replace, Prepend, BertNormalizer, Precompiled, Nmt, ByteLevel; null gives nullptr. Throws
/// FileError naming a type that is not known.
std::unique_ptr<Normalizer> read_normalizer(const nlohmann::json& config, const std::string& where);

std::unique_ptr<Normalizer> make_sequence(std::vector<std::unique_ptr<Normalizer>> steps);
/// Puts `prefix` before a text that is not empty.
std::unique_ptr<Normalizer> make_prepend(std::string prefix);
/// Replaces every occurrence of `what` (not empty), from left to right.
std::unique_ptr<Normalizer> make_replace(std::string what, std::string with);

}  // namespace caldera::detail
