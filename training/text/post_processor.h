// The fourth stage of a tokenizer.json: special tokens around the text. Private to training/text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace caldera::detail {

/// A single text's template: what stands before it and after it.
struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
};

/// Reads null (nothing around the text) or TemplateProcessing (its `single` form; pairs are of no use here).
/// Throws FileError naming a type that is not supported.
PostProcessor make_post_processor(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
