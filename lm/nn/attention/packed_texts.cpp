#include "lm/nn/attention/packed_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/core/comparison.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

namespace caldera {

PackedTexts::PackedTexts(std::span<const std::vector<std::int64_t>> lengths, std::int64_t length,
                         Device device, Padding padding)
    : length_(length) {
  std::vector<std::int32_t> positions, texts;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    std::int64_t used = 0;
    for (const std::int64_t n : lengths[b]) {
      if (n < 1 || n > length - used)
        throw ValueError(
            fmt::format("PackedTexts: a text of {} tokens does not fit the {} that row {} has left", n,
                        length - used, b));
      used += n;
      longest_ = std::max(longest_, n);
    }
    const auto pad = [&] {
      positions.insert(positions.end(), static_cast<std::size_t>(length - used), 0);
      texts.insert(texts.end(), static_cast<std::size_t>(length - used), -1);
    };
    if (padding == Padding::before) pad();
    for (std::size_t t = 0; t < lengths[b].size(); ++t) {
      for (std::int64_t i = 0; i < lengths[b][t]; ++i) positions.push_back(static_cast<std::int32_t>(i));
      texts.insert(texts.end(), static_cast<std::size_t>(lengths[b][t]), static_cast<std::int32_t>(t));
    }
    if (padding == Padding::behind) pad();
  }
  const Shape shape{static_cast<std::int64_t>(lengths.size()), length};
  positions_ = LazyTensor::from_span(std::span<const std::int32_t>(positions), shape, device);
  texts_ = LazyTensor::from_span(std::span<const std::int32_t>(texts), shape, device);
  present_ = greater_equal(texts_, 0);
}

void PackedTexts::begin(std::int64_t batch, std::int64_t length) {
  if (texts_.shape() != Shape{batch, length})
    throw ShapeError(fmt::format("PackedTexts: ids ({}, {}) beside texts in {}", batch, length,
                                 texts_.shape().to_string()));
}

TokenPositions PackedTexts::positions() const {
  return {.length = length_, .first = 0, .rows = positions_, .reach = length_, .longest = longest_};
}

AttendedKeys PackedTexts::attended(std::int64_t /*layer*/, const LazyTensor& k, const LazyTensor& v,
                                   const AttentionForm& form) {
  const auto by_query = [&](const LazyTensor& x) { return reshape(x, Shape{x.shape(0), 1, length_, 1}); };
  const auto by_key = [&](const LazyTensor& x) { return reshape(x, Shape{x.shape(0), 1, 1, length_}); };
  LazyTensor mask = equal(by_query(texts_), by_key(texts_));
  const LazyTensor within = visible_by_position(by_query(positions_), by_key(positions_), form);
  if (within.defined()) mask = logical_and(mask, within);
  return {.keys = k, .values = v, .mask = std::move(mask)};
}

}  // namespace caldera
