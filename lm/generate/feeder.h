// Feeder: feeds one text to a model, with a cache of what was fed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lm/generate/text_frequencies.h"
#include "lm/generate/token_step.h"
#include "lm/models/causal_lm.h"
#include "lm/nn/caches/kv_cache.h"

namespace caldera {

/// Feeds tokens to the model, and hands its logits to the host or chooses the next token where they are.
class Feeder {
 public:
  using LogitsReceiver = std::function<void(std::span<const float>)>;

  /// With `choose`, the most likely token is chosen on the device, and logits stay there; not together with a
  /// receiver, which gets the logits of every position of feed_prompt, feed_token and feed_choice.
  Feeder(CausalLM& model, std::int64_t prompt_size, bool choose, LogitsReceiver on_logits = {});

  /// Feeds ids[from] and later ones, those before being fed; what follows them is logits() or choice(). They
  /// are fed in pieces of three lengths, so that prompts of all lengths share their plans; the last piece
  /// goes back over tokens that were fed before, or, where there are not enough of those, is filled up with
  /// tokens that nothing reads. All of them are rotated as the whole text asks for, as if it were fed at
  /// once.
  void feed_prompt(std::span<const std::int32_t> ids, std::int64_t from = 0);
  /// Feeds one more token.
  void feed_token(std::int32_t id);
  /// Feeds a choice(), which need not be computed yet.
  void feed_choice(const LazyTensor& id);
  /// Feeds tokens of which some may be forgotten again, filled up to `length`: row(i), or chosen(i) with
  /// `choose`, is what follows ids[i].
  /// Throws ValueError where has_room(length) is false. Not more than most_drafts() and one.
  void feed_drafts(std::span<const std::int32_t> ids, std::int64_t length);
  /// Forgets what was fed after the first `positions` tokens.
  void truncate(std::int64_t positions);

  std::int64_t position() const { return cache_->position(); }
  /// The logits after the last token that was fed; where they are on the host.
  std::span<const float> logits() const { return last_; }
  /// Returns the logits after token i of feed_drafts().
  std::span<const float> row(std::size_t i) const { return std::span(host_).subspan(i * width_, width_); }
  /// The most likely token there, as most_likely() gives it, with `choose`.
  std::int32_t chosen(std::size_t i) const { return chosen_[i]; }
  /// The most likely token after the last one that was fed, (1, 1), with `choose`; not after feed_drafts().
  LazyTensor choice() const { return choice_; }
  std::size_t vocabulary() const { return static_cast<std::size_t>(model_.config().vocab_size); }
  bool chooses() const { return choose_; }
  /// Whether so many more tokens fit without a larger cache.
  bool has_room(std::int64_t tokens = 1) const { return cache_->position() + tokens <= cache_->capacity(); }
  /// Makes room for so many more tokens, if the model has as many positions. Says whether it has.
  bool make_room(std::int64_t tokens);
  /// Returns how many tokens behind the next one may be fed together with it.
  std::int64_t most_drafts() const { return frequencies_.most_drafts(cache_->position()); }

 private:
  void feed_one(const LazyTensor& id);
  void feed_pieces(std::span<const std::int32_t> ids, std::int64_t from, std::int64_t told);
  void note(std::span<const std::int32_t> ids);
  bool outgrows() const;
  void feed_anew(std::int32_t id);
  void feed(const LazyTensor& ids, std::int64_t first, std::int64_t end);
  void take(const LazyTensor& result, std::int64_t first, std::int64_t end);

  CausalLM& model_;
  bool choose_;
  LogitsReceiver on_logits_;
  std::unique_ptr<KVCache> cache_;
  TokenStep step_;
  TextFrequencies frequencies_;
  std::int64_t text_length_ = 0;  // that the keys in the cache were computed for
  // Holds what was fed, and choices behind that, where the sequence may have to be computed again.
  std::vector<std::int32_t> ids_;
  std::vector<LazyTensor> unread_;
  std::vector<float> host_;
  std::vector<std::int32_t> chosen_;  // on the host too
  std::size_t width_ = 0;
  std::span<const float> last_;  // of host_
  LazyTensor choice_;
};

/// Positions of a new cache beyond those of the prompt.
inline constexpr std::int64_t kCacheHeadroom = 32;

/// Positions that the cache of generate() has room for until more are needed: those of the prompt and
/// kCacheHeadroom, rounded up to a power of two of at least 1024, so that prompts of many lengths share their
/// plans; never more than the model has.
std::int64_t cache_capacity(const ModelConfig& config, std::int64_t prompt_size);

}  // namespace caldera
