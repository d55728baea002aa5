// Rotary position embedding (Su et al. 2021) in the "rotate_half" convention of Hugging Face models.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "training/nn/attention_cache.h"

namespace caldera {

/// Angles of the positions of a call: cos and sin of shape (length, head_dim), or (batch, 1, length,
/// head_dim) where each row has positions of its own; both halves alike.
struct RotaryAngles {
  LazyTensor cos;
  LazyTensor sin;
};

/// The tables cos(p / theta^(2i/d)) and sin(...), computed on the host in double precision and kept on the
/// device as f32 of shape (positions, head_dim).
class RotaryEmbedding {
 public:
  /// Throws ValueError unless head_dim is even and positive, and the other numbers positive.
  RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions, double theta, Device device);

  /// Angles of positions [offset, offset + length). The offset is an argument of the plan. Throws ValueError
  /// when a position is not below max_positions.
  RotaryAngles angles(std::int64_t length, std::int64_t offset = 0);
  /// Those of the tokens of a call, read where their positions lie as data. The tables reach to
  /// positions.reach from now on. Throws ValueError when that is above max_positions.
  RotaryAngles angles(const TokenPositions& positions);
  /// Makes the tables reach to `positions` now. Plans that read the tables depend on their size, which
  /// otherwise grows, by doubling, when a position beyond them is asked for: a model may allow far more than
  /// a program uses.
  void reserve(std::int64_t positions);
  std::int64_t max_positions() const { return max_positions_; }

 private:
  std::vector<double> inverse_frequencies_;
  std::int64_t max_positions_;
  Device device_;
  LazyTensor cos_;
  LazyTensor sin_;
};

/// x (..., T, head_dim) turned by the angles of its positions: x * cos + rotate_half(x) * sin, where
/// rotate_half((a, b)) = (-b, a) on the halves of the last axis.
LazyTensor apply_rotary(const LazyTensor& x, const RotaryAngles& angles);

}  // namespace caldera
