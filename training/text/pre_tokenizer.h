// The second stage of a tokenizer.json: cutting the text into words that the model sees one at a time.
// Private to training/text.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::detail {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual std::vector<std::string> split(std::string_view text) const = 0;
};

/// null gives nullptr: the whole text is one word. Throws FileError naming any other type: none is supported
/// yet.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
