#include "training/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "ops/core/slicing.h"
#include "training/nn/precision.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
}

// Feeds tokens to the model and hands its logits to the host.
class Feeder {
 public:
  // At most `limit` tokens will be fed, the first `prompt_size` at once.
  Feeder(CausalLM& model, std::int64_t prompt_size, std::int64_t limit, const GenerateOptions& options)
      : model_(model),
        options_(options),
        limit_(limit),
        cache_(model.make_cache(capacity_for(prompt_size + kHeadroom))) {}

  // The logits after the last of `ids`.
  std::span<const float> feed(std::span<const std::int32_t> ids) {
    const std::int64_t needed = cache_->position() + static_cast<std::int64_t>(ids.size());
    if (needed > cache_->capacity()) cache_->grow(capacity_for(needed));
    LazyTensor hidden = model_.hidden_states(model_.make_ids(ids), cache_.get());
    // The head is the widest matrix: without a receiver only the last position goes through it.
    if (!options_.on_logits && ids.size() > 1)
      hidden = slice(hidden, 1, hidden.shape(1) - 1, hidden.shape(1));
    const LazyTensor logits = in_dtype(model_.logits(hidden), DType::f32);
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
  static constexpr std::int64_t kLeastCapacity = 64;
  static constexpr std::int64_t kHeadroom = 32;

  // Every token attends to the whole capacity, and a new capacity is a new plan: powers of two keep both few.
  std::int64_t capacity_for(std::int64_t positions) const {
    const auto wanted = static_cast<std::uint64_t>(std::max(positions, kLeastCapacity));
    return std::min(static_cast<std::int64_t>(std::bit_ceil(wanted)), limit_);
  }

  CausalLM& model_;
  const GenerateOptions& options_;
  std::int64_t limit_;
  std::unique_ptr<KVCache> cache_;
  std::vector<float> host_;
};

void check(const CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
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

Generation generate(CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  check(model, prompt, options);
  Sampler sampler(options.sampling);
  const EvaluationMode mode(model);

  const auto prompt_size = static_cast<std::int64_t>(prompt.size());
  // The last token drawn needs no position. Clamped before it is added: max_tokens may be any number.
  const std::int64_t room = model.config().max_position_embeddings - prompt_size;
  const std::int64_t limit = prompt_size + std::min(std::max<std::int64_t>(options.max_tokens - 1, 0), room);
  Feeder feeder(model, prompt_size, limit, options);
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
    if (fed == limit) break;
    logits = feeder.feed(std::span(all).last(1));
    ++fed;
  }
  if (fed > prompt_size) {
    result.decode_tokens_per_second = static_cast<double>(fed - prompt_size) / seconds_since(decode_start);
  }
  return result;
}

}  // namespace caldera
