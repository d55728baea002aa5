#include "lm/models/llama.h"

#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

constexpr detail::FamilyName kName{"LlamaForCausalLM", "llama"};

LlamaConfig read_llama(const detail::JsonFields& fields) {
  LlamaConfig config;
  detail::read_config(
      fields, config,
      {.own = {{"attention_bias", "false"}, {"mlp_bias", "false"}}, .ignored = {"is_llama_config"}});
  config.attention_bias = fields.boolean("attention_bias").value_or(false);
  config.mlp_bias = fields.boolean("mlp_bias").value_or(false);
  return config;
}

const LlamaConfig& validated(const LlamaConfig& config) {
  config.validate();
  return config;
}

DecoderTraits traits_of(const LlamaConfig& config) {
  const bool attention = config.attention_bias;
  return {.biases = {attention, attention, attention, attention, config.mlp_bias}};
}

ConfigFields own(const LlamaConfig& config) {
  const auto json = [](bool value) { return value ? "true" : "false"; };
  return {{"attention_bias", json(config.attention_bias)}, {"mlp_bias", json(config.mlp_bias)}};
}

}  // namespace

LlamaConfig::LlamaConfig(const ModelConfig& shared) : ModelConfig(shared) {
  architecture = kName.architecture;
  model_type = kName.model_type;
}

LlamaConfig LlamaConfig::from_json(std::string_view text, const std::string& where) {
  const detail::JsonDocument document(text, where);
  detail::match_family(document.fields(), {&kName, 1});
  return read_llama(document.fields());
}

LlamaConfig LlamaConfig::from_file(const std::filesystem::path& path) {
  return from_json(read_text_file(path), path.string());
}

std::string LlamaConfig::to_json() const { return detail::config_json(*this, own(*this)); }

Llama::Llama(const LlamaConfig& config, Device device, std::uint64_t seed)
    : Llama(Lazily{}, config, device, seed) {
  materialize();
}

Llama::Llama(Lazily, const LlamaConfig& config, Device device, std::uint64_t seed)
    : Decoder(DecoderParts(validated(config), device, traits_of(config)), seed), config_(config) {}

std::unique_ptr<Llama> Llama::make_lazily(const LlamaConfig& config, Device device, std::uint64_t seed) {
  return std::unique_ptr<Llama>(new Llama(Lazily{}, config, device, seed));
}

std::unique_ptr<Llama> Llama::load(const std::filesystem::path& dir, Device device, DType dtype) {
  auto model = make_lazily(LlamaConfig::from_file(dir / "config.json"), device, 0);
  model->load_weights(dir, dtype);
  return model;
}

ConfigFields Llama::own_fields() const { return own(config_); }

detail::ModelFamily llama_family() {
  return {
      kName,
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        return Llama::make_lazily(read_llama(fields), device, seed);
      }};
}

}  // namespace caldera
