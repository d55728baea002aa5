// The fields of config.json as keys of a GGUF file.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "lm/base/json_file.h"
#include "lm/formats/convert/gguf_export.h"
#include "lm/formats/convert/gguf_rope_export.h"
#include "lm/formats/gguf/ggml_type.h"
#include "lm/formats/gguf/gguf_keys.h"

namespace caldera::detail {
namespace {

class KeyWriter {
 public:
  KeyWriter(GgufWriter& writer, const GgufExport& model)
      : writer_(writer), fields_(model.fields), config_(model.config), family_(model.family) {}

  void write() {
    for (const GgufKey& row : kGgufKeys) shared(row);
    put_integer("vocab_size", config_.vocab_size);
    put_integer("attention.key_length", config_.head_dim);
    put_integer("attention.value_length", config_.head_dim);
    if (std::ranges::any_of(config_.layers, &LayerConfig::sliding))
      put_integer("attention.sliding_window", config_.sliding_window);
    for (const GgufTokenKey& row : kGgufTokenKeys) token(row);
    rope();
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", family_.architecture, name); }

  std::uint32_t as_u32(const char* field, std::int64_t value) const {
    if (value < 0 || value > std::numeric_limits<std::uint32_t>::max())
      fields_.fail(field, fmt::format("is {}, which GGUF does not hold", value));
    return static_cast<std::uint32_t>(value);
  }
  void put_integer(const char* name, std::optional<std::int64_t> value) {
    if (value) writer_.add(key(name), as_u32(name, *value));
  }
  void put_number(const char* name, std::optional<double> value) {
    if (value) writer_.add(key(name), static_cast<float>(*value));
  }

  void shared(const GgufKey& row) {
    if (!fields_.has(row.field)) {
      if (row.required) fields_.fail(row.field, "is missing");
    } else if (row.kind == GgufKeyKind::number) {
      put_number(row.key, fields_.number(row.field));
    } else {
      put_integer(row.key, fields_.integer(row.field));
    }
  }

  /// The first id of a field goes under the first of its keys, the second under the next.
  void token(const GgufTokenKey& row) {
    const std::vector<std::int64_t> ids = fields_.integers(row.field);
    std::size_t place = 0;
    for (const GgufTokenKey& before : kGgufTokenKeys) {
      if (&before == &row) break;
      if (std::string_view(before.field) == row.field) ++place;
    }
    if (place < ids.size()) writer_.add(row.key, as_u32(row.field, ids[place]));
  }

  void rope() {
    const RopeKeys keys = rope_keys(fields_, config_);
    put_integer("rope.dimension_count", keys.turned);
    put_number("rope.freq_base", keys.theta);
    put_number("rope.freq_base_swa", keys.local_theta);
    if (!keys.type.empty()) writer_.add(key("rope.scaling.type"), keys.type);
    put_number("rope.scaling.factor", keys.factor);
    put_integer("rope.scaling.original_context_length", keys.original);
    put_number("rope.scaling.attn_factor", keys.attention_factor);
    put_number("rope.scaling.yarn_beta_fast", keys.beta_fast);
    put_number("rope.scaling.yarn_beta_slow", keys.beta_slow);
    for (const auto& [name, factors] : keys.factors) {
      const Shape shape{static_cast<std::int64_t>(factors.size())};
      writer_.add_tensor(name, ggml::kF32, shape, [factors = factors] {
        const auto bytes = std::as_bytes(std::span(factors));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
      });
    }
  }

  GgufWriter& writer_;
  const JsonFields& fields_;
  const ModelConfig& config_;
  const GgufFamily& family_;
};

}  // namespace

const GgufFamily& gguf_family_of(const JsonFields& fields) {
  const std::string type = fields.require_string("model_type");
  const GgufFamily* family = gguf_family_of_model_type(type);
  if (family == nullptr || family->architecture == "qwen3moe" || family->architecture == "gpt-oss" ||
      family->architecture == "gpt2" || family->architecture == "bert" ||
      family->architecture == "modern-bert")
    fields.fail("model_type",
                fmt::format("is '{}', which cannot be written as GGUF (llama, mistral, qwen2, qwen3, "
                            "gemma2, gemma3_text, phi3, smollm3, olmo2 and granite can)",
                            printable(type)));
  if (fields.boolean("use_bidirectional_attention").value_or(false))
    fields.fail("use_bidirectional_attention", "is true: an encoder, which cannot be written as GGUF");
  return *family;
}

void add_configuration(GgufWriter& writer, const GgufExport& model) {
  refuse_what_gguf_cannot_say(model);
  writer.add("general.architecture", std::string(model.family.architecture));
  writer.add("general.type", std::string("model"));
  writer.add("general.name", model.files.path().filename().string());
  writer.add("general.file_type", gguf_file_type(model.type));
  if (is_quantized_type(model.type)) writer.add("general.quantization_version", std::uint32_t{2});
  KeyWriter(writer, model).write();
}

}  // namespace caldera::detail
