// Random tensors against their distributions: Kolmogorov-Smirnov and chi-square with fixed seeds, bounds,
// determinism, the same on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "engine/runtime/plan_cache.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Distributions : public OpTest {
 protected:
  std::vector<DType> types() const { return supported({DType::f32, DType::f64}); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Distributions, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr std::int64_t kCount = 1 << 14;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Cdf = std::function<double(double)>;

/// sqrt(n) times the greatest distance between the distribution functions; above 2.23 with probability 1e-4.
double kolmogorov_smirnov(std::vector<double> sample, const Cdf& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double distance = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    distance = std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return distance * std::sqrt(n);
}

/// Whether counts are those of the probabilities: chi-square, by the Wilson-Hilferty normal, within 3.7
/// deviations.
::testing::AssertionResult have_probabilities(const std::vector<double>& counts,
                                              const std::vector<double>& probabilities) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  double chi = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = n * probabilities[i];
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const double k = static_cast<double>(counts.size()) - 1;
  const double deviations = (std::cbrt(chi / k) - (1 - 2 / (9 * k))) / std::sqrt(2 / (9 * k));
  if (std::abs(deviations) < 3.7) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "chi-square " << chi << " with " << k << " degrees of freedom";
}

std::vector<double> histogram(const std::vector<double>& values, std::size_t bins) {
  std::vector<double> counts(bins);
  for (const double value : values) ++counts.at(static_cast<std::size_t>(value));
  return counts;
}

TEST_P(Distributions, ExponentialAndGumbel) {
  for (const DType type : types()) {
    const std::vector<double> e = download(random_exponential(Shape{kCount}, 1, type, device()));
    EXPECT_LT(kolmogorov_smirnov(e, [](double x) { return -std::expm1(-x); }), 2.23);
    EXPECT_GT(*std::min_element(e.begin(), e.end()), 0);
    const std::vector<double> g = download(random_gumbel(Shape{kCount}, 2, type, device()));
    EXPECT_LT(kolmogorov_smirnov(g, [](double x) { return std::exp(-std::exp(-x)); }), 2.23);
    const double mean = std::accumulate(g.begin(), g.end(), 0.0) / kCount;
    EXPECT_NEAR(mean, std::numbers::egamma, 5 * std::numbers::pi / std::sqrt(6.0 * kCount));
  }
}

TEST_P(Distributions, TruncatedNormalBetweenAllKindsOfBounds) {
  struct Bounds {
    double lower, upper;
  };
  // log of the probability between two numbers in one tail, the nearer one first.
  const auto tail = [](double x) { return std::erfc(x / std::numbers::sqrt2); };
  for (const DType type : types()) {
    for (const auto& [lower, upper] :
         {Bounds{-2, 2}, Bounds{-1, 3}, Bounds{0.5, 0.75}, Bounds{-kInfinity, kInfinity},
          Bounds{3, kInfinity}, Bounds{-9, -3}, Bounds{8, 20}, Bounds{-kInfinity, 1}, Bounds{-20, 6}}) {
      SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(lower) + " " + std::to_string(upper));
      const std::vector<double> x =
          download(random_truncated_normal(lower, upper, Shape{kCount}, 3, type, device()));
      const auto [least, most] = std::minmax_element(x.begin(), x.end());
      EXPECT_GE(*least, lower);
      EXPECT_LE(*most, upper);
      const bool high = lower > 0;
      const double a = high ? tail(lower) : tail(-lower), b = high ? tail(upper) : tail(-upper);
      EXPECT_LT(kolmogorov_smirnov(x, [&](double v) { return (a - (high ? tail(v) : tail(-v))) / (a - b); }),
                2.23);
    }
  }
}

TEST_P(Distributions, TruncatedNormalWhereProbabilitiesUnderflow) {
  for (const DType type : types()) {
    // Beyond x the density falls as exp(-x (v - x)) nearly.
    for (const double lower : {30.0, 36.5, 40.0, 1000.0}) {
      const std::vector<double> x =
          download(random_truncated_normal(lower, kInfinity, Shape{kCount}, 4, type, device()));
      EXPECT_GE(*std::min_element(x.begin(), x.end()), lower);
      double mean = 0;
      for (const double value : x) mean += (value - lower) / kCount;
      // The mean excess is 1 / x - 2 / x^3, drawn with a deviation of 1 / (x sqrt(kCount)): 0.04 is more than
      // five of them. f32 has numbers 1/16 of the excess apart at 1000.
      EXPECT_NEAR(mean * lower, 1 - 2 / (lower * lower), type == DType::f64 || lower < 1000 ? 0.04 : 0.1)
          << lower;
    }
  }
}

TEST_P(Distributions, BoundsHoldInSixteenBits) {
  for (const DType type : supported({DType::f16, DType::bf16})) {
    const std::vector<double> x =
        download(random_truncated_normal(-0.1003, 0.1001, Shape{kCount}, 3, type, device()));
    EXPECT_GE(*std::min_element(x.begin(), x.end()), -0.1003);
    EXPECT_LE(*std::max_element(x.begin(), x.end()), 0.1001);
  }
}

TEST_P(Distributions, Bernoulli) {
  const std::vector<double> p{0, 0.1, 0.5, 0.9, 1, 2, -1, std::numeric_limits<double>::quiet_NaN()};
  const LazyTensor probabilities = upload(Host(Shape{8, 1}, p), DType::f32, device());
  const std::vector<double> x = download(random_bernoulli(probabilities, Shape{8, kCount}, 5));
  for (std::size_t row = 0; row < p.size(); ++row) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row) * kCount;
    const double mean = std::accumulate(begin, begin + kCount, 0.0) / kCount;
    const double expected = std::isnan(p[row]) ? 0 : std::clamp(p[row], 0.0, 1.0);
    EXPECT_NEAR(mean, expected, 4 * std::sqrt(expected * (1 - expected) / kCount)) << p[row];
  }
  const LazyTensor quarter = random_bernoulli(0.25, Shape{kCount}, 6, DType::f32);
  EXPECT_EQ(quarter.device(), device());
  // Four deviations, sqrt(p (1 - p) / n).
  EXPECT_NEAR(mean(quarter).item(), 0.25, 4 * std::sqrt(0.25 * 0.75 / kCount));
}

TEST_P(Distributions, IntegersAreUniformAndWithinTheirBounds) {
  for (const DType type : supported({DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64})) {
    const std::vector<double> x = download(random_randint(7, 20, Shape{kCount}, 8, type, device()));
    std::vector<double> shifted = x;
    for (double& value : shifted) value -= 7;
    EXPECT_TRUE(have_probabilities(histogram(shifted, 13), std::vector<double>(13, 1.0 / 13)));
  }
  // More values than one draw has bits.
  const std::int64_t least = std::numeric_limits<std::int32_t>::min();
  for (const auto& [low, high] :
       {std::pair{least, -least}, std::pair{std::int64_t{-5}, std::int64_t{1} << 30}}) {
    std::vector<double> x = download(random_randint(low, high, Shape{kCount}, 9, DType::i32, device()));
    const auto start = static_cast<double>(low);
    const double width = static_cast<double>(high) - start;
    EXPECT_LT(kolmogorov_smirnov(x, [&](double v) { return (v - start) / width; }), 2.23);
    std::vector<double> lowest;  // the bits at the other end
    lowest.reserve(x.size());
    for (const double value : x) lowest.push_back(std::fmod(value - start, 16));
    EXPECT_TRUE(have_probabilities(histogram(lowest, 16), std::vector<double>(16, 1.0 / 16)));
  }
}

TEST_P(Distributions, IntegersOf64Bits) {
  if (!supports(DType::i64)) GTEST_SKIP() << "no 64-bit integers on " << device().to_string();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto x =
      random_randint(kLeast, kMost, Shape{kCount}, 9, DType::i64, device()).to_vector<std::int64_t>();
  std::vector<double> scaled, lowest;
  for (const std::int64_t value : x) {
    scaled.push_back(static_cast<double>(value) * 0x1p-64 + 0.5);
    lowest.push_back(static_cast<double>(static_cast<std::uint64_t>(value) % 16));
  }
  EXPECT_LT(kolmogorov_smirnov(scaled, [](double v) { return v; }), 2.23);
  EXPECT_TRUE(have_probabilities(histogram(lowest, 16), std::vector<double>(16, 1.0 / 16)));
  const auto one =
      random_randint(kMost - 1, kMost, Shape{3}, 1, DType::i64, device()).to_vector<std::int64_t>();
  EXPECT_EQ(one, std::vector<std::int64_t>(3, kMost - 1));
}

TEST_P(Distributions, Categorical) {
  const std::vector<double> p{0.5, 0.25, 0.125, 0.125};
  std::vector<double> logits;
  logits.reserve(p.size());
  for (const double value : p) logits.push_back(std::log(value) + 3);
  const LazyTensor x = upload(stored(Host(Shape{4}, logits), DType::f32), DType::f32, device());
  EXPECT_TRUE(have_probabilities(histogram(download(random_categorical(x, 1, kCount)), 4), p));
  const LazyTensor rows = broadcast_to(x, Shape{kCount, 4});
  EXPECT_TRUE(have_probabilities(histogram(download(random_categorical(rows, 2)), 4), p));
  const LazyTensor closed =
      upload(Host(Shape{3}, std::vector<double>{-kInfinity, 0, -kInfinity}), DType::f32, device());
  EXPECT_EQ(download(random_categorical(closed, 3, 50)), std::vector<double>(50, 1));
}

TEST_P(Distributions, PermutationsAreUniform) {
  for (const std::int64_t n : {1, 33, 1025}) {
    std::vector<double> x = download(random_permutation(n, 4, device()));
    EXPECT_TRUE(n == 1 || !std::is_sorted(x.begin(), x.end()));
    std::sort(x.begin(), x.end());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], static_cast<double>(i));
  }
  // All 24 orders of 4.
  std::vector<LazyTensor> all;
  for (std::uint64_t seed = 0; seed < 1200; ++seed) all.push_back(random_permutation(4, seed, device()));
  const std::vector<double> x = download(stack(all));
  std::vector<double> orders;
  for (std::size_t i = 0; i < x.size(); i += 4) {
    double order = 0;
    for (std::size_t a = 0; a < 4; ++a) {
      order *= static_cast<double>(4 - a);
      for (std::size_t b = a + 1; b < 4; ++b) order += x[i + b] < x[i + a] ? 1 : 0;
    }
    orders.push_back(order);
  }
  EXPECT_TRUE(have_probabilities(histogram(orders, 24), std::vector<double>(24, 1.0 / 24)));
}

TEST_P(Distributions, AreFunctionsOfSeedAlikeOnEveryDevice) {
  const auto draws = [](std::uint64_t seed, Device on) {
    return std::vector<LazyTensor>{
        random_exponential(Shape{33}, seed, DType::f32, on), random_gumbel(Shape{33}, seed, DType::f32, on),
        random_truncated_normal(-1, 4, Shape{33}, seed, DType::f32, on),
        random_randint(-3, 1000000, Shape{33}, seed, DType::i32, on), random_permutation(100, seed, on)};
  };
  const auto first = draws(5, device()), again = draws(5, device()), cpu = draws(5, Device::cpu());
  const auto other = draws(6, device());
  eval(first);
  eval(again);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(download(first[i]), download(again[i])) << i;
    EXPECT_NE(download(first[i]), download(other[i])) << i;
    const bool exact = is_integral(first[i].dtype());
    EXPECT_TRUE(
        agrees(first[i], Host(cpu[i].shape(), download(cpu[i])), exact ? Within{} : Within{2e-5, 2e-5}))
        << i;
  }
}

TEST_P(Distributions, ANewSeedDoesNotCompileAgain) {
  settings().plan_cache = true;
  clear_plan_cache();
  const auto misses = [] { return plan_cache_stats().misses; };
  const std::uint64_t start = misses();
  for (const std::uint64_t seed : {1ULL, 2ULL, 1ULL << 40}) {
    random_randint(3, 100, Shape{7}, seed, DType::i32, device()).eval();
    random_permutation(100, seed, device()).eval();
    random_truncated_normal(-1, 2, Shape{7}, seed, DType::f32, device()).eval();
  }
  EXPECT_EQ(misses() - start, 3U);
}

}  // namespace
}  // namespace caldera::testing
