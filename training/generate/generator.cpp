#include "training/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ops/ops.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
}

// Feeds tokens to the model and hands its logits to the host.
class Feeder {
 public:
  Feeder(Llama& model, std::int64_t capacity, const GenerateOptions& options)
      : model_(model), options_(options), cache_(model.make_cache(capacity)) {}

  // The logits after the last of `ids`.
  std::span<const float> feed(std::span<const std::int32_t> ids) {
    LazyTensor hidden = model_.hidden_states(model_.make_ids(ids), cache_.get());
    // The head is the widest matrix: without a receiver only the last position goes through it.
    if (!options_.on_logits && ids.size() > 1)
      hidden = slice(hidden, 1, hidden.shape(1) - 1, hidden.shape(1));
    const LazyTensor logits = model_.logits(hidden);
    std::vector<LazyTensor> outputs = cache_->state();
    outputs.push_back(logits);
    eval(outputs);
    host_ = logits.to_vector<float>();
    const auto vocabulary = static_cast<std::size_t>(logits.shape().back());
    if (options_.on_logits) {
      for (std::size_t at = 0; at < host_.size(); at += vocabulary)
        options_.on_logits(std::span(host_).subspan(at, vocabulary));
    }
    return std::span(host_).last(vocabulary);
  }

 private:
  Llama& model_;
  const GenerateOptions& options_;
  std::unique_ptr<KVCache> cache_;
  std::vector<float> host_;
};

void check(const Llama& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  const std::int64_t positions = model.config().max_position_embeddings;
  if (prompt.empty())
    throw ValueError("generate: the prompt has no tokens; give the model at least one to go on from");
  if (static_cast<std::int64_t>(prompt.size()) > positions) {
    throw ValueError(
        fmt::format("generate: the prompt has {} tokens, more than the model's {} positions; shorten it",
                    prompt.size(), positions));
  }
  if (options.max_tokens < 0) throw ValueError("generate: max_tokens must not be negative");
}

}  // namespace

std::vector<std::int32_t> stop_tokens(const ModelConfig& config) {
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : config.eos_token_ids)
    if (id >= 0 && id < config.vocab_size) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

Generation generate(Llama& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  check(model, prompt, options);
  Sampler sampler(options.sampling);
  model.set_training(false);

  const auto prompt_size = static_cast<std::int64_t>(prompt.size());
  // The last token drawn needs no position.
  const std::int64_t fed_at_most = prompt_size + std::max<std::int64_t>(options.max_tokens - 1, 0);
  const std::int64_t capacity = std::min(fed_at_most, model.config().max_position_embeddings);
  Feeder feeder(model, capacity, options);
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());

  Generation result;
  const Clock::time_point start = Clock::now();
  std::span<const float> logits = feeder.feed(prompt);
  result.prefill_tokens_per_second = static_cast<double>(prompt_size) / seconds_since(start);

  const Clock::time_point decode_start = Clock::now();
  std::int64_t fed = prompt_size;
  while (static_cast<std::int64_t>(result.ids.size()) < options.max_tokens) {
    const std::int32_t id = sampler.next(logits, all);
    all.push_back(id);
    result.ids.push_back(id);
    const bool go_on = !options.on_token || options.on_token(id);
    const bool stop =
        std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    if (stop || !go_on) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    if (fed == capacity) break;
    logits = feeder.feed(std::span(all).last(1));
    ++fed;
  }
  if (fed > prompt_size) {
    result.decode_tokens_per_second = static_cast<double>(fed - prompt_size) / seconds_since(decode_start);
  }
  return result;
}

}  // namespace caldera
