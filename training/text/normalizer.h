// The first stage of a tokenizer.json: rewriting the text. Private to training/text.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace caldera::detail {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string normalize(std::string text) const = 0;
};

/// The normalizer that `config` describes: Sequence, Prepend, Replace (of a string); null gives nullptr.
/// Throws FileError naming a type that is not supported.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& config, const std::string& where);

/// `text` with every occurrence of `pattern` (not empty), left to right, replaced by `content`.
std::string replace_all(const std::string& text, const std::string& pattern, const std::string& content);

/// The pattern of a Replace step, {"String": S}. Throws FileError for a regular expression or an empty
/// pattern.
std::string string_pattern(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
