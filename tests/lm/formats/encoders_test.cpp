// Encoders of quantised formats: the search for scales, and what threads must not change.
#include "lm/formats/quantize/encoders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
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
  for (const QuantizedFormat format :
       {QuantizedFormat::q8_0, QuantizedFormat::q4_0, QuantizedFormat::q4_k, QuantizedFormat::q6_k}) {
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

/// What the bytes of a block of MXFP4 stand for.
std::array<float, 32> values_of_mxfp4(std::span<const std::byte> block) {
  constexpr std::array kMagnitudes{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  std::array<float, 32> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto both = std::to_integer<unsigned>(block[1 + i % 16]);
    const unsigned code = i < 16 ? both & 15 : both >> 4;
    const float magnitude = std::ldexp(kMagnitudes[code & 7], std::to_integer<int>(block[0]) - 127);
    values[i] = code & 8 ? -magnitude : magnitude;
  }
  return values;
}

TEST(Encoders, Mxfp4TakesTheNearestOfItsValues) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const float scale : {1.0F, 1e-30F, 1e-44F, 3e37F}) {
    std::vector<float> x(32 * 50);
    for (float& v : x) v = normal(random) * scale;
    const auto bytes = detail::encode_blocks(QuantizedFormat::mxfp4, x, 32, "w");
    for (std::size_t b = 0; b < 50; ++b) {
      const auto block = std::span(bytes).subspan(17 * b, 17);
      const auto values = values_of_mxfp4(block);
      float largest = 0;
      for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[32 * b + i]));
      const float unit = std::ldexp(1.0F, std::to_integer<int>(block[0]) - 127);
      if (std::to_integer<int>(block[0]) > 0) {
        EXPECT_GE(largest, 4 * unit);
        EXPECT_LT(largest, 8 * unit);
      }
      for (std::size_t i = 0; i < 32; ++i) {
        const float v = x[32 * b + i];
        // Codes are half a unit from one another up to 2, a whole one up to 4, then 2; beyond 6 there is
        // none.
        const float size = std::min(std::abs(v), 6 * unit);
        const float apart = size <= 2 * unit ? unit / 2 : size <= 4 * unit ? unit : 2 * unit;
        EXPECT_LE(std::abs(std::clamp(v, -6 * unit, 6 * unit) - values[i]), apart / 2) << scale << ", " << v;
      }
    }
  }
  std::vector<float> ties(32, 0);  // halfway between two codes: the smaller one
  ties[0] = 4;
  ties[1] = 0.25F, ties[2] = 0.75F, ties[3] = -2.5F, ties[4] = -0.25F;
  const auto values = values_of_mxfp4(detail::encode_blocks(QuantizedFormat::mxfp4, ties, 32, "w"));
  EXPECT_EQ(values[0], 4);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], 0.5F);
  EXPECT_EQ(values[3], -2);
  EXPECT_FALSE(std::signbit(values[4]));
}

TEST(Encoders, Q6KHasAnAnswerForAnyFiniteValues) {
  std::vector<float> x(256, 0);  // zeros, equal values, tiny ones, one that stands out
  for (std::size_t i = 0; i < 16; ++i) {
    x[16 + i] = 2;
    x[32 + i] = -3;
    x[48 + i] = static_cast<float>(i) * 1e-44F;
  }
  x[70] = 100;
  const auto bytes = detail::encode_blocks(QuantizedFormat::q6_k, x, 256, "w");
  // The block's last two bytes are d; its scales are before them.
  Half half;
  std::memcpy(&half.bits, bytes.data() + 208, 2);
  const auto value = [&](std::size_t i) {
    const std::size_t part = i / 128, lot = i % 128 / 32, at = i % 32;
    const auto low = std::to_integer<unsigned>(bytes[64 * part + 32 * (lot % 2) + at]) >> (lot / 2 * 4) & 15;
    const auto high = std::to_integer<unsigned>(bytes[128 + 32 * part + at]) >> (2 * lot) & 3;
    const auto scale = static_cast<std::int8_t>(std::to_integer<unsigned>(bytes[192 + i / 16]));
    return to_float(half) * static_cast<float>(scale) *
           static_cast<float>(static_cast<int>(low | high << 4) - 32);
  };
  for (std::size_t i = 0; i < 256; ++i) {
    // A scale is a whole number of steps of the largest one's 128th.
    EXPECT_NEAR(value(i), x[i], x[i] == 100 ? 0.1 : 100.0 / 31 / 128 * 31) << i;
    if (x[i] == 0) {
      EXPECT_EQ(value(i), 0) << i;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
