#include "lm/serve/loaded_model.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/error.h"
#include "engine/graph/default_device.h"
#include "lm/base/file_identity.h"
#include "lm/formats/config/generation_config.h"
#include "lm/generate/cache/prompt_cache.h"
#include "lm/models/registry.h"
#include "lm/serve/service/load_model.h"

namespace caldera::serve {
namespace {

/// What stands first of what is given.
template <class T>
void set(T& value, const std::optional<T>& first, const std::optional<T>& second) {
  value = first ? *first : second.value_or(value);
}

void set_defaults(SamplingOptions& sampling, const SamplingDefaults& given,
                  const std::filesystem::path& dir) {
  GenerationConfig config;
  if (given.from_model) config = load_generation_config(dir);
  if (!config.do_sample.value_or(false)) config.temperature.reset();
  set(sampling.temperature, given.temperature, config.temperature);
  set(sampling.top_k, given.top_k, config.top_k);
  set(sampling.top_p, given.top_p, config.top_p);
  set(sampling.min_p, given.min_p, config.min_p);
  set(sampling.repetition_penalty, given.repetition_penalty, config.repetition_penalty);
  sampling.validate();
}

void refuse(bool given, const char* what) {
  if (given) throw ValueError(what);
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& dir, const ModelServerOptions& options) {
  const Device device = options.device.value_or(default_device());
  if (options.embeddings || is_embedding_model(dir))
    open_embedder(dir, device, options);
  else
    open_generator(dir, device, options);
}

void LoadedModel::open_embedder(const std::filesystem::path& dir, Device device,
                                const ModelServerOptions& options) {
  refuse(!options.adapters.empty(), "embeddings are made without adapters");
  refuse(!options.chat_template.empty() || !options.system_prompt.empty(),
         "embeddings are made without a chat template and without a system prompt");
  refuse(options.cache_type != CacheType::model, "embeddings are made without a cache of keys and values");
  refuse(options.speculation.drafts(), "embeddings are made without a draft model and without look-up");
  served_ = load_served_embedder(dir);
  if (!options.name.empty()) served_.name = options.name;
  embedder_.emplace(EmbeddingModel::from_pretrained(dir, device, options.dtype), served_.name,
                    ModelEmbedder::Options{options.pooling, options.matryoshka});
  service_.emplace(served_, *embedder_, options.limits);
}

void LoadedModel::open_generator(const std::filesystem::path& dir, Device device,
                                 const ModelServerOptions& options) {
  refuse(options.pooling.has_value() || options.matryoshka,
         "pooling and shortened vectors are for models of embeddings");
  model_ = load_causal_lm(dir, device, options.dtype, halves_for_inference(device));
  model_->set_activations(options.activations);
  model_->set_cache_type(options.cache_type);
  served_ = load_served_model(dir, model_->config(), options.chat_template, problem_);
  served_.system_prompt = options.system_prompt;
  if (!options.name.empty()) served_.name = options.name;
  served_.split_thinking = options.split_thinking;
  served_.lenient_schemas = options.lenient_schemas;
  speculation_.emplace(*model_, options.speculation);
  BatchLimits batch = options.batch;
  if (!options.prompt_cache.empty()) {
    // What the numbers depend on beside the tokens.
    const std::string identity =
        fmt::format("{}|{}|{}|{}|{}", file_identity(dir), caldera::name(model_->dtype()), device.to_string(),
                    static_cast<int>(options.activations), static_cast<int>(options.cache_type));
    batch.prompt_cache =
        std::make_shared<PromptCache>(options.prompt_cache, identity, options.prompt_cache_bytes);
  }
  generator_.emplace(*model_, batch);
  for (const auto& [name, folder] : options.adapters) {
    if (name == served_.name) throw ValueError("adapter '" + name + "' has the model's own name");
    generator_->load_adapter(name, folder);
    served_.adapters.push_back(name);
  }
  check_system_prompt(generator_->limits().max_context);
  engine_.emplace(*generator_, generator_->limits().max_context);
  ServeLimits limits = options.limits;
  set_defaults(limits.sampling, options.sampling, dir);
  sampling_ = limits.sampling;
  service_.emplace(served_, *engine_, limits);
  service_->set_speculation(*speculation_);
}

void LoadedModel::check_system_prompt(std::int64_t context) const {
  if (served_.system_prompt.empty()) return;
  const auto tokens = static_cast<std::int64_t>(served_.tokenizer->encode(served_.system_prompt).size());
  if (tokens >= context)
    throw ValueError(fmt::format(
        "the system prompt has {} tokens, and the context {} for it, the conversation and the answer; "
        "shorten it, or ask for a longer context",
        tokens, context));
}

}  // namespace caldera::serve
