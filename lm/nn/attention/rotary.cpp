#include "lm/nn/attention/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "lm/nn/attention/rope_frequencies.h"
#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

constexpr std::int64_t kSmallestTable = 256;

}  // namespace

RotaryEmbedding::RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions, double theta,
                                 Device device)
    : RotaryEmbedding(head_dim, max_positions, RopeParameters{theta}, device) {}

RotaryEmbedding::RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions,
                                 const RopeParameters& rope, Device device)
    : rope_(rope),
      head_dim_(head_dim),
      declared_positions_(max_positions),
      max_positions_(rope.scaling.usable_positions(max_positions)),
      device_(device) {
  if (head_dim <= 0 || head_dim % 2 != 0)
    throw ValueError(fmt::format("RotaryEmbedding: head_dim {} is not a positive even number", head_dim));
  if (max_positions <= 0 || max_positions > std::numeric_limits<std::int32_t>::max() || !(rope.theta > 0))
    throw ValueError(
        fmt::format("RotaryEmbedding: bad max_positions {} or theta {}", max_positions, rope.theta));
  for (const std::int64_t length : {std::int64_t{1}, max_positions_})  // what does not fit, is said now
    rope_frequencies(rope_, head_dim_, declared_positions_, length);
}

RotaryEmbedding::Tables RotaryEmbedding::make_tables(std::int64_t rows, std::int64_t text_length) const {
  const auto key_of = [&](std::int64_t n) { return frequency_key(rope_.scaling, declared_positions_, n); };
  std::int64_t key = key_of(text_length);
  RopeFrequencies frequencies = rope_frequencies(rope_, head_dim_, declared_positions_, text_length);
  const std::size_t half = frequencies.inverse.size();
  std::vector<float> cos(static_cast<std::size_t>(rows) * 2 * half);
  std::vector<float> sin(cos.size());
  for (std::size_t p = 0; p < static_cast<std::size_t>(rows); ++p) {
    // A token behind the sequence was rotated when it was the last one.
    const std::int64_t length = std::max(text_length, static_cast<std::int64_t>(p) + 1);
    if (key_of(length) != key) {
      key = key_of(length);
      frequencies = rope_frequencies(rope_, head_dim_, declared_positions_, length);
    }
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequencies.inverse[i];
      const std::size_t at = p * 2 * half + i;
      cos[at] = cos[at + half] = static_cast<float>(std::cos(angle) * frequencies.attention_scale);
      sin[at] = sin[at + half] = static_cast<float>(std::sin(angle) * frequencies.attention_scale);
    }
  }
  const Shape shape{rows, static_cast<std::int64_t>(2 * half)};
  Tables tables{
      LazyTensor::from_vector(cos, shape, device_), LazyTensor::from_vector(sin, shape, device_), {}};
  if (const double beta = rope_.scaling.llama_4_scaling_beta; beta != 0) {
    const std::int64_t original = rope_.scaling.original_positions(declared_positions_);
    std::vector<float> scale;
    for (std::int64_t p = 0; p < rows; ++p) {
      const std::int64_t originals = p / original;  // whole ones before the position
      scale.push_back(static_cast<float>(1 + beta * std::log1p(static_cast<double>(originals))));
    }
    tables.query_scale = LazyTensor::from_vector(scale, Shape{rows, 1}, device_);
  }
  return tables;
}

RotaryEmbedding::Tables& RotaryEmbedding::tables(std::int64_t positions, std::int64_t text_length) {
  if (positions > max_positions_)
    throw ValueError(
        fmt::format("position {} is beyond the {} positions of the model (max_position_embeddings); "
                    "use shorter sequences",
                    positions - 1, max_positions_));
  const std::int64_t key = frequency_key(rope_.scaling, declared_positions_, text_length);
  if (!tables_.contains(key) && key != 0)
    std::erase_if(tables_, [](const auto& entry) { return entry.first != 0; });
  Tables& kept = tables_[key];
  if (kept.cos.defined() && positions <= kept.cos.shape(0)) return kept;
  const auto wanted = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(positions, kSmallestTable))));
  kept = make_tables(std::min(wanted, max_positions_), text_length);
  return kept;
}

void RotaryEmbedding::reserve(std::int64_t positions, std::int64_t text_length) {
  tables(positions, text_length == 0 ? positions : text_length);
}

RotaryAngles RotaryEmbedding::angles(std::int64_t length, std::int64_t offset, std::int64_t text_length) {
  return rows_of(tables(offset + length, text_length == 0 ? offset + length : text_length), offset, length);
}

RotaryAngles RotaryEmbedding::rows_of(const Tables& all, std::int64_t offset, std::int64_t length) {
  // Where a slice of stored data starts is an argument of the plan.
  const auto rows = [&](const LazyTensor& t) { return slice(t, 0, offset, offset + length); };
  RotaryAngles angles{rows(all.cos), rows(all.sin), {}};
  if (all.query_scale.defined()) angles.query_scale = rows(all.query_scale);
  return angles;
}

RotaryAngles RotaryEmbedding::angles(const TokenPositions& positions) {
  // All of it now, or the plan would change with the tables in the middle of a sequence.
  // Sequences that are packed into a row may be shorter than it, and the row longer than any sequence may be.
  const std::int64_t rows_needed = std::max(positions.longest, std::min(positions.reach, max_positions_));
  // Tokens that are each the last of their sequence have one table, however long that is.
  const bool each_last = !positions.rows.defined() && positions.first + 1 >= positions.longest;
  const Tables& all = tables(rows_needed, each_last ? 0 : positions.longest);
  if (!positions.rows.defined()) return rows_of(all, positions.first, positions.length);
  const LazyTensor rows = expand_dims(positions.rows, 1);
  RotaryAngles angles{take(all.cos, rows), take(all.sin, rows), {}};
  if (all.query_scale.defined()) angles.query_scale = take(all.query_scale, rows);
  return angles;
}

LazyTensor apply_rotary(const LazyTensor& x, const RotaryAngles& angles) {
  // The angles are f32: 16 bits do not hold the sine of a late position.
  if (is_16bit_float(x.dtype())) return astype(apply_rotary(astype(x, DType::f32), angles), x.dtype());
  const std::int64_t turned = angles.cos.shape(-1), half = turned / 2;
  // x * cos + concatenate(-x2, x1) * sin, half by half.
  const auto first = [&](const LazyTensor& t) { return slice(t, -1, 0, half); };
  const auto second = [&](const LazyTensor& t) { return slice(t, -1, half, turned); };
  const LazyTensor x1 = first(x), x2 = second(x);
  std::vector<LazyTensor> parts{x1 * first(angles.cos) - x2 * first(angles.sin),
                                x2 * second(angles.cos) + x1 * second(angles.sin)};
  if (x.shape(-1) > turned) parts.push_back(slice(x, -1, turned, {}));
  return concatenate(parts, -1);
}

}  // namespace caldera
