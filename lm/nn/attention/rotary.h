// Rotary position embedding (Su et al. 2021) in the "rotate_half" convention of Hugging Face models.
#pragma once

#include <cstdint>
#include <map>

#include "engine/graph/lazy_tensor.h"
#include "lm/formats/config/rope_scaling.h"
#include "lm/nn/caches/attention_cache.h"

namespace caldera {

/// Angles of the positions of a call: cos and sin of shape (length, rotated features), or (batch, 1, length,
/// rotated features) where each row has positions of its own; both halves alike.
struct RotaryAngles {
  LazyTensor cos;
  LazyTensor sin;
  LazyTensor query_scale = {};  ///< as wide as 1: queries are multiplied by it; undefined for 1
};

/// The tables of cosines and sines of a model's positions, computed on the host in double precision and kept
/// on the device as f32 of shape (positions, rotated features).
class RotaryEmbedding {
 public:
  /// Throws ValueError unless head_dim is even and positive, and the other numbers positive.
  RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions, double theta, Device device);
  /// With scaled frequencies. `max_positions` is the model's max_position_embeddings; with some types of
  /// scaling the tables reach farther (RopeScaling::usable_positions). Throws ValueError as
  /// rope_frequencies() does.
  RotaryEmbedding(std::int64_t head_dim, std::int64_t max_positions, const RopeParameters& rope,
                  Device device);

  /// Angles of positions [offset, offset + length) of a sequence of `text_length` positions (0: it ends with
  /// them), on which the frequencies of some types depend. The offset is an argument of the plan. Throws
  /// ValueError when a position is not below max_positions().
  RotaryAngles angles(std::int64_t length, std::int64_t offset = 0, std::int64_t text_length = 0);
  /// Returns the angles of the tokens of a call, whose positions are data, of sequences whose length
  /// positions.longest says. The tables reach to positions.reach from now on, or that far. Throws ValueError
  /// when positions.longest is above max_positions().
  RotaryAngles angles(const TokenPositions& positions);
  /// Makes the tables of a sequence of `text_length` positions (0: `positions`) reach to `positions` now.
  /// Plans that read the tables depend on their size, which otherwise grows, by doubling, when a position
  /// beyond them is asked for: a model may allow far more than a program uses.
  void reserve(std::int64_t positions, std::int64_t text_length = 0);
  std::int64_t max_positions() const { return max_positions_; }

 private:
  struct Tables {
    LazyTensor cos;
    LazyTensor sin;
    LazyTensor query_scale;
  };

  /// Row p is rotated as in a sequence of max(text_length, p + 1) tokens.
  Tables make_tables(std::int64_t rows, std::int64_t text_length) const;
  static RotaryAngles rows_of(const Tables& all, std::int64_t offset, std::int64_t length);
  Tables& tables(std::int64_t positions, std::int64_t text_length);

  RopeParameters rope_;
  std::int64_t head_dim_;
  std::int64_t declared_positions_;  // max_position_embeddings
  std::int64_t max_positions_;
  Device device_;
  std::map<std::int64_t, Tables> tables_;  // by frequency_key(); of those beyond 0 the last one asked for
};

/// x (..., T, head_dim) rotated by the angles of its positions: x * cos + rotate_half(x) * sin, where
/// rotate_half((a, b)) = (-b, a) on the halves of the last axis. Where the angles are fewer than the
/// features, those behind them stay as they are.
LazyTensor apply_rotary(const LazyTensor& x, const RotaryAngles& angles);

}  // namespace caldera
