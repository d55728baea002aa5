#include "lm/nn/caches/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

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
  // Before the first query of the call are window - 1 keys that it looks at.
  const std::int64_t span = form.window ? std::min(*form.window - 1 + length_, capacity()) : capacity();
  const std::int64_t first = std::max<std::int64_t>(position_ + length_ - span, 0);
  if (span < capacity()) {
    const Shape& shape = keys.shape();
    const auto part = [&](const LazyTensor& buffer) {
      return dynamic_slice(buffer, {0, 0, first, 0}, {shape[0], shape[1], span, shape[3]});
    };
    keys = part(keys);
    values = part(values);
  }
  if (form_.is_blocks()) {
    const Shape heads{keys.shape(0) * keys.shape(1), keys.shape(2), form_.width()};
    const Shape numbers{keys.shape(0), keys.shape(1), keys.shape(2), form_.head_dim()};
    for (LazyTensor* x : {&keys, &values}) *x = reshape(form_.numbers(reshape(*x, heads)), numbers);
  }
  // Also where nothing was written yet: then a call has the same plan at every position. What is behind the
  // call's own positions is masked, and left out.
  return {.keys = std::move(keys), .values = std::move(values), .mask = {}, .offset = position_ - first};
}

LazyTensor KVCache::written(const LazyTensor& buffer, const LazyTensor& update) const {
  Shape expected = buffer.shape();
  expected[2] = length_;
  expected[3] = form_.head_dim();
  if (update.shape() != expected)
    throw ShapeError(fmt::format("KVCache: {} does not fit, the call in progress writes {}",
                                 update.shape().to_string(), expected.to_string()));
  return dynamic_update_slice(buffer, form_.kept(update), {0, 0, position_, 0});
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

std::vector<LazyTensor> KVCache::state() const {
  std::vector<LazyTensor> all = keys_;
  all.insert(all.end(), values_.begin(), values_.end());
  return all;
}

void KVCache::truncate(std::int64_t position) {
  if (position < 0 || position > position_)
    throw ValueError(
        fmt::format("KVCache: cannot go back to position {}, {} are written", position, position_));
  // What is beyond is overwritten before a mask admits it.
  position_ = position;
}

}  // namespace caldera
