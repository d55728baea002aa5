#include "training/nn/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/core/cast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/shape/joining.h"
#include "training/nn/precision.h"

namespace caldera {
namespace {

constexpr std::int64_t kSmallestTable = 256;

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions, double theta,
                                 Device device)
    : max_positions_(max_positions), device_(device) {
  if (head_dim <= 0 || head_dim % 2 != 0)
    throw ValueError(fmt::format("RotaryEmbedding: head_dim {} is not a positive even number", head_dim));
  if (max_positions <= 0 || max_positions > std::numeric_limits<std::int32_t>::max() || !(theta > 0))
    throw ValueError(fmt::format("RotaryEmbedding: bad max_positions {} or theta {}", max_positions, theta));
  for (std::int64_t i = 0; i < head_dim / 2; ++i)
    inverse_frequencies_.push_back(
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
}

void RotaryEmbedding::reserve(std::int64_t positions) {
  if (positions > max_positions_)
    throw ValueError(
        fmt::format("position {} is beyond the {} positions of the model (max_position_embeddings); "
                    "use shorter sequences",
                    positions - 1, max_positions_));
  if (cos_.defined() && positions <= cos_.shape(0)) return;
  const auto wanted = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(positions, kSmallestTable))));
  const std::int64_t rows = std::min(wanted, max_positions_);
  const std::size_t half = inverse_frequencies_.size();
  std::vector<float> cos(static_cast<std::size_t>(rows) * 2 * half);
  std::vector<float> sin(cos.size());
  for (std::size_t p = 0; p < static_cast<std::size_t>(rows); ++p) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * inverse_frequencies_[i];
      const std::size_t at = p * 2 * half + i;
      cos[at] = cos[at + half] = static_cast<float>(std::cos(angle));
      sin[at] = sin[at + half] = static_cast<float>(std::sin(angle));
    }
  }
  const Shape shape{rows, static_cast<std::int64_t>(2 * half)};
  cos_ = LazyTensor::from_vector(cos, shape, device_);
  sin_ = LazyTensor::from_vector(sin, shape, device_);
}

RotaryAngles RotaryEmbedding::angles(std::int64_t length, std::int64_t offset) {
  reserve(offset + length);
  // Where a slice of stored data starts is an argument of the plan.
  return {slice(cos_, 0, offset, offset + length), slice(sin_, 0, offset, offset + length)};
}

RotaryAngles RotaryEmbedding::angles(const TokenPositions& positions) {
  // All of it now, or the plan would change with the tables in the middle of a text.
  reserve(positions.reach);
  if (!positions.rows.defined()) return angles(positions.length, positions.first);
  const LazyTensor rows = expand_dims(positions.rows, 1);
  return {take(cos_, rows), take(sin_, rows)};
}

LazyTensor apply_rotary(const LazyTensor& x, const RotaryAngles& angles) {
  // The angles are f32: 16 bits do not hold the sine of a late position.
  if (is_16bit_float(x.dtype())) return astype(apply_rotary(astype(x, DType::f32), angles), x.dtype());
  const std::int64_t half = x.shape(-1) / 2;
  // x * cos + concatenate(-x2, x1) * sin, half by half.
  const auto first = [&](const LazyTensor& t) { return slice(t, -1, 0, half); };
  const auto second = [&](const LazyTensor& t) { return slice(t, -1, half, {}); };
  const LazyTensor x1 = first(x), x2 = second(x);
  return concatenate(
      {x1 * first(angles.cos) - x2 * first(angles.sin), x2 * second(angles.cos) + x1 * second(angles.sin)},
      -1);
}

}  // namespace caldera
