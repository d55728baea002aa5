#include "lm/generate/feeder.h"

#include <algorithm>
#include <bit>

#include "engine/runtime/runtime.h"
#include "lm/generate/sampling/sampler.h"
#include "lm/nn/precision.h"
#include "ops/core/creation.h"
#include "ops/shape/dynamic_slicing.h"

namespace caldera {
namespace {

// A prompt needs no other plans than those of these lengths.
constexpr std::int64_t kLargePiece = 512;
constexpr std::int64_t kPiece = 64;
constexpr std::int64_t kSmallPiece = 8;

std::int64_t piece_for(std::int64_t tokens) {
  if (tokens >= kLargePiece) return kLargePiece;
  return tokens > 2 * kSmallPiece ? kPiece : kSmallPiece;
}

constexpr std::int64_t kLeastCapacity = 1024;

// A new capacity is a new plan: powers of two keep them few. What is not written yet costs memory alone.
std::int64_t capacity_for(const ModelConfig& config, std::int64_t positions) {
  const auto wanted = static_cast<std::uint64_t>(std::max(positions, kLeastCapacity));
  return std::min(static_cast<std::int64_t>(std::bit_ceil(wanted)), config.max_positions());
}

}  // namespace

std::int64_t cache_capacity(const ModelConfig& config, std::int64_t prompt_size) {
  return capacity_for(config, prompt_size + kCacheHeadroom);
}

Feeder::Feeder(CausalLM& model, std::int64_t prompt_size, bool choose, LogitsReceiver on_logits)
    : model_(model),
      choose_(choose),
      on_logits_(std::move(on_logits)),
      cache_(model.make_cache(cache_capacity(model.config(), prompt_size))),
      step_(model, choose),
      frequencies_(model.config()) {}

void Feeder::feed_prompt(std::span<const std::int32_t> ids, std::int64_t from) {
  if (frequencies_.differ(text_length_, static_cast<std::int64_t>(ids.size()))) from = 0;
  feed_pieces(ids, from, from);
}

/// A receiver is told the logits of ids[told] and later ones.
void Feeder::feed_pieces(std::span<const std::int32_t> ids, std::int64_t from, std::int64_t told) {
  const auto count = static_cast<std::int64_t>(ids.size());
  truncate(from);
  note(ids.subspan(static_cast<std::size_t>(from)));
  text_length_ = count;
  cache_->set_text_length(count);
  make_room(count - cache_->position());
  for (std::int64_t fed = from; fed < count;) {
    const std::int64_t length = std::min(piece_for(count - fed), cache_->capacity());
    const std::int64_t end = std::min(fed + length, count);
    const std::int64_t begin = std::max<std::int64_t>(end - length, 0);
    const auto piece = ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    std::vector<std::int32_t> filled(piece.begin(), piece.end());
    filled.resize(static_cast<std::size_t>(length), piece.back());
    cache_->truncate(begin);
    feed(model_.make_ids(filled), std::clamp(told, fed, end) - begin, end - begin);
    cache_->truncate(end);
    fed = end;
  }
}

void Feeder::truncate(std::int64_t positions) {
  cache_->truncate(positions);
  const auto kept = static_cast<std::size_t>(positions);
  if (!frequencies_.switches_behind() || kept >= ids_.size() + unread_.size()) return;
  unread_.resize(kept - std::min(kept, ids_.size()));
  ids_.resize(std::min(kept, ids_.size()));
}

void Feeder::note(std::span<const std::int32_t> ids) {
  if (!frequencies_.switches_behind()) return;
  for (const LazyTensor& id : unread_) ids_.push_back(id.item<std::int32_t>());
  unread_.clear();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

/// Whether with the next token the text is of a length that what is cached was not computed for.
bool Feeder::outgrows() const { return frequencies_.differ(text_length_, cache_->position() + 1); }

void Feeder::feed_anew(std::int32_t id) {
  note(std::span(&id, 1));
  const std::vector<std::int32_t> all = std::move(ids_);
  ids_.clear();
  feed_pieces(all, 0, static_cast<std::int64_t>(all.size()) - 1);
}

void Feeder::feed_token(std::int32_t id) {
  if (outgrows()) return feed_anew(id);
  note(std::span(&id, 1));
  feed_one(model_.make_ids(std::span(&id, 1)));
}

void Feeder::feed_choice(const LazyTensor& id) {
  if (outgrows()) return feed_anew(id.item<std::int32_t>());
  if (frequencies_.switches_behind()) unread_.push_back(id);
  feed_one(id);
}

bool Feeder::make_room(std::int64_t tokens) {
  const std::int64_t needed = cache_->position() + tokens;
  if (needed > model_.config().max_positions()) return false;
  if (needed > cache_->capacity()) cache_->grow(capacity_for(model_.config(), needed));
  return true;
}

void Feeder::feed_one(const LazyTensor& id) {
  make_room(1);
  cache_->set_text_length({});
  // On a GPU a next step may be there before this one is done: its buffers cannot be given away yet.
  if (choose_ && model_.device() != Device::cpu()) return feed(id, 0, 1);
  take(step_(*cache_, id), 0, 1);
}

void Feeder::feed_drafts(std::span<const std::int32_t> ids, std::int64_t length) {
  std::vector<std::int32_t> filled(ids.begin(), ids.end());
  filled.resize(static_cast<std::size_t>(length), ids.back());
  note(ids);
  cache_->set_text_length(cache_->position() + 1);  // each as if it were fed alone
  const std::int64_t end = cache_->position() + static_cast<std::int64_t>(ids.size());
  const LazyTensor logits = in_dtype(model_.forward(model_.make_ids(filled), cache_.get()), DType::f32);
  const LazyTensor result = choose_ ? stop_gradient(most_likely(logits)) : logits;
  std::vector<LazyTensor> outputs = cache_->state();
  outputs.push_back(result);
  eval(outputs);
  cache_->truncate(end);
  if (choose_) {
    chosen_ = result.to_vector<std::int32_t>();
    return;
  }
  host_ = logits.to_vector<float>();
  width_ = static_cast<std::size_t>(logits.shape().back());
  last_ = row(ids.size() - 1);
}

// Feeds ids (1, n) at the cache's position. Rows [first, end) of the logits count, the last of them for what
// is chosen next.
void Feeder::feed(const LazyTensor& ids, std::int64_t first, std::int64_t end) {
  LazyTensor hidden = model_.hidden_states(ids, cache_.get());
  // The head is the widest matrix: without a receiver only the last position goes through it.
  const bool all = static_cast<bool>(on_logits_);
  if (!all && ids.numel() > 1) hidden = dynamic_slice(hidden, {0, end - 1, 0}, {1, 1, hidden.shape(2)});
  const LazyTensor result = logits_or_choice(model_, hidden, choose_);
  std::vector<LazyTensor> outputs = cache_->state();
  outputs.push_back(result);
  eval_soon(outputs, model_.device());
  take(result, first, end);
}

/// Takes what follows what was fed: the choice, or logits, of which those of rows [first, end) count.
void Feeder::take(const LazyTensor& result, std::int64_t first, std::int64_t end) {
  if (choose_) {
    choice_ = result;
    return;
  }
  const bool all = static_cast<bool>(on_logits_);
  host_ = result.to_vector<float>();
  width_ = static_cast<std::size_t>(result.shape().back());
  for (std::int64_t i = first; all && i < end; ++i) on_logits_(row(static_cast<std::size_t>(i)));
  last_ = row(static_cast<std::size_t>(all ? end - 1 : 0));
}

}  // namespace caldera
