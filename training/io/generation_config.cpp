#include "training/io/generation_config.h"

#include "training/io/atomic_file.h"
#include "training/io/json_file.h"

namespace caldera {

GenerationConfig load_generation_config(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / "generation_config.json";
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
