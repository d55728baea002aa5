// Encoders of quantised formats: the search for scales, and what threads must not change.
#include "lm/formats/quantize/encoders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/cpu_threads.h"
#include "lm/formats/quantize/scale_search.h"

namespace caldera::testing {
namespace {

using detail::kScaleGroup;
using detail::kScaleGroups;
using GroupValues = std::array<float, kScaleGroups * kScaleGroup>;

/// The error that the search makes small: squares of what the nearest codes are off, larger values count
/// more.
double weighted_error(std::span<const float> x, double scale, double minimum) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double typical = std::sqrt(squares / static_cast<double>(x.size()));
  double error = 0;
  for (const double v : x) {
    const double code = scale > 0 ? std::clamp(std::nearbyint((v + minimum) / scale), 0.0, 15.0) : 0.0;
    const double off = scale * code - minimum - v;
    error += (typical + std::abs(v)) * off * off;
  }
  return error;
}

/// The least error of many scales and minima around those that spread the values over all codes.
double least_of_grid(std::span<const float> x) {
  const auto [low, high] = std::ranges::minmax(x);
  const double bottom = std::min<double>(low, 0), range = high - bottom;
  double least = weighted_error(x, range / 15, -bottom);
  for (double codes = 13.5; codes <= 19; codes += 0.1) {
    for (double shift = -1.5; shift <= 1.5; shift += 0.1) {
      const double scale = range / codes;
      least = std::min(least, weighted_error(x, scale, std::max(0.0, -bottom + shift * scale)));
    }
  }
  return least;
}

TEST(ScaleSearch, IsAsGoodAsAGrid) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  double found_in_all = 0, grid_in_all = 0;
  for (int round = 0; round < 20; ++round) {
    GroupValues x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float v = normal(random);
      const std::size_t kind = i / kScaleGroup % 4;
      x[i] = kind == 0 ? v : kind == 1 ? std::abs(v) : kind == 2 ? v * v * v : v - 2;
    }
    const auto found = detail::search_scales(x, 15);
    for (std::size_t g = 0; g < kScaleGroups; ++g) {
      const std::span<const float> group = std::span(x).subspan(g * kScaleGroup, kScaleGroup);
      const double error = weighted_error(group, found[g].scale, found[g].minimum),
                   grid = least_of_grid(group);
      EXPECT_LE(error, 1.25 * grid) << round << ", group " << g;
      found_in_all += error;
      grid_in_all += grid;
    }
  }
  EXPECT_LE(found_in_all, 1.03 * grid_in_all);
}

TEST(ScaleSearch, HasAnAnswerForAnyFiniteValues) {
  GroupValues x{};  // zeros, equal values, the largest and the smallest, one that stands out
  for (std::size_t i = 0; i < kScaleGroup; ++i) {
    x[1 * kScaleGroup + i] = 2;
    x[2 * kScaleGroup + i] = -3;
    x[3 * kScaleGroup + i] = i % 2 == 0 ? 3e38F : -3e38F;
    x[4 * kScaleGroup + i] = static_cast<float>(i) * 1e-44F;
    x[5 * kScaleGroup + i] = i == 5 ? 100 : 0;
  }
  const auto found = detail::search_scales(x, 15);
  EXPECT_EQ(found[0].scale, 0);
  EXPECT_EQ(found[0].minimum, 0);
  EXPECT_NEAR(
      weighted_error(std::span(x).subspan(kScaleGroup, kScaleGroup), found[1].scale, found[1].minimum), 0,
      1e-9);
  EXPECT_EQ(found[2].minimum, 3);
  EXPECT_GT(found[3].scale, 3e37F);
  for (const detail::ScaleAndMinimum& each : found) {
    EXPECT_GE(each.scale, 0);
    EXPECT_GE(each.minimum, 0);
  }
  EXPECT_NEAR(
      weighted_error(std::span(x).subspan(5 * kScaleGroup, kScaleGroup), found[5].scale, found[5].minimum), 0,
      1e-3);
}

TEST(Encoders, GiveTheSameBytesOnAnyNumberOfThreads) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(std::size_t{256} * 2000);
  for (float& v : values) v = normal(random);
  const int before = cpu_threads();
  for (const QuantizedFormat format : {QuantizedFormat::q8_0, QuantizedFormat::q4_0, QuantizedFormat::q4_k}) {
    set_cpu_threads(1);
    const auto one = detail::encode_blocks(format, values, 256, "w");
    set_cpu_threads(3);
    EXPECT_EQ(detail::encode_blocks(format, values, 256, "w"), one);
    values[values.size() - 7] = 1e30F;  // in the last thread's part
    EXPECT_THROW(detail::encode_blocks(format, values, 256, "w"), ValueError);
    values[values.size() - 7] = 0;
  }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace caldera::testing
