#include "lm/nn/attention/rope_frequencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace caldera {
namespace {

std::vector<double> plain_frequencies(double theta, std::int64_t width) {
  std::vector<double> inverse;
  for (std::int64_t i = 0; i < width / 2; ++i)
    inverse.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  return inverse;
}

/// Waves that rotate less than low_freq_factor times in the original context are stretched by the factor,
/// those that rotate more than high_freq_factor times are left, those between mixed.
void stretch_llama3(const RopeScaling& s, double original, double factor, std::vector<double>& inverse) {
  for (double& frequency : inverse) {
    const double turns = original * frequency / (2 * std::numbers::pi);
    const double kept =
        std::clamp((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
    frequency *= kept + (1 - kept) / factor;
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double yarn_attention_scale(const RopeScaling& s, double factor) {
  if (s.attention_factor) return *s.attention_factor;
  const double mscale = s.mscale.value_or(0), all = s.mscale_all_dim.value_or(0);
  if (mscale != 0 && all != 0) return yarn_mscale(factor, mscale) / yarn_mscale(factor, all);
  return yarn_mscale(factor, 1);
}

/// A ramp over the pairs from those that are left to those that are stretched by the factor. Its ends are
/// where a pair rotates beta_fast and beta_slow times in the original context.
void stretch_yarn(const RopeParameters& rope, std::int64_t width, double original, double factor,
                  std::vector<double>& inverse) {
  const RopeScaling& s = rope.scaling;
  const auto pair_that_turns = [&](double times) {
    return static_cast<double>(width) * std::log(original / (times * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = pair_that_turns(s.beta_fast), high = pair_that_turns(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(width - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] *= (1 - stretched) + stretched / factor;
  }
}

}  // namespace

bool depends_on_length(const RopeScaling& scaling) {
  return scaling.type == RopeType::dynamic || scaling.type == RopeType::longrope;
}

std::int64_t frequency_key(const RopeScaling& scaling, std::int64_t max_positions, std::int64_t length) {
  if (!depends_on_length(scaling) || length <= scaling.original_positions(max_positions)) return 0;
  return scaling.type == RopeType::dynamic ? length : 1;
}

RopeFrequencies rope_frequencies(const RopeParameters& rope, std::int64_t head_dim,
                                 std::int64_t max_positions, std::int64_t length) {
  const RopeScaling& s = rope.scaling;
  const auto width =
      static_cast<std::int64_t>(std::floor(static_cast<double>(head_dim) * s.partial_rotary_factor));
  if (width <= 0 || width % 2 != 0 || width > head_dim)
    throw ValueError(
        fmt::format("rotary positions: head_dim {} with a partial_rotary_factor of {}: the part "
                    "that is turned must be even, and positive",
                    head_dim, s.partial_rotary_factor));
  const auto original = static_cast<double>(s.original_positions(max_positions));
  const double factor = s.stretch(max_positions);
  const bool beyond = static_cast<double>(length) > original;
  RopeFrequencies result{plain_frequencies(rope.theta, width), 1};
  switch (s.type) {
    case RopeType::plain:
      break;
    case RopeType::linear:
      for (double& frequency : result.inverse) frequency /= factor;
      break;
    case RopeType::dynamic:
      if (beyond && width > 2) {
        const auto d = static_cast<double>(width);
        const double growth = factor * static_cast<double>(length) / original - (factor - 1);
        result.inverse = plain_frequencies(rope.theta * std::pow(growth, d / (d - 2)), width);
      }
      break;
    case RopeType::llama3:
      stretch_llama3(s, original, factor, result.inverse);
      break;
    case RopeType::yarn:
      stretch_yarn(rope, width, original, factor, result.inverse);
      result.attention_scale = yarn_attention_scale(s, factor);
      break;
    case RopeType::longrope: {
      const std::vector<double>& factors = beyond ? s.long_factor : s.short_factor;
      if (factors.size() != result.inverse.size())
        throw ValueError(
            fmt::format("rotary positions: {} has {} entries, but {} pairs of features are turned",
                        beyond ? "long_factor" : "short_factor", factors.size(), result.inverse.size()));
      for (std::size_t i = 0; i < factors.size(); ++i) result.inverse[i] /= factors[i];
      result.attention_scale = s.attention_factor.value_or(
          factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original)));
      break;
    }
  }
  return result;
}

}  // namespace caldera
