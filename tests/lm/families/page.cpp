#include "tests/lm/families/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/adapters/lora.h"
#include "lm/models/registry.h"
#include "lm/nn/layers/linear.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

constexpr const char* kHead = R"(# Models

Made by `build/release/tests/caldera_models > docs/guide/models.md` from the registry of families (`lm/models/registry.cpp`); a
test holds the page to it.

A model folder is Hugging Face's: `config.json`, safetensors, `tokenizer.json`. The family is the one that `architectures` and `model_type`
name. Fields of `config.json` that a family does not know are refused by name, unless they switch nothing on (null, false, zero, empty)
or are known to change no result. Of a model that has a `text_config` (Gemma3ForConditionalGeneration, say) the text part is read, from tensors
named `language_model.`...; it is saved as the text model that it is. Tokens that begin and end a text are the whole's where the part
names none. A field that is left out has the default of the family's configuration class in transformers, null is no value; what
transformers passes over without a word, though it would change the result (`layer_types` of Mistral), is refused.

- **read**: folders of these architectures are read and written back.
- **run**: what models of the family give: the text's next tokens, or vectors (`caldera embed`, `caldera serve`, `EmbeddingModel`). Every
  decoder also gives vectors: Qwen3-Embedding is a Qwen3.
- **LoRA**: the modules that adapters may wrap (`--target-modules`), as PEFT names them.
- **quantised**: whether all of these modules may have block-quantised weights.
- **chat**: whether the tokenizer's chat template is used, where the folder has one.

| model_type | architectures | read | run | LoRA | quantised | chat |
|---|---|---|---|---|---|---|
)";

constexpr const char* kTail = R"(
Rotary positions: `default`, `linear`, `dynamic`, `llama3`, `yarn` (with `truncate`, `mscale`, `attention_factor`) and `longrope`, for part of a
head's width where the family has that, for each type of layer, or not at all in some layers; `rope_scaling` and
`rope_parameters` alike. With `dynamic` and `longrope` the frequencies depend on the length of the text: that is the number of tokens without a
cache, in packed rows the longest text's, and with a cache its capacity.

Layers that slide attend to the last `sliding_window` positions alone. Experts are computed for every token, and count with their weights.
Positions beyond `max_position_embeddings` are refused, but for the types of scaling that stretch it (`factor` times the original length).
)";

/// A small model of the family with random weights that are never computed.
std::unique_ptr<CausalLM> sample(const FamilyFacts& family) {
  nlohmann::json config{{"architectures", {family.architectures.front()}},
                        {"model_type", family.model_type},
                        {"hidden_size", 16},
                        {"intermediate_size", 24},
                        {"num_hidden_layers", 1},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 4},
                        {"vocab_size", 40}};
  const TempFolder folder;
  const std::filesystem::path path = folder / "config.json";
  std::ofstream(path) << config.dump();
  return make_text_model(path, Device::cpu());
}

std::string row_of(const FamilyFacts& family) {
  const std::unique_ptr<CausalLM> model = sample(family);
  bool linear = true;
  model->visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    linear = linear && dynamic_cast<Linear*>(slot.get()) != nullptr;
  });
  return fmt::format("| {} | {} | yes | {} | {} | {} | {} |\n", family.model_type,
                     fmt::join(family.architectures, ", "), family.encoder ? "vectors" : "text",
                     fmt::join(lora_target_modules(*model), ", "), linear ? "yes" : "no",
                     family.encoder ? "no" : "yes");
}

}  // namespace

std::string models_page() {
  std::string page = kHead;
  for (const FamilyFacts& family : model_families()) page += row_of(family);
  return page + kTail;
}

}  // namespace caldera::testing
