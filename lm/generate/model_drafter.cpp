#include "lm/generate/model_drafter.h"

#include <algorithm>

namespace caldera {
namespace {

/// What the draft draws has nothing to do with what the checking model draws, though both have one seed.
SamplingOptions with_own_seed(SamplingOptions options) {
  options.seed = mix_seed(options.seed, 1);
  return options;
}

}  // namespace

ModelDrafter::ModelDrafter(CausalLM& model, const SamplingOptions& sampling)
    : model_(model), sampler_(with_own_seed(sampling)) {}

void ModelDrafter::feed(std::span<const std::int32_t> seen) {
  if (!mode_) mode_.emplace(model_);
  if (!feeder_) feeder_.emplace(model_, static_cast<std::int64_t>(seen.size()), false);
  const auto [from, unlike] = std::mismatch(seen.begin(), seen.end(), fed_.begin(), fed_.end());
  // The last token is fed in any case: the logits after it are asked for.
  const std::ptrdiff_t alike = std::min<std::ptrdiff_t>(from - seen.begin(), std::ssize(seen) - 1);
  feeder_->truncate(alike);
  fed_.resize(static_cast<std::size_t>(alike));  // what is fed, also where feeding fails
  constexpr std::ptrdiff_t kFew = 2;
  if (std::ssize(seen) - alike > kFew)
    feeder_->feed_prompt(seen, alike);
  else
    for (std::ptrdiff_t i = alike; i < std::ssize(seen); ++i)
      feeder_->feed_token(seen[static_cast<std::size_t>(i)]);
  fed_.assign(seen.begin(), seen.end());
}

TokenDraft ModelDrafter::propose(const SamplingContext& context, std::int64_t count) {
  const std::span<const std::int32_t> seen = context.seen;
  TokenDraft draft;
  const std::int64_t positions = model_.config().max_positions();
  count = std::min(count, positions - static_cast<std::int64_t>(seen.size()));
  if (count < 1) return draft;
  const std::int64_t vocabulary = model_.config().vocab_size;
  if (!std::all_of(seen.begin(), seen.end(), [&](std::int32_t id) { return id >= 0 && id < vocabulary; }))
    return draft;
  std::vector<std::int32_t> text(seen.begin(), seen.end());
  while (std::ssize(draft.ids) < count) {
    feed(text);
    std::vector<TokenProbability> from =
        sampler_.distribution(feeder_->logits(), {.seen = text, .prompt_size = context.prompt_size});
    double point = sampler_.uniform();
    std::int32_t id = from.back().id;
    for (const TokenProbability& token : from) {
      point -= token.probability;
      if (point >= 0) continue;
      id = token.id;
      break;
    }
    text.push_back(id);
    draft.ids.push_back(id);
    draft.drawn_from.push_back(std::move(from));
  }
  return draft;
}

}  // namespace caldera
