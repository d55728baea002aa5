// The last stage of a tokenizer.json: from tokens back to text. Private to training/text.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace caldera::detail {

/// A step that rewrites a list of strings; the text is what the last step leaves, joined.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
};

/// Sequence, Replace (of a string), ByteFallback, Fuse, Strip; null gives nullptr. Throws FileError naming a
/// type that is not supported.
std::unique_ptr<Decoder> make_decoder(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
