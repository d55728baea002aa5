// The fourth stage of a tokenizer: special tokens around the text. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace caldera::detail {

/// A single text's template: what stands before it and after it.
struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
};

/// Reads null (nothing around the text), TemplateProcessing (its `single` form; pairs are of no use here),
/// BertProcessing, RobertaProcessing, ByteLevel (which changes offsets alone) or a Sequence of them, where
/// each stands around what those before it leave. Throws FileError naming a type that is not known.
PostProcessor read_post_processor(const nlohmann::json& config, const std::string& where);

/// The template that TemplateProcessing has where it sets tokens: those that are there.
PostProcessor around(std::optional<std::int32_t> before, std::optional<std::int32_t> after);

}  // namespace caldera::detail
