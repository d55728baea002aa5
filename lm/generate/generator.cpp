#include "lm/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "lm/generate/continuation.h"
#include "lm/generate/feeder.h"
#include "lm/generate/speculative.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
}

void check(const CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  const std::int64_t positions = model.config().max_positions();
  if (prompt.empty())
    throw ValueError("generate: the prompt has no tokens; give the model at least one to go on from");
  if (static_cast<std::int64_t>(prompt.size()) > positions) {
    throw ValueError(
        fmt::format("generate: the prompt has {} tokens, more than the model's {} positions; shorten it",
                    prompt.size(), positions));
  }
  if (options.max_tokens < 0) throw ValueError("generate: max_tokens must not be negative");
  if (options.draft_tokens < 0) throw ValueError("generate: draft_tokens must not be negative");
}

}  // namespace

std::vector<std::int32_t> stop_tokens(const ModelConfig& config, const GenerationConfig& generation,
                                      std::optional<std::int32_t> eos_id) {
  std::set<std::int32_t> ids;
  for (const auto* list : {&config.eos_token_ids, &generation.eos_token_ids})
    for (const std::int64_t id : *list)
      if (id >= 0 && id < config.vocab_size) ids.insert(static_cast<std::int32_t>(id));
  if (eos_id) ids.insert(*eos_id);
  return {ids.begin(), ids.end()};
}

bool goes_ahead(const CausalLM& model, const GenerateOptions& options) {
  return options.sampling.is_greedy() && !options.on_logits && model.device() != Device::cpu();
}

namespace {

/// Draws one token after the other.
void generate_plainly(const CausalLM& model, Feeder& feeder, Sampler& sampler, Continuation& text,
                      std::int64_t limit, const GenerateOptions& options) {
  LazyTensor next = feeder.choice();
  while (text.left() > 0) {
    // A device computes on while the host looks at what came before: it gets the next token at once. What is
    // computed after the last token is for nothing, so a processor, which is no faster for it, does not.
    // A larger cache is not made for a token that may not be needed.
    const std::int64_t fed = text.size();
    const bool ahead = feeder.has_room() && fed < limit && goes_ahead(model, options);
    if (ahead) feeder.feed_choice(next);
    const std::int32_t id = next.defined() ? checked_choice(next.item<std::int32_t>())
                                           : sampler.next(feeder.logits(), text.context());
    if (!text.add(id)) {
      if (ahead) feeder.choice().eval();  // nothing runs on when this returns
      return;
    }
    if (fed == limit) return;
    if (!ahead) feeder.feed_token(id);
    next = feeder.choice();
  }
}

}  // namespace

Generation generate(CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  check(model, prompt, options);
  Sampler sampler(options.sampling);
  const EvaluationMode mode(model);

  const auto prompt_size = static_cast<std::int64_t>(prompt.size());
  // The last token drawn needs no position. Clamped before it is added: max_tokens may be any number.
  const std::int64_t room = model.config().max_positions() - prompt_size;
  const std::int64_t limit = prompt_size + std::min(std::max<std::int64_t>(options.max_tokens - 1, 0), room);
  const bool drafts = options.drafter != nullptr && options.draft_tokens > 0;
  const bool choose = options.sampling.is_greedy() && !options.on_logits && !drafts;
  Feeder feeder(model, prompt_size, choose, options.on_logits);

  Generation result;
  Continuation text(prompt, options, result);
  const Clock::time_point start = Clock::now();
  feeder.feed_prompt(prompt);
  if (choose) feeder.choice().eval();
  result.prefill_tokens_per_second = static_cast<double>(prompt_size) / seconds_since(start);

  const Clock::time_point decode_start = Clock::now();
  if (options.max_tokens > 0 && drafts)
    generate_with_drafts(feeder, sampler, text, limit, options, result);
  else
    generate_plainly(model, feeder, sampler, text, limit, options);
  const std::int64_t fed = text.size() - 1 - prompt_size;  // a step after the last token was for nothing
  if (fed > 0) result.decode_tokens_per_second = static_cast<double>(fed) / seconds_since(decode_start);
  return result;
}

}  // namespace caldera
