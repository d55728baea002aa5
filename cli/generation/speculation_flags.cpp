#include "cli/generation/speculation_flags.h"

#include <fmt/format.h>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "lm/generate/model_drafter.h"
#include "lm/models/registry.h"

namespace caldera::cli {

void SpeculationFlags::declare(Arguments& args) {
  const Option draft =
      args.option("--draft-model", draft_model_,
                  "A smaller model of the same vocabulary, which guesses tokens that the model then checks "
                  "together: faster where most guesses are right, and the same distribution")
          .type_name("DIR");
  args.flag("--lookup", lookup_, "Guess that the text goes on as it did after the same tokens before")
      .excludes(draft);
  tokens_option_ = args.option("--draft-tokens", tokens_, "Tokens that are guessed at a time")
                       .type_name("N")
                       .check(integer_in(1, 64))
                       .show_default();
}

std::string SpeculationFlags::given() const {
  if (lookup_) return "--lookup";
  if (!draft_model_.empty()) return "--draft-model";
  return tokens_option_.given() ? "--draft-tokens" : "";
}

void SpeculationFlags::load(const CausalLM& model) {
  if (given() == "--draft-tokens") throw UsageError("--draft-tokens: needs --lookup or --draft-model");
  if (draft_model_.empty()) return;
  model_ = load_causal_lm(draft_model_, model.device(), model.dtype());
  model_->set_training(false);  // drafters that come and go leave it so
  const std::int64_t vocabulary = model_->config().vocab_size;
  if (vocabulary != model.config().vocab_size)
    throw ValueError(
        fmt::format("--draft-model: its vocabulary has {} tokens, that of the model {}; take a "
                    "smaller model of the same family",
                    vocabulary, model.config().vocab_size));
}

std::shared_ptr<Drafter> SpeculationFlags::drafter(const SamplingOptions& sampling) const {
  if (lookup_) return std::make_shared<LookupDrafter>();
  if (model_ != nullptr) return std::make_shared<ModelDrafter>(*model_, sampling);
  return nullptr;
}

}  // namespace caldera::cli
