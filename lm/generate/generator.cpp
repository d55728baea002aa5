#include "lm/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "lm/generate/continuation.h"
#include "lm/generate/feeder.h"

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
  check_decoding(options, model.config().vocab_size);
}

/// Whether nothing but the most likely token is asked for, which a device finds where the logits are.
bool chooses_on_device(const GenerateOptions& options) {
  return options.takes_choices() && !options.on_logits;
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
  return chooses_on_device(options) && !options.drafts() && model.device() != Device::cpu();
}

namespace {

/// Hands tokens to the receivers and gathers the answer.
class Receiver {
 public:
  Receiver(const GenerateOptions& options, Generation& result) : options_(options), result_(result) {}

  /// False where the generation ends.
  bool take(const ChosenToken& token) {
    result_.ids.push_back(token.id);
    if (token.report) result_.reports.push_back(*token.report);
    result_.text += token.decoded.text;
    bool go_on = !options_.on_token || options_.on_token(token.id);
    if (options_.on_text && !token.decoded.text.empty())
      go_on = options_.on_text(token.decoded.text) && go_on;
    if (token.decoded.finish) result_.finish_reason = *token.decoded.finish;
    if (!go_on) result_.finish_reason = FinishReason::stop;
    result_.stop = token.decoded.stop;
    return go_on && !token.decoded.finish;
  }

 private:
  const GenerateOptions& options_;
  Generation& result_;
};

/// Chooses the token after what was fed last.
ChosenToken next_token(const Feeder& feeder, Continuation& text) {
  return feeder.chooses() ? text.take(feeder.choice().item<std::int32_t>()) : text.draw(feeder.logits());
}

/// Chooses one token after the other.
void generate_plainly(Feeder& feeder, Continuation& text, Receiver& receiver, bool goes_ahead) {
  LazyTensor next = feeder.choice();
  while (true) {
    // A device computes on while the host looks at what came before: it gets the next token at once. What is
    // computed after the last token is for nothing, so a processor, which is no faster for it, does not.
    // A larger cache is not made for a token that may not be needed.
    const bool ahead = goes_ahead && feeder.has_room() && text.left() > 1;
    if (ahead) feeder.feed_choice(next);
    const ChosenToken token =
        next.defined() ? text.take(next.item<std::int32_t>()) : text.draw(feeder.logits());
    if (!receiver.take(token)) {
      if (ahead) feeder.choice().eval();  // nothing runs on when this returns
      return;
    }
    if (!ahead) feeder.feed_token(token.id);
    next = feeder.choice();
  }
}

/// Checks what the drafter guesses after each token.
void generate_with_drafts(Feeder& feeder, Continuation& text, Receiver& receiver,
                          const GenerateOptions& options) {
  if (!receiver.take(next_token(feeder, text))) return;
  const auto vocabulary = static_cast<std::int64_t>(feeder.vocabulary());
  // One length, so that there is one plan.
  const std::int64_t length = options.draft_tokens + 1;
  while (true) {
    TokenDraft draft;
    if (const std::int64_t most = feeder.most_drafts();
        most > 0 && text.left() > 1 && feeder.make_room(length))
      draft = text.draft(most, vocabulary);
    if (draft.ids.empty()) {
      feeder.feed_token(text.ids().back());
      if (!receiver.take(next_token(feeder, text))) return;
      continue;
    }
    feeder.feed_drafts(text.fed_for(draft, vocabulary), length);
    for (std::size_t i = 0;; ++i) {
      if (options.on_logits) options.on_logits(feeder.row(i));
      const ChosenToken token =
          feeder.chooses() ? text.take(feeder.chosen(i), draft, i) : text.check(feeder.row(i), draft, i);
      if (!receiver.take(token)) return;
      if (!token.accepted) break;
    }
    feeder.truncate(text.size() - 1);  // the token that was added last is not fed
  }
}

}  // namespace

Generation generate(CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  check(model, prompt, options);
  Continuation text(prompt, options, model.config().max_positions());
  const EvaluationMode mode(model);
  const bool choose = chooses_on_device(options);
  Feeder feeder(model, text.prompt_size(), choose, options.on_logits);

  Generation result;
  Receiver receiver(options, result);
  const Clock::time_point start = Clock::now();
  feeder.feed_prompt(prompt);
  if (choose) feeder.choice().eval();
  result.prefill_tokens_per_second = static_cast<double>(prompt.size()) / seconds_since(start);

  const Clock::time_point decode_start = Clock::now();
  if (options.max_tokens > 0 && options.drafts())
    generate_with_drafts(feeder, text, receiver, options);
  else if (options.max_tokens > 0)
    generate_plainly(feeder, text, receiver, goes_ahead(model, options));
  result.text += text.rest();                     // where a receiver ended it
  const std::int64_t fed = text.generated() - 1;  // a step after the last token was for nothing
  if (fed > 0) result.decode_tokens_per_second = static_cast<double>(fed) / seconds_since(decode_start);
  result.drafted_tokens = text.drafted_tokens();
  result.accepted_tokens = text.accepted_tokens();
  return result;
}

}  // namespace caldera
