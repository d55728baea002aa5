// The buffers of a cache's layers in one list: keys of all layers, then values of all.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

inline std::vector<LazyTensor> layers_of(const std::vector<LazyTensor>& keys,
                                         const std::vector<LazyTensor>& values) {
  std::vector<LazyTensor> all = keys;
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

/// Empties both lists, so that nobody else holds what is returned.
inline std::vector<LazyTensor> give_layers(std::vector<LazyTensor>& keys, std::vector<LazyTensor>& values) {
  std::vector<LazyTensor> all = std::exchange(keys, {});
  for (LazyTensor& buffer : std::exchange(values, {})) all.push_back(std::move(buffer));
  return all;
}

inline void set_layers(std::span<const LazyTensor> buffers, std::vector<LazyTensor>& keys,
                       std::vector<LazyTensor>& values) {
  const auto middle = buffers.begin() + static_cast<std::ptrdiff_t>(buffers.size() / 2);
  keys.assign(buffers.begin(), middle);
  values.assign(middle, buffers.end());
}

}  // namespace caldera
