#include "lm/models/registry.h"

#include <nlohmann/json.hpp>

#include "lm/formats/model_files.h"
#include "lm/models/family.h"

// A line a family: F(NAME) stands for `detail::ModelFamily NAME_family()` of models/NAME.cpp (or, of two that
// differ little, of the other one's file).
#define CALDERA_MODEL_FAMILIES(F) \
  F(llama)                        \
  F(qwen2)                        \
  F(qwen3)                        \
  F(gemma2)                       \
  F(gemma3)                       \
  F(mistral)                      \
  F(ministral3)                   \
  F(smollm3)                      \
  F(olmo2)                        \
  F(olmo3)                        \
  F(granite)                      \
  F(phi3)                         \
  F(gpt2)                         \
  F(qwen3_moe)                    \
  F(gpt_oss)                      \
  F(bert)                         \
  F(roberta)                      \
  F(xlm_roberta)                  \
  F(modernbert)                   \
  F(embedding_gemma)

namespace caldera {

#define CALDERA_DECLARE_FAMILY(name) detail::ModelFamily name##_family();
CALDERA_MODEL_FAMILIES(CALDERA_DECLARE_FAMILY)
#undef CALDERA_DECLARE_FAMILY

namespace {

const std::vector<detail::ModelFamily>& families() {
#define CALDERA_CALL_FAMILY(name) name##_family(),
  static const std::vector<detail::ModelFamily> kFamilies{CALDERA_MODEL_FAMILIES(CALDERA_CALL_FAMILY)};
#undef CALDERA_CALL_FAMILY
  return kFamilies;
}

std::vector<std::string> types_of(detail::ModelUse use) {
  std::vector<std::string> types;
  for (const detail::ModelFamily& family : families())
    if (family.use == use) types.emplace_back(family.name.model_type);
  return types;
}

/// The family that a config.json names, among all or those that generate.
const detail::ModelFamily& family_of(const detail::JsonFields& fields, bool encoders) {
  std::vector<detail::FamilyName> names;
  std::vector<const detail::ModelFamily*> owners;
  for (const detail::ModelFamily& family : families()) {
    if (family.use != detail::ModelUse::generation && !encoders) continue;
    names.push_back(family.name);
    owners.push_back(&family);
  }
  const std::size_t own = names.size();
  for (std::size_t i = 0; i < own; ++i)
    for (const std::string_view architecture : owners[i]->more_architectures) {
      names.push_back({architecture, owners[i]->name.model_type});
      owners.push_back(owners[i]);
    }
  return *owners[detail::match_family(fields, names)];
}

/// A model of text, images and so on ("Gemma3ForConditionalGeneration") describes its text part in
/// text_config, and names its parameters after the module that this part is.
constexpr const char* kTextPart = "text_config";
constexpr const char* kTextModule = "language_model.";

/// The part's fields, and those that say of the whole what the part leaves out.
nlohmann::json text_part(nlohmann::json part, const detail::JsonFields& whole) {
  for (const char* field : {"bos_token_id", "eos_token_id", "torch_dtype", "dtype"})
    if (const nlohmann::json* value = whole.find(field); value != nullptr && !part.contains(field))
      part[field] = *value;
  return part;
}

std::unique_ptr<CausalLM> make_model(const detail::ConfigText& config, Device device, std::uint64_t seed,
                                     bool encoders) {
  const detail::JsonDocument document(config.text, config.where);
  const detail::JsonFields& fields = document.fields();
  if (fields.kind(kTextPart) != detail::JsonKind::object)
    return family_of(fields, encoders).make(fields, device, seed);
  const detail::JsonDocument part(text_part(*fields.find(kTextPart), fields).dump(),
                                  config.where + ": " + kTextPart);
  std::unique_ptr<CausalLM> model = family_of(part.fields(), encoders).make(part.fields(), device, seed);
  model->set_part_of_larger(kTextModule);
  return model;
}

}  // namespace

std::vector<std::string> model_types() { return types_of(detail::ModelUse::generation); }
std::vector<std::string> encoder_model_types() { return types_of(detail::ModelUse::embedding); }

std::vector<FamilyFacts> model_families() {
  std::vector<FamilyFacts> all;
  for (const detail::ModelFamily& family : families()) {
    FamilyFacts facts{std::string(family.name.model_type),
                      {std::string(family.name.architecture)},
                      family.use == detail::ModelUse::embedding};
    facts.architectures.insert(facts.architectures.end(), family.more_architectures.begin(),
                               family.more_architectures.end());
    all.push_back(std::move(facts));
  }
  return all;
}

bool is_encoder(const std::filesystem::path& path) {
  const detail::ConfigText config = detail::read_config_text(path);
  const detail::JsonDocument document(config.text, config.where);
  const detail::JsonFields& fields = document.fields();
  return fields.kind(kTextPart) != detail::JsonKind::object &&
         family_of(fields, true).use == detail::ModelUse::embedding;
}

std::unique_ptr<CausalLM> make_causal_lm(const std::filesystem::path& path, Device device,
                                         std::uint64_t seed) {
  return make_model(detail::read_config_text(path), device, seed, false);
}

std::unique_ptr<CausalLM> make_causal_lm_from_json(std::string_view config, Device device,
                                                   std::uint64_t seed) {
  return make_model({.text = std::string(config), .where = "config"}, device, seed, false);
}

std::string model_config_text(const std::filesystem::path& path) {
  return detail::read_config_text(path).text;
}

std::unique_ptr<CausalLM> load_causal_lm(const std::filesystem::path& path, Device device, DType dtype,
                                         HalfWeights halves) {
  std::unique_ptr<CausalLM> model = make_causal_lm(path, device);
  model->load_weights(path, dtype, halves);
  return model;
}

std::unique_ptr<CausalLM> make_text_model(const std::filesystem::path& path, Device device,
                                          std::uint64_t seed) {
  return make_model(detail::read_config_text(path), device, seed, true);
}

std::unique_ptr<CausalLM> load_text_model(const std::filesystem::path& dir, Device device, DType dtype,
                                          HalfWeights halves) {
  std::unique_ptr<CausalLM> model = make_text_model(dir, device);
  model->load_weights(dir, dtype, halves);
  return model;
}

}  // namespace caldera
