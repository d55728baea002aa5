#include "lm/generate/speculation.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/error.h"
#include "lm/generate/model_drafter.h"
#include "lm/models/registry.h"

namespace caldera {

Speculation::Speculation(const CausalLM& model, SpeculationOptions options) : options_(std::move(options)) {
  if (options_.draft_model.empty()) return;
  if (options_.lookup) throw ValueError("speculation: either a draft model or look-up, not both");
  model_ = load_causal_lm(options_.draft_model, model.device(), model.dtype(),
                          halves_for_inference(model.device()));
  model_->set_activations(Activations::rounded);
  model_->set_cache_type(why_no_cache(model.cache_type(), model_->config().head_dim).empty()
                             ? model.cache_type()
                             : CacheType::model);
  model_->set_training(false);  // drafters that come and go leave it so
  const std::int64_t vocabulary = model_->config().vocab_size;
  if (vocabulary != model.config().vocab_size)
    throw ValueError(fmt::format(
        "draft model {}: its vocabulary has {} tokens, that of the model {}; take a smaller model of the "
        "same family",
        options_.draft_model.string(), vocabulary, model.config().vocab_size));
}

std::shared_ptr<Drafter> Speculation::drafter(const SamplingOptions& sampling) const {
  if (options_.lookup) return std::make_shared<LookupDrafter>();
  if (model_ != nullptr) return std::make_shared<ModelDrafter>(*model_, sampling);
  return nullptr;
}

}  // namespace caldera
