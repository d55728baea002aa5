// Qwen2: Hugging Face's Qwen2ForCausalLM. A pre-norm decoder as Llama, with biases on the query, key and
// value projections and on nothing else.
#include "training/models/decoder.h"
#include "training/models/family.h"

namespace caldera {
namespace {

/// Defaults are those of Hugging Face's Qwen2Config. It has no field of its own that changes the result:
/// sliding windows are refused.
struct Qwen2Config : ModelConfig {
  Qwen2Config() {
    architecture = "Qwen2ForCausalLM";
    model_type = "qwen2";
    max_position_embeddings = 32768;
  }
};

Qwen2Config read(const detail::JsonFields& fields) {
  Qwen2Config config;
  detail::read_config(fields, config);
  if (fields.boolean("use_sliding_window").value_or(false))
    fields.fail("use_sliding_window", "is true: sliding-window attention is not supported");
  // Newer files say it layer by layer.
  const std::vector<std::string> types = fields.strings("layer_types");
  if (fields.has("layer_types") && types.size() != static_cast<std::size_t>(config.num_hidden_layers))
    fields.fail("layer_types", "has " + std::to_string(types.size()) + " entries, but num_hidden_layers is " +
                                   std::to_string(config.num_hidden_layers));
  for (const std::string& type : types)
    if (type != "full_attention")
      fields.fail("layer_types", "asks for '" + detail::printable(type) +
                                     "', which is not supported (supported: full_attention)");
  return config;
}

class Qwen2 final : public Decoder {
 public:
  Qwen2(const Qwen2Config& config, Device device, std::uint64_t seed)
      : Decoder(DecoderParts(config, device, {.q = true, .k = true, .v = true}), seed), config_(config) {}

  const ModelConfig& config() const override { return config_; }

 protected:
  detail::JsonMembers own_fields() const override { return {{"use_sliding_window", false}}; }

 private:
  Qwen2Config config_;
};

}  // namespace

detail::ModelFamily qwen2_family() {
  return {
      {"Qwen2ForCausalLM", "qwen2"},
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        return std::make_unique<Qwen2>(read(fields), device, seed);
      }};
}

}  // namespace caldera
