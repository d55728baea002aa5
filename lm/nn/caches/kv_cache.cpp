#include "lm/nn/caches/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lm/nn/caches/layer_buffers.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/dynamic_slicing.h"

namespace caldera {

KVCache::KVCache(std::int64_t layers, std::int64_t batch, std::int64_t kv_heads, std::int64_t capacity,
                 const CacheForm& form, Device device)
    : form_(form) {
  if (layers < 1 || batch < 1 || kv_heads < 1 || capacity < 1 || form.head_dim() < 1)
    throw ValueError(fmt::format(
        "KVCache: layers {}, batch {}, kv_heads {}, capacity {}, head_dim {}: all must be positive", layers,
        batch, kv_heads, capacity, form.head_dim()));
  const Shape shape{batch, kv_heads, capacity, form.width()};
  for (std::int64_t i = 0; i < layers; ++i) {
    keys_.push_back(LazyTensor::zeros(shape, form.dtype(), device));
    values_.push_back(LazyTensor::zeros(shape, form.dtype(), device));
  }
  // Leaves from the start, so that the first decoding step has the plan of all later ones.
  eval(state());
}

void KVCache::grow(std::int64_t capacity) {
  const std::int64_t more = capacity - this->capacity();
  if (more < 0)
    throw ValueError(
        fmt::format("KVCache: cannot shrink from a capacity of {} to {}", this->capacity(), capacity));
  if (more == 0) return;
  const auto grown = [&](const LazyTensor& buffer) { return pad(buffer, {0, 0, 0, 0}, {0, 0, more, 0}); };
  for (LazyTensor& buffer : keys_) buffer = grown(buffer);
  for (LazyTensor& buffer : values_) buffer = grown(buffer);
  eval(state());
}

void KVCache::begin(std::int64_t length) {
  if (length < 1 || position_ + length > capacity())
    throw ValueError(
        fmt::format("the KV cache is full: {} positions are written, {} more do not fit its capacity of {}",
                    position_, length, capacity()));
  length_ = length;
}

void KVCache::begin(std::int64_t batch, std::int64_t length) {
  if (batch != this->batch())
    throw ShapeError(fmt::format("KVCache: a call over {} texts, the cache is of {}", batch, this->batch()));
  begin(length);
}

TokenPositions KVCache::positions() const {
  if (step_) {
    // As data, which every model takes: a number in their graphs would be the trace's own.
    const LazyTensor rows = zeros(Shape{batch(), 1}, DType::i32, keys_.front().device()) + step_->position;
    return {.length = 1, .first = 0, .rows = rows, .reach = capacity(), .longest = 0};
  }
  return {.length = length_,
          .first = position_,
          .rows = {},
          .reach = capacity(),
          .longest = text_length_.value_or(position_ + length_)};
}

AttendedKeys KVCache::attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                               const AttentionForm& form) {
  write(layer, k, v);
  const auto i = static_cast<std::size_t>(layer);
  LazyTensor keys = keys_[i], values = values_[i];
  if (step_) return attended_in_step(std::move(keys), std::move(values), form.window);
  // Before the first query of the call are window - 1 keys that it looks at.
  const std::int64_t span = form.window ? std::min(*form.window - 1 + length_, capacity()) : capacity();
  const std::int64_t first = std::max<std::int64_t>(position_ + length_ - span, 0);
  if (span < capacity()) {
    keys = part(keys, span, LazyTensor(first));
    values = part(values, span, LazyTensor(first));
  }
  // Also where nothing was written yet: then a call has the same plan at every position. What is behind the
  // call's own positions is masked, and left out.
  return {.keys = numbers_of(keys), .values = numbers_of(values), .mask = {}, .offset = position_ - first};
}

/// The keys that the one query of a step looks at end with its own: no other is beyond its window.
AttendedKeys KVCache::attended_in_step(LazyTensor keys, LazyTensor values,
                                       std::optional<std::int64_t> window) const {
  LazyTensor last = step_->position;
  std::int64_t span = capacity();
  if (window && *window < span) {
    const auto found =
        std::ranges::find_if(step_->windows, [&](const auto& known) { return known.size == *window; });
    if (found == step_->windows.end())
      throw ValueError(fmt::format("KVCache: a traced call was not told of a window of {}", *window));
    span = *window;
    last = found->last;
    keys = part(keys, span, found->first);
    values = part(values, span, found->first);
  }
  const LazyTensor visible = less_equal(arange(span, DType::i32, keys.device()), last);
  return {
      .keys = numbers_of(keys), .values = numbers_of(values), .mask = reshape(visible, Shape{1, 1, 1, span})};
}

LazyTensor KVCache::part(const LazyTensor& buffer, std::int64_t span, const LazyTensor& first) const {
  const Shape& shape = buffer.shape();
  return dynamic_slice(buffer, std::vector<LazyTensor>{0, 0, first, 0}, {shape[0], shape[1], span, shape[3]});
}

/// What is kept in blocks, as numbers.
LazyTensor KVCache::numbers_of(const LazyTensor& kept) const {
  if (!form_.is_blocks()) return kept;
  const Shape heads{kept.shape(0) * kept.shape(1), kept.shape(2), form_.width()};
  return reshape(form_.numbers(reshape(kept, heads)),
                 Shape{kept.shape(0), kept.shape(1), kept.shape(2), form_.head_dim()});
}

LazyTensor KVCache::written(const LazyTensor& buffer, const LazyTensor& update) const {
  Shape expected = buffer.shape();
  expected[2] = length_;
  expected[3] = form_.head_dim();
  if (update.shape() != expected)
    throw ShapeError(fmt::format("KVCache: {} does not fit, the call in progress writes {}",
                                 update.shape().to_string(), expected.to_string()));
  const LazyTensor position = step_ ? step_->position : LazyTensor(position_);
  return dynamic_update_slice(buffer, form_.kept(update), std::vector<LazyTensor>{0, 0, position, 0});
}

void KVCache::write(std::int64_t layer, const LazyTensor& k, const LazyTensor& v) {
  const auto i = static_cast<std::size_t>(layer);
  LazyTensor keys = written(keys_.at(i), k);
  values_[i] = written(values_[i], v);
  keys_[i] = std::move(keys);
}

void KVCache::finish() {
  position_ += length_;
  length_ = 0;
}

std::vector<LazyTensor> KVCache::state() const { return layers_of(keys_, values_); }

std::vector<LazyTensor> KVCache::step_numbers(std::span<const std::int64_t> windows) const {
  std::vector<LazyTensor> numbers{LazyTensor(position_)};
  for (const std::int64_t window : windows) {
    const std::int64_t first = std::max<std::int64_t>(position_ + 1 - std::min(window, capacity()), 0);
    numbers.emplace_back(first);
    numbers.emplace_back(position_ - first);
  }
  return numbers;
}

KVCache KVCache::traced(std::span<const std::int64_t> windows, std::span<const LazyTensor> numbers,
                        std::span<const LazyTensor> buffers) const {
  KVCache cache(form_);
  cache.set_buffers(buffers);
  cache.step_.emplace(StepNumbers{numbers[0], {}});
  for (std::size_t i = 0; i < windows.size(); ++i)
    cache.step_->windows.push_back({windows[i], numbers[2 * i + 1], numbers[2 * i + 2]});
  return cache;
}

std::vector<LazyTensor> KVCache::give_buffers() { return give_layers(keys_, values_); }

void KVCache::set_buffers(std::span<const LazyTensor> buffers) { set_layers(buffers, keys_, values_); }

void KVCache::truncate(std::int64_t position) {
  if (position < 0 || position > position_)
    throw ValueError(
        fmt::format("KVCache: cannot go back to position {}, {} are written", position, position_));
  // What is beyond is overwritten before a mask admits it.
  position_ = position;
}

}  // namespace caldera
