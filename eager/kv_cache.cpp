#include "eager/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "eager/errors.h"
#include "ops/shape/joining.h"

namespace caldera::v1 {
namespace {

std::int64_t positions_of(const std::optional<std::pair<Tensor, Tensor>>& layer) {
  return layer ? layer->first.shape()[2] : 0;
}

}  // namespace

void KVCacheConfig::validate() const {
  const std::array<std::pair<const char*, std::int64_t>, 5> sizes{{{"num_layers", num_layers},
                                                                   {"num_kv_heads", num_kv_heads},
                                                                   {"head_dim", head_dim},
                                                                   {"max_seq_len", max_seq_len},
                                                                   {"batch_size", batch_size}}};
  for (const auto& [name, size] : sizes)
    if (size < 1) throw InferenceError::invalid_config(fmt::format("{} is {}, want it positive", name, size));
}

KVCache::KVCache(const KVCacheConfig& config) : config_(config) {
  config.validate();
  layers_.resize(static_cast<std::size_t>(config.num_layers));
}

const KVCache::Layer& KVCache::at(std::int64_t layer) const {
  if (layer < 0 || layer >= config_.num_layers)
    throw InferenceError::invalid_config(
        fmt::format("there is no layer {}; the cache has {}", layer, config_.num_layers));
  return layers_[static_cast<std::size_t>(layer)];
}

std::pair<Tensor, Tensor> KVCache::update(std::int64_t layer, const Tensor& keys, const Tensor& values) {
  const Layer& held = at(layer);
  for (const Tensor* tensor : {&keys, &values}) {
    const Shape& shape = tensor->shape();
    if (shape.rank() != 4 || shape[0] != config_.batch_size || shape[1] != config_.num_kv_heads ||
        shape[3] != config_.head_dim || shape[2] != keys.shape()[2])
      throw ShapeError(
          fmt::format("KVCache: {} is not (batch, kv_heads, positions, head_dim) = ({}, {}, n, {})",
                      shape.to_string(), config_.batch_size, config_.num_kv_heads, config_.head_dim));
  }
  const std::int64_t position = positions_of(held);
  if (position + keys.shape()[2] > config_.max_seq_len)
    throw InferenceError::cache_full(position, config_.max_seq_len);
  const auto behind = [&](const Tensor& old, const Tensor& fresh) {
    return Tensor(concat({old.lazy(), fresh.lazy()}, 2).detach());
  };
  std::pair<Tensor, Tensor> whole =
      held ? std::pair(behind(held->first, keys), behind(held->second, values)) : std::pair(keys, values);
  layers_[static_cast<std::size_t>(layer)] = whole;
  return whole;
}

std::optional<std::pair<Tensor, Tensor>> KVCache::get(std::int64_t layer) const { return at(layer); }

std::int64_t KVCache::position() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Layer& layer : layers_) least = std::min(least, positions_of(layer));
  return least;
}

void KVCache::clear() { std::ranges::fill(layers_, std::nullopt); }

bool KVCache::is_empty() const {
  return std::ranges::none_of(layers_, [](const Layer& layer) { return layer.has_value(); });
}

}  // namespace caldera::v1
