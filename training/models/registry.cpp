#include "training/models/registry.h"

#include "training/io/atomic_file.h"
#include "training/models/family.h"

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
  F(gpt_oss)

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

}  // namespace

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const detail::ModelFamily& family : families()) types.emplace_back(family.name.model_type);
  return types;
}

std::unique_ptr<CausalLM> make_causal_lm(const std::filesystem::path& config_file, Device device,
                                         std::uint64_t seed) {
  const detail::JsonDocument document(read_text_file(config_file), config_file.string());
  std::vector<detail::FamilyName> names;
  for (const detail::ModelFamily& family : families()) names.push_back(family.name);
  const detail::ModelFamily& family = families()[detail::match_family(document.fields(), names)];
  return family.make(document.fields(), device, seed);
}

std::unique_ptr<CausalLM> load_causal_lm(const std::filesystem::path& dir, Device device, DType dtype) {
  std::unique_ptr<CausalLM> model = make_causal_lm(dir / "config.json", device);
  model->load_weights(dir, dtype);
  return model;
}

}  // namespace caldera
