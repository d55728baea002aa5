// Computes what attention does to one row of scores.
#pragma once

#include <cstdint>

namespace caldera::cpu {

/// The softmax of a row of which a part has been seen.
struct SoftmaxRow {
  float maximum;  // minus infinity at first
  double sum;     // of share * exp(score - maximum)
};

struct AttentionOps {
  /// Takes in `n` more scores: scores[i] = share * exp(scores[i] - maximum), with the maximum raised. Returns
  /// what sums taken with the old maximum are to be multiplied by. A row that has nothing but minus infinity
  /// yet counts from 0, so that its exponentials are 0 and not NaN.
  float (*accumulate)(float* scores, std::int64_t n, float share, SoftmaxRow& row);
  /// Whether the weights of all scores are 0 next to that of the highest one: exp(scores[i] - highest) is.
  bool (*vanish)(const float* scores, std::int64_t n, float highest);
  /// values[i] *= factor
  void (*scale)(float* values, std::int64_t n, float factor);
  /// values[i] /= total
  void (*divide)(float* values, std::int64_t n, float total);
  /// scores[i] = exp(scores[i] - highest) / total; products[i] = scores[i] * (products[i] - delta)
  void (*gradient)(float* scores, float* products, std::int64_t n, float highest, float total, float delta);
};

const AttentionOps& attention_ops();

/// Below this, exp is 0 in f32.
inline constexpr float kExpVanishes = -104.0F;

}  // namespace caldera::cpu
