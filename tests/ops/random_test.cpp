// The random stream: Philox4x32-10 with the published test vectors, the same numbers on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Random : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Random, ::testing::ValuesIn(op_settings()), op_setting_name);

using Words = std::array<std::uint32_t, 4>;

/// Written from the paper (Salmon et al., SC 2011), apart from the engine's.
Words philox(Words counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ULL * counter[0];
    const std::uint64_t b = 0xCD9E8D57ULL * counter[2];
    const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
    counter = {high(b) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b), high(a) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

std::uint32_t word(std::uint64_t seed, std::uint32_t i) {
  return philox({i / 4, 0, 0, 0},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)})[i % 4];
}

TEST(RandomOracle, GivesTheVectorsOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_P(Random, UniformIsTheHighBitsOfEachWord) {
  const std::vector<float> first = random_uniform(Shape{4}, 0, DType::f32, device()).to_vector<float>();
  const std::vector<float> golden{0x6627e8p-24F, 0xe169c5p-24F, 0xbc57acp-24F, 0x9b00dbp-24F};
  EXPECT_EQ(first, golden);
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{0x299f31d0a4093822}, ~std::uint64_t{0}}) {
    const std::vector<float> actual =
        random_uniform(Shape{1025}, seed, DType::f32, device()).to_vector<float>();
    for (std::uint32_t i = 0; i < 1025; ++i)
      ASSERT_EQ(actual[i], static_cast<float>(word(seed, i) >> 8) * 0x1p-24F) << seed << " " << i;
  }
}

TEST_P(Random, NormalIsBoxMullerOfPairsOfWords) {
  const std::uint64_t seed = 0x123456789abcdef;
  const std::vector<float> actual = random_normal(Shape{1025}, seed, DType::f32, device()).to_vector<float>();
  for (std::uint32_t i = 0; i < 1025; ++i) {
    const double u = ((word(seed, i & ~1U) >> 8) + 1) * 0x1p-24;
    const double v = (word(seed, i | 1U) >> 8) * 0x1p-24;
    const double radius = std::sqrt(-2 * std::log(u));
    const double angle = 2 * std::numbers::pi * v;
    // f32 logarithm, root and cosine: a few units of radius, which is below 6.
    ASSERT_NEAR(actual[i], radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-5) << i;
  }
}

TEST_P(Random, IsAFunctionOfSeedAndLinearIndex) {
  const auto values = [&](const Shape& shape, std::uint64_t seed) {
    return random_uniform(shape, seed, DType::f32, device()).to_vector<float>();
  };
  EXPECT_EQ(values(Shape{3, 11, 7}, 5), values(Shape{231}, 5));
  EXPECT_EQ(values(Shape{33}, 5), values(Shape{33}, 5));
  EXPECT_NE(values(Shape{33}, 5), values(Shape{33}, 6));
  EXPECT_NE(values(Shape{33}, 5), values(Shape{33}, 5 | 1ULL << 40));
  EXPECT_TRUE(values(Shape{0}, 5).empty());
  // Fused with its consumer, behind a view, the element keeps its index.
  const std::vector<float> plain = values(Shape{33, 7}, 5);
  const LazyTensor turned = transpose(random_uniform(Shape{33, 7}, 5, DType::f32, device())) + 0.0;
  EXPECT_TRUE(agrees(turned,
                     Host::from(Shape{7, 33},
                                [&](const Index& at) {
                                  return static_cast<double>(
                                      plain[static_cast<std::size_t>(at[1] * 7 + at[0])]);
                                }),
                     {}));
}

TEST_P(Random, SameStreamAsTheCpu) {
  const std::vector<float> here = random_uniform(Shape{1025}, 42, DType::f32, device()).to_vector<float>();
  EXPECT_EQ(here, random_uniform(Shape{1025}, 42, DType::f32, Device::cpu()).to_vector<float>());
  const LazyTensor there = random_normal(Shape{1025}, 42, DType::f32, Device::cpu());
  // The words agree to the bit; the functions of two devices do not quite.
  EXPECT_TRUE(agrees(random_normal(Shape{1025}, 42, DType::f32, device()), Host(Shape{1025}, download(there)),
                     {1e-5, 1e-5}));
}

TEST_P(Random, MomentsAreThoseOfTheDistribution) {
  constexpr std::int64_t kCount = 1 << 16;
  const auto moments = [](const LazyTensor& x) {
    double mean = 0;
    double square = 0;
    for (float v : x.to_vector<float>()) {
      mean += v;
      square += static_cast<double>(v) * v;
    }
    mean /= kCount;
    return std::pair(mean, square / kCount - mean * mean);
  };
  // Bounds of five deviations of the sample mean and variance.
  const double root = std::sqrt(static_cast<double>(kCount));
  const LazyTensor uniform = random_uniform(Shape{kCount}, 7, DType::f32, device());
  const auto [um, uv] = moments(uniform);
  EXPECT_NEAR(um, 0.5, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(uv, 1.0 / 12, 5 * std::sqrt(1.0 / 180) / root);
  const std::vector<float> values = uniform.to_vector<float>();
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0.0F);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1.0F);
  const auto [nm, nv] = moments(random_normal(Shape{kCount}, 7, DType::f32, device()));
  EXPECT_NEAR(nm, 0, 5 / root);
  EXPECT_NEAR(nv, 1, 5 * std::sqrt(2.0) / root);
}

}  // namespace
}  // namespace caldera::testing
