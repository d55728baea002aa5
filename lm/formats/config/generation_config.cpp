#include "lm/formats/config/generation_config.h"

#include <fmt/format.h>

#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera {
namespace {

// A GGUF file has no such configuration but for the tokens that end a text, or a turn of a conversation.
GenerationConfig read_gguf(const std::filesystem::path& path) {
  const detail::GgufFile file = detail::GgufFile::open(path);
  GenerationConfig config;
  for (const char* key : {"eos", "eot", "eom"})
    if (const auto id = file.integer(fmt::format("tokenizer.ggml.{}_token_id", key)))
      config.eos_token_ids.push_back(*id);
  return config;
}

}  // namespace

GenerationConfig load_generation_config(const std::filesystem::path& model) {
  if (model.extension() == ".gguf") return read_gguf(model);
  const std::filesystem::path path = model / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const detail::JsonDocument document(read_text_file(path), path.string());
  const detail::JsonFields& fields = document.fields();
  return {fields.integers("eos_token_id"),
          fields.boolean("do_sample"),
          fields.number("temperature"),
          fields.integer("top_k"),
          fields.number("top_p"),
          fields.number("min_p"),
          fields.number("repetition_penalty")};
}

}  // namespace caldera
