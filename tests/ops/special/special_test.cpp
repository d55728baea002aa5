// Special functions against values of 40 digits (tests/golden/special/generate.py), at their poles and
// limits, and by what relates them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr double kInvalid = std::numeric_limits<double>::quiet_NaN();

/// Points and values of one function.
struct KnownValues {
  std::vector<double> x, y, value;
};
const std::map<std::string, KnownValues>& known_values() {
  static const std::map<std::string, KnownValues> kAll = [] {
    std::map<std::string, KnownValues> all;
    std::ifstream file("tests/golden/special/values.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<double> numbers;
      for (double number = 0; words >> number;) numbers.push_back(number);
      KnownValues& of = all[name];
      of.x.push_back(numbers.front());
      if (numbers.size() > 2) of.y.push_back(numbers[1]);
      of.value.push_back(numbers.back());
    }
    return all;
  }();
  return kAll;
}

using SpecialCall = LazyTensor (*)(const LazyTensor& x, const LazyTensor& y);
struct CheckedSpecial {
  const char* name;
  SpecialCall call;
  double ulp = 4;           // in float32
  double relative = 1e-13;  // in float64
};
const CheckedSpecial kChecked[] = {
    {"i0", [](const LazyTensor& x, const LazyTensor&) { return i0(x); }},
    {"i1", [](const LazyTensor& x, const LazyTensor&) { return i1(x); }},
    {"i0e", [](const LazyTensor& x, const LazyTensor&) { return i0e(x); }},
    {"i1e", [](const LazyTensor& x, const LazyTensor&) { return i1e(x); }},
    {"erfcx", [](const LazyTensor& x, const LazyTensor&) { return erfcx(x); }},
    {"ndtr", [](const LazyTensor& x, const LazyTensor&) { return ndtr(x); }},
    {"log_ndtr", [](const LazyTensor& x, const LazyTensor&) { return log_ndtr(x); }},
    {"ndtri", [](const LazyTensor& x, const LazyTensor&) { return ndtri(x); }},
    {"entr", [](const LazyTensor& x, const LazyTensor&) { return entr(x); }},
    {"lgamma", [](const LazyTensor& x, const LazyTensor&) { return lgamma(x); }},
    {"multigammaln_3", [](const LazyTensor& x, const LazyTensor&) { return multigammaln(x, 3); }},
    {"polygamma_1", [](const LazyTensor& x, const LazyTensor&) { return polygamma(1, x); }},
    {"polygamma_2", [](const LazyTensor& x, const LazyTensor&) { return polygamma(2, x); }},
    {"polygamma_3", [](const LazyTensor& x, const LazyTensor&) { return polygamma(3, x); }},
    {"zeta", [](const LazyTensor& x, const LazyTensor& y) { return zeta(x, y); }},
    {"igamma", [](const LazyTensor& a, const LazyTensor& x) { return igamma(a, x); }},
    {"igammac", [](const LazyTensor& a, const LazyTensor& x) { return igammac(a, x); }, 8},
    {"xlog1py", [](const LazyTensor& x, const LazyTensor& y) { return xlog1py(x, y); }},
    {"pow", [](const LazyTensor& x, const LazyTensor& y) { return pow(x, y); }},
};

class SpecialFunctions : public OpTest {
 protected:
  LazyTensor row(const std::vector<double>& values, DType type = DType::f32) const {
    return upload(Host(Shape{static_cast<std::int64_t>(values.size())}, values), type, device());
  }
  void expect(const LazyTensor& x, const std::vector<double>& values) const {
    const std::vector<double> got = download(x);
    ASSERT_EQ(got.size(), values.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << "element " << i << ": " << got[i];
      } else if (std::isinf(values[i])) {
        EXPECT_EQ(got[i], values[i]) << "element " << i;
      } else {
        EXPECT_NEAR(got[i], values[i], 1e-6 * std::abs(values[i])) << "element " << i;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SpecialFunctions, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(SpecialFunctions, AreWithinFourUlpOfKnownValues) {
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  for (const CheckedSpecial& checked : kChecked) {
    const KnownValues& known = known_values().at(checked.name);
    ASSERT_GT(known.x.size(), 20u);
    const std::vector<double> got =
        download(checked.call(row(known.x), known.y.empty() ? row(known.x) : row(known.y)));
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double exact = known.value[i];
      if (std::abs(exact) < 2 * kLeast || std::abs(exact) > kMost) continue;
      const double error = std::abs(got[i] - exact) / std::ldexp(1.0, std::ilogb(exact) - 23);
      EXPECT_LE(error, checked.ulp) << checked.name << "(" << known.x[i] << ", "
                                    << (known.y.empty() ? 0 : known.y[i]) << "): " << got[i] << ", exactly "
                                    << exact;
      worst = std::max(worst, error);
    }
    if (std::getenv("CALDERA_TEST_FIGURES") != nullptr) std::printf("%-16s %.2f ulp\n", checked.name, worst);
  }
}

TEST_P(SpecialFunctions, AreRightToThirteenDigitsInFloat64) {
  if (!backend(device()).supports(DType::f64)) GTEST_SKIP() << "no float64 on this device";
  for (const CheckedSpecial& checked : kChecked) {
    const KnownValues& known = known_values().at(checked.name);
    const LazyTensor y = row(known.y.empty() ? known.x : known.y, DType::f64);
    const std::vector<double> got = download(checked.call(row(known.x, DType::f64), y));
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(got[i] / known.value[i] - 1);
      EXPECT_LE(error, checked.relative)
          << checked.name << "(" << known.x[i] << ", " << (known.y.empty() ? 0 : known.y[i]) << ")";
      worst = std::max(worst, error);
    }
    if (std::getenv("CALDERA_TEST_FIGURES") != nullptr) std::printf("%-16s %.2e\n", checked.name, worst);
  }
}

TEST_P(SpecialFunctions, AtPolesZerosAndInfinity) {
  const LazyTensor ends = row({0, kFar, -kFar, kInvalid});
  expect(i0(ends), {1, kFar, kFar, kInvalid});
  expect(i1(ends), {0, kFar, -kFar, kInvalid});
  expect(i0e(ends), {1, 0, 0, kInvalid});
  expect(i1e(ends), {0, 0, 0, kInvalid});
  expect(erfcx(ends), {1, 0, kFar, kInvalid});
  expect(ndtr(ends), {0.5, 1, 0, kInvalid});
  expect(log_ndtr(ends), {-std::log(2), 0, -kFar, kInvalid});
  expect(ndtri(row({0, 1, 0.5, -0.5, 1.5, kInvalid})), {-kFar, kFar, 0, kInvalid, kInvalid, kInvalid});
  expect(entr(row({0, 1, -1, kFar, kInvalid})), {0, 0, -kFar, -kFar, kInvalid});
  expect(xlog1py(row({0, 0, 0, 2, 1, 0}), row({-1, -2, kFar, 0, -1, kInvalid})),
         {0, 0, 0, 0, -kFar, kInvalid});
  expect(zeta(row({1, 2, 2, 2, 0.5, kInvalid, 2}), row({3, 0, -3, -2.5, 2, 1, kInvalid})),
         {kFar, kFar, kFar, kInvalid, kInvalid, kInvalid, kInvalid});
  const LazyTensor shapes = row({2, 2, 0, 0, kFar, kFar, -1, 2, kInvalid, 2, 0}),
                   points = row({0, kFar, 1, 0, 3, kFar, 1, -1, 1, kInvalid, kFar});
  expect(igamma(shapes, points), {0, 1, 1, kInvalid, 0, kInvalid, kInvalid, kInvalid, kInvalid, kInvalid, 1});
  expect(igammac(shapes, points),
         {1, 0, 0, kInvalid, 1, kInvalid, kInvalid, kInvalid, kInvalid, kInvalid, 0});
  // Far beyond the shape, where powers of the point overflow; and the slope at infinity.
  const LazyTensor small_shapes = row({1.5, 2, 9.5, 9.9375, 19});
  const LazyTensor far_points = row({1e30, 1e25, 1e6, 1e30, 1e30});
  expect(igamma(small_shapes, far_points), {1, 1, 1, 1, 1});
  expect(igammac(small_shapes, far_points), {0, 0, 0, 0, 0});
  const LazyTensor infinity = row({kFar, kFar, kFar, kFar});
  const LazyTensor slopes = grad(sum(igamma(row({0.5, 1, 2, 200}), infinity)), infinity);
  expect(slopes, {0, 0, 0, 0});
  expect(polygamma(1, row({0, -1, -2, kInvalid})), {kFar, kFar, kFar, kInvalid});
  expect(polygamma(2, row({0, -1, -7, kInvalid})), {-kFar, -kFar, -kFar, kInvalid});
  // Far out, where powers vanish ahead of what is left: 1 / x, -1 / x^2, 2 / x^3; and next to 0, 6 / x^4.
  expect(polygamma(1, row({kFar, 6e26})), {0, 1 / 6e26});
  expect(polygamma(2, row({kFar, 1e18})), {0, -1e-36});
  expect(polygamma(3, row({kFar, 4e11, 3.7e-10})), {0, 2 / 6.4e34, 6 / std::pow(3.7e-10, 4)});
  expect(zeta(row({1.5, 2, 4, 300}), row({kFar, kFar, 1e12, kFar})), {0, 0, 1e-36 / 3, 0});
  const LazyTensor endless = row({kFar});
  expect(grad(sum(polygamma(1, endless)), endless), {0});
  expect(multigammaln(row({1, 0.5, kInvalid}), 2), {std::log(M_PI), kInvalid, kInvalid});
  expect(lgamma(row({1, 2, 0, -3})), {0, 0, kFar, kFar});
}

TEST_P(SpecialFunctions, IncompleteGammasHaveNoSlopeInTheirShape) {
  const LazyTensor a = row({0.5, 1, 2, 3}), x = row({0, 0, 0, 2.5});
  // x^(a - 1) exp(-x) / Gamma(a).
  const double far = 2.5 * 2.5 * std::exp(-2.5) / 2;
  expect(grad(sum(igamma(a, x)), x), {kFar, 1, 0, far});
  expect(grad(sum(igammac(a, x)), x), {-kFar, -1, 0, -far});
  EXPECT_THROW(grad(sum(igamma(a, x)), a), GradientError);
  EXPECT_THROW(grad(sum(igammac(a, x)), a), GradientError);
  expect(igamma(row({1e4, 1e30}), row({2e4, 1e29})), {1, 0});
}

TEST_P(SpecialFunctions, SlopesAtTheOriginAndInTails) {
  const auto slope = [](LazyTensor (*f)(const LazyTensor&), const LazyTensor& x) {
    return grad(sum(f(x)), x);
  };
  expect(slope(i0, row({0, 100})), {0, kFar});
  expect(slope(i1, row({0})), {0.5});
  expect(slope(i1e, row({0})), {0.5});
  expect(slope(entr, row({1})), {-1});
  // log_ndtr'(x) is next to -x where ndtr(x) itself is 0: by the continued fraction of Mills' ratio.
  expect(slope(log_ndtr, row({-50})), {50 + 1.0 / (50 + 2.0 / (50 + 3.0 / 50))});
  expect(slope(ndtr, row({0})), {1 / std::sqrt(2 * M_PI)});
  expect(slope(ndtri, row({0.5})), {std::sqrt(2 * M_PI)});
  // Twice: I0'' = (I0 + I2) / 2, and I2(0) = 0.
  const LazyTensor x = row({0});
  expect(grad(sum(grad(sum(i0(x)), x)), x), {0.5});
}

}  // namespace
}  // namespace caldera::testing
