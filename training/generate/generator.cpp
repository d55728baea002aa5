#include "training/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "ops/core/creation.h"
#include "ops/core/views.h"
#include "ops/shape/dynamic_slicing.h"
#include "training/nn/precision.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
}

constexpr std::int64_t kLeastCapacity = 1024;

// A new capacity is a new plan: powers of two keep them few. What is not written yet costs memory alone.
std::int64_t capacity_for(const ModelConfig& config, std::int64_t positions) {
  const auto wanted = static_cast<std::uint64_t>(std::max(positions, kLeastCapacity));
  return std::min(static_cast<std::int64_t>(std::bit_ceil(wanted)), config.max_position_embeddings);
}

// Feeds tokens to the model, and hands its logits to the host or chooses the next token where they are.
class Feeder {
 public:
  Feeder(CausalLM& model, std::int64_t prompt_size, const GenerateOptions& options)
      : model_(model),
        options_(options),
        cache_(model.make_cache(cache_capacity(model.config(), prompt_size))) {}

  // Feeds the prompt; what follows it is logits() or choice(). It is fed in pieces of three lengths, so that
  // prompts of all lengths share their plans; the last piece goes back over tokens that were fed before, or,
  // where there are not enough of those, is filled up with tokens that nothing reads.
  void feed_prompt(std::span<const std::int32_t> ids) {
    const auto count = static_cast<std::int64_t>(ids.size());
    for (std::int64_t fed = 0; fed < count;) {
      const std::int64_t length = std::min(piece_for(count - fed), cache_->capacity());
      const std::int64_t end = std::min(fed + length, count);
      const std::int64_t begin = std::max<std::int64_t>(end - length, 0);
      const auto piece = ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      std::vector<std::int32_t> filled(piece.begin(), piece.end());
      filled.resize(static_cast<std::size_t>(length), piece.back());
      cache_->truncate(begin);
      feed(model_.make_ids(filled), fed - begin, end - begin);
      cache_->truncate(end);
      fed = end;
    }
  }
  // Feeds one more token.
  void feed_token(std::int32_t id) { feed_one(model_.make_ids(std::span(&id, 1))); }
  // The same of a choice(), which need not be computed yet.
  void feed_choice(const LazyTensor& id) { feed_one(id); }

  // The logits after the last token that was fed; not of greedy sampling without a receiver.
  std::span<const float> logits() const { return last_; }
  // The most likely token after the last one that was fed, (1, 1); of greedy sampling without a receiver.
  LazyTensor choice() const { return choice_; }
  bool chooses() const { return options_.sampling.is_greedy() && !options_.on_logits; }
  // Whether one more token fits without a larger cache.
  bool has_room() const { return cache_->position() < cache_->capacity(); }

 private:
  // A prompt needs no other plans than those of these lengths.
  static constexpr std::int64_t kLargePiece = 512;
  static constexpr std::int64_t kPiece = 64;
  static constexpr std::int64_t kSmallPiece = 8;
  static std::int64_t piece_for(std::int64_t tokens) {
    if (tokens >= kLargePiece) return kLargePiece;
    return tokens > 2 * kSmallPiece ? kPiece : kSmallPiece;
  }

  void feed_one(const LazyTensor& id) {
    const std::int64_t needed = cache_->position() + 1;
    if (needed > cache_->capacity()) cache_->grow(capacity_for(model_.config(), needed));
    feed(id, 0, 1);
  }

  // Feeds ids (1, n) at the cache's position. Rows [first, end) of the logits count, the last of them for
  // what is chosen next.
  void feed(const LazyTensor& ids, std::int64_t first, std::int64_t end) {
    LazyTensor hidden = model_.hidden_states(ids, cache_.get());
    // The head is the widest matrix: without a receiver only the last position goes through it.
    const bool all = static_cast<bool>(options_.on_logits);
    if (!all && ids.numel() > 1) hidden = dynamic_slice(hidden, {0, end - 1, 0}, {1, 1, hidden.shape(2)});
    const LazyTensor logits = in_dtype(model_.logits(hidden), DType::f32);
    std::vector<LazyTensor> outputs = cache_->state();
    if (chooses()) {
      const LazyTensor id = stop_gradient(reshape(most_likely(logits), Shape{1, 1}));
      outputs.push_back(id);
      // A processor computes on the caller's thread, which small models are faster for.
      if (model_.device() == Device::cpu())
        eval(outputs);
      else
        eval_async(outputs);
      choice_ = id;
      return;
    }
    outputs.push_back(logits);
    eval(outputs);
    host_ = logits.to_vector<float>();
    const auto vocabulary = static_cast<std::size_t>(logits.shape().back());
    const auto row = [&](std::int64_t i) {
      return std::span<const float>(host_).subspan(static_cast<std::size_t>(i) * vocabulary, vocabulary);
    };
    for (std::int64_t i = first; all && i < end; ++i) options_.on_logits(row(i));
    last_ = row(all ? end - 1 : 0);
  }

  CausalLM& model_;
  const GenerateOptions& options_;
  std::unique_ptr<KVCache> cache_;
  std::vector<float> host_;
  std::span<const float> last_;  // of host_
  LazyTensor choice_;
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

std::int64_t cache_capacity(const ModelConfig& config, std::int64_t prompt_size) {
  return capacity_for(config, prompt_size + kCacheHeadroom);
}

bool goes_ahead(const CausalLM& model, const GenerateOptions& options) {
  return options.sampling.is_greedy() && !options.on_logits && model.device() != Device::cpu();
}

Generation generate(CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  check(model, prompt, options);
  Sampler sampler(options.sampling);
  const EvaluationMode mode(model);

  const auto prompt_size = static_cast<std::int64_t>(prompt.size());
  // The last token drawn needs no position. Clamped before it is added: max_tokens may be any number.
  const std::int64_t room = model.config().max_position_embeddings - prompt_size;
  const std::int64_t limit = prompt_size + std::min(std::max<std::int64_t>(options.max_tokens - 1, 0), room);
  Feeder feeder(model, prompt_size, options);
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());

  Generation result;
  const Clock::time_point start = Clock::now();
  feeder.feed_prompt(prompt);
  LazyTensor next = feeder.choice();
  if (next.defined()) next.eval();
  result.prefill_tokens_per_second = static_cast<double>(prompt_size) / seconds_since(start);

  const Clock::time_point decode_start = Clock::now();
  std::int64_t fed = prompt_size;
  while (static_cast<std::int64_t>(result.ids.size()) < options.max_tokens) {
    // A device computes on while the host looks at what came before: it gets the next token at once. What is
    // computed after the last token is for nothing, so a processor, which is no faster for it, does not.
    // A larger cache is not made for a token that may not be needed.
    const bool ahead = feeder.has_room() && fed < limit && goes_ahead(model, options);
    if (ahead) feeder.feed_choice(next);
    const std::int32_t id =
        next.defined() ? checked_choice(next.item<std::int32_t>()) : sampler.next(feeder.logits(), all);
    all.push_back(id);
    result.ids.push_back(id);
    const bool go_on = !options.on_token || options.on_token(id);
    const bool stop =
        std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    if (stop || !go_on) {
      result.finish_reason = FinishReason::stop;
      if (ahead) feeder.choice().eval();  // nothing runs on when this returns
      break;
    }
    if (fed == limit) break;
    if (!ahead) feeder.feed_token(id);
    next = feeder.choice();
    ++fed;
  }
  if (fed > prompt_size) {
    result.decode_tokens_per_second = static_cast<double>(fed - prompt_size) / seconds_since(decode_start);
  }
  return result;
}

}  // namespace caldera
