#include "lm/tokenizers/pipeline/read_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/tokenizers/decoders/read_decoder.h"
#include "lm/tokenizers/models/read_model.h"
#include "lm/tokenizers/normalizers/read_normalizer.h"
#include "lm/tokenizers/pre_tokenizers/read_pre_tokenizer.h"

namespace caldera::detail {
namespace {

/// A stage's configuration; absent is null.
const nlohmann::json& stage(const nlohmann::json& root, const char* name) {
  static const nlohmann::json kNull;
  const auto it = root.find(name);
  return it == root.end() ? kNull : *it;
}

}  // namespace

TokenizerParts read_tokenizer(const nlohmann::json& root, const std::string& where) {
  if (!root.is_object()) throw FileError(fmt::format("{}: the JSON root is not an object", where));
  TokenizerParts parts;
  parts.added = read_added_tokens(stage(root, "added_tokens"), where);
  parts.normalizer = read_normalizer(stage(root, "normalizer"), where + ": normalizer");
  parts.pre_tokenizer = read_pre_tokenizer(stage(root, "pre_tokenizer"), where + ": pre_tokenizer");
  parts.model = read_model(stage(root, "model"), where + ": model");
  parts.post_processor = read_post_processor(stage(root, "post_processor"), where + ": post_processor");
  parts.decoder = read_decoder(stage(root, "decoder"), where + ": decoder");
  return parts;
}

}  // namespace caldera::detail
