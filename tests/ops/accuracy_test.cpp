// The error of functions of float32 on up to 10^6 points each, against the C library in float64: denormal and
// huge arguments, both tails and the neighbourhoods of zeros included.
#include "tests/ops/accuracy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kLeast = std::numeric_limits<float>::min();

struct Points {
  std::vector<float> x, y;
  std::vector<double> exact;
};

/// Half of the points lie evenly where the function is interesting; the other half are evenly spaced bit
/// patterns, so that they are in every binade of either sign.
Points points_of(const AccuracyFigure& f, std::int64_t count) {
  Points points;
  const auto number = [](std::uint64_t pattern) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
    return std::isnan(value) ? 0.0F : value;
  };
  std::mt19937 random(1);
  std::uniform_real_distribution<float> within(static_cast<float>(f.low), static_cast<float>(f.high));
  const std::uint64_t step = (std::uint64_t{1} << 33) / static_cast<std::uint64_t>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_pattern = i < count / 2;
    points.x.push_back(is_pattern ? number(static_cast<std::uint64_t>(i) * step) : within(random));
    points.y.push_back(!f.has_second ? 0 : is_pattern ? number(random()) : within(random));
    points.exact.push_back(
        f.exact(static_cast<double>(points.x.back()), static_cast<double>(points.y.back())));
  }
  return points;
}

/// The points are the same for every device and setting.
const Points& cached_points(std::size_t row) {
  static std::map<std::size_t, Points> cache;
  const auto found = cache.find(row);
  if (found != cache.end()) return found->second;
  return cache[row] = points_of(kAccuracyFigures.at(row), accuracy_points(row));
}

/// A device may take denormal numbers for 0, and give 0 for them, also where they are to be added to others.
struct Flushing {
  bool allowed;
};

double error_in_ulp(float got, double exact, double scale, Flushing flushing) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded) || std::isinf(got)) {
    // Beside the largest number infinity is one step away.
    const double limit = 0x1p128;
    const double a = std::isinf(got) ? std::copysign(limit, got) : static_cast<double>(got);
    const double b = std::isinf(exact) || std::abs(exact) > limit ? std::copysign(limit, exact) : exact;
    return std::abs(a - b) / 0x1p104;
  }
  const double magnitude = std::max(std::abs(exact), std::max(scale, double{kLeast}));
  if (flushing.allowed && std::abs(static_cast<double>(got) - exact) < double{kLeast}) return 0;
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

class Accuracy : public OpTest {
 protected:
  /// With fusion the function stands between negations, which change no digit; without it alone.
  std::vector<float> results(const AccuracyFigure& f, const Points& points) const {
    const float sign = GetParam().fusion ? -1 : 1;
    const auto tensor = [&](std::vector<float> values) {
      for (float& value : values) value *= sign;
      return LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device());
    };
    const LazyTensor x = tensor(points.x), y = tensor(points.y);
    std::vector<float> out = (GetParam().fusion ? -f.call(-x, -y) : f.call(x, y)).to_vector<float>();
    for (float& value : out) value *= sign;
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Accuracy, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(Accuracy, IsAsTheFiguresSay) {
  for (std::size_t row = 0; row < kAccuracyFigures.size(); ++row) {
    const AccuracyFigure& figure = kAccuracyFigures.at(row);
    const Points& points = cached_points(row);
    const std::vector<float> got = results(figure, points);
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool denormal = is_vulkan() && (std::fpclassify(points.x[i]) == FP_SUBNORMAL ||
                                            std::fpclassify(points.y[i]) == FP_SUBNORMAL);
      if (denormal) continue;
      const double error = error_in_ulp(got[i], points.exact[i], figure.scale, {is_vulkan()});
      if (error > worst) {
        worst = error;
        at = i;
      }
    }
    const double allowed = is_vulkan() ? figure.vulkan : figure.cpu;
    EXPECT_LE(worst, allowed) << figure.function << "(" << points.x[at] << ", " << points.y[at]
                              << "): " << got[at] << ", exactly " << points.exact[at];
    if (std::getenv("CALDERA_TEST_FIGURES") != nullptr)
      std::printf("%-12s %10.3f at %.9g, %.9g: %.9g, exactly %.12g\n", figure.function, worst,
                  static_cast<double>(points.x[at]), static_cast<double>(points.y[at]),
                  static_cast<double>(got[at]), points.exact[at]);
  }
}

TEST(AccuracyFigures, OfTheSixAreWithinWhatIsRequired) {
  for (std::size_t i = 0; i < kRequiredCount; ++i) EXPECT_LE(kAccuracyFigures.at(i).cpu, kRequiredUlp);
}

}  // namespace
}  // namespace caldera::testing
