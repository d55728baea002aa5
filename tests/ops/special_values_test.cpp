// NaN, infinities and zeros in operations that promise something about them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/autodiff/autodiff.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class SpecialValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SpecialValues, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr double kSpecialNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpecialInf = std::numeric_limits<double>::infinity();
const std::vector<double> kSpecialValues{kSpecialNan, kSpecialInf, -kSpecialInf, 0.0, -0.0, 1, -1, 2.5,
                                         -2.5,        3,           -3,           0.5, 100};

double maximum_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kSpecialNan : std::max(a, b);
}
double minimum_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kSpecialNan : std::min(a, b);
}

TEST_P(SpecialValues, OfPairs) {
  struct Row {
    const char* name;
    LazyTensor (*function)(const LazyTensor&, const LazyTensor&);
    double (*oracle)(double, double);
  };
  const Row kRows[] = {
      {"add", add, [](double a, double b) { return a + b; }},
      {"multiply", multiply, [](double a, double b) { return a * b; }},
      {"divide", divide, [](double a, double b) { return a / b; }},
      {"maximum", maximum, maximum_of},
      {"minimum", minimum, minimum_of},
      {"equal", equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"not_equal", not_equal, [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"less", less, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"less_equal", less_equal, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"greater", greater, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"greater_equal", greater_equal, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"where", [](const LazyTensor& a, const LazyTensor& b) { return where(a == a, a, b); },
       [](double a, double b) { return a == a ? a : b; }},
      {"pow", pow, [](double a, double b) { return std::pow(a, b); }},
      {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }},
  };
  const auto n = static_cast<std::int64_t>(kSpecialValues.size());
  const Host a(Shape{n, 1}, kSpecialValues);
  const Host b(Shape{n}, kSpecialValues);
  std::vector<Pending> all;
  for (const DType type : supported({DType::f32, DType::f64})) {
    // What is finite is tested more narrowly elsewhere. Here are powers up to 2^-100, which multiply the
    // error of a GPU's logarithm by 70.
    const Within tolerance{type == DType::f32 ? 1e-4 : 1e-13, 0};
    for (const Row& row : kRows) {
      Host expected = Host::from(
          Shape{n, n}, [&](const Index& at) { return row.oracle(a.stretched(at), b.stretched(at)); });
      // 100^-inf and the like are limits in every type; 100^100 overflows f32 only.
      if (type == DType::f32) expected = stored(expected, type);
      all.push_back({std::string(row.name) + " of " + std::string(name(type)),
                     row.function(upload(a, type, device()), upload(b, type, device())), expected,
                     tolerance});
    }
  }
  check_all(all);
}

TEST_P(SpecialValues, OfFunctions) {
  struct Row {
    const char* name;
    LazyTensor (*function)(const LazyTensor&);
    double (*oracle)(double);
  };
  const Row kRows[] = {
      {"isnan", isnan, [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"abs", abs, [](double x) { return std::abs(x); }},
      {"negative", negative, [](double x) { return -x; }},
      {"sign", sign, [](double x) { return std::isnan(x) ? x
                                           : x > 0       ? 1.0
                                           : x < 0       ? -1.0
                                                         : 0.0; }},
      {"floor", floor, [](double x) { return std::floor(x); }},
      {"ceil", ceil, [](double x) { return std::ceil(x); }},
      {"round", round, [](double x) { return std::nearbyint(x); }},
      {"trunc", trunc, [](double x) { return std::trunc(x); }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"expm1", expm1, [](double x) { return std::expm1(x); }},
      {"log", log, [](double x) { return std::log(x); }},
      {"log1p", log1p, [](double x) { return std::log1p(x); }},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"erf", erf, [](double x) { return std::erf(x); }},
      {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
      {"sin", sin, [](double x) { return std::sin(x); }},
      {"cos", cos, [](double x) { return std::cos(x); }},
  };
  const Host x(Shape{static_cast<std::int64_t>(kSpecialValues.size())}, kSpecialValues);
  std::vector<Pending> all;
  for (const Row& row : kRows) {
    const Host expected =
        stored(Host::from(x.shape, [&](const Index& at) { return row.oracle(x[at]); }), DType::f32);
    // sin(100): a reduction by pi/4 in f32 leaves about 1e-6.
    all.push_back({row.name, row.function(upload(x, DType::f32, device())), expected, Within{2e-6, 2e-6}});
  }
  check_all(all);
}

TEST_P(SpecialValues, RoundingIsHalfToEven) {
  const Host x(Shape{8}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 8388609, 0.49999997});
  EXPECT_TRUE(
      agrees(round(upload(x, DType::f32, device())), Host(Shape{8}, {0, 2, 2, 0, -2, -2, 8388609, 0}), {}));
}

TEST_P(SpecialValues, RoundOfFloat64TakesHalvesToEven) {
  const Host x(Shape{10},
               {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 4503599627370497, -kSpecialInf, 1.75});
  EXPECT_TRUE(agrees(round(upload(x, DType::f64, device())),
                     Host(Shape{10}, {0, 2, 2, 0, -2, -2, 0, 4503599627370497, -kSpecialInf, 2}), {}));
  const LazyTensor small = upload(Host(Shape{2}, {-0.25, -0.0}), DType::f64, device());
  for (const double zero : round(small).to_vector<double>()) EXPECT_TRUE(std::signbit(zero));
}

TEST_P(SpecialValues, InReductions) {
  const Host x(Shape{5, 3}, {1, kSpecialNan, 2, 1, kSpecialInf, -kSpecialInf, -kSpecialInf, -kSpecialInf,
                             -kSpecialInf, kSpecialInf, -kSpecialInf, 0, 0, -0.0, kSpecialInf});
  const LazyTensor t = upload(x, DType::f32, device());
  EXPECT_TRUE(agrees(max(t, 1),
                     Host(Shape{5}, {kSpecialNan, kSpecialInf, -kSpecialInf, kSpecialInf, kSpecialInf}), {}));
  EXPECT_TRUE(
      agrees(min(t, 1), Host(Shape{5}, {kSpecialNan, -kSpecialInf, -kSpecialInf, -kSpecialInf, 0}), {}));
  EXPECT_TRUE(agrees(sum(t, 1),
                     Host(Shape{5}, {kSpecialNan, kSpecialNan, -kSpecialInf, kSpecialNan, kSpecialInf}), {}));
}

TEST_P(SpecialValues, OfWhatDoesNotVary) {
  const LazyTensor x = upload(Host(Shape{2, 3}, {5, 5, 5, 1, 2, 3}), DType::f32, device());
  const double root = std::sqrt(2.0 / 3);
  EXPECT_TRUE(agrees(caldera::std(x, 1), Host(Shape{2}, {0, root}), {1e-6, 0}));
  // (x - mean) / (n std), and 0 where that is 0 / 0.
  const Host slopes(Shape{2, 3}, {0, 0, 0, -1 / (3 * root), 0, 1 / (3 * root)});
  EXPECT_TRUE(agrees(grad(sum(caldera::std(x, 1)), x), slopes, {1e-6, 1e-7}));
  const LazyTensor single = upload(Host(Shape{1}, {2}), DType::f32, device());
  EXPECT_TRUE(agrees(caldera::std(single, {}, 1), Host(Shape{}, {kSpecialNan}), {}));
}

TEST_P(SpecialValues, MaskedSoftmaxIsExact) {
  const Host x(Shape{2, 4}, {0, -kSpecialInf, 0, -kSpecialInf, 1000, 1000, -kSpecialInf, -1e30});
  const Host expected(Shape{2, 4}, {0.5, 0, 0.5, 0, 0.5, 0.5, 0, 0});
  EXPECT_TRUE(agrees(softmax(upload(x, DType::f32, device())), expected, {}));
  const Host logs(Shape{2}, {std::log(2.0), 1000 + std::log(2.0)});
  EXPECT_TRUE(agrees(logsumexp(upload(x, DType::f32, device())), logs, {1e-6, 0}));
}

TEST_P(SpecialValues, LogsumexpOfInfinitiesIsTheLimit) {
  const Host x(Shape{4, 2}, {-kSpecialInf, -kSpecialInf, 1, kSpecialInf, 3, -kSpecialInf, kSpecialNan, 1});
  EXPECT_TRUE(agrees(logsumexp(upload(x, DType::f32, device())),
                     Host(Shape{4}, {-kSpecialInf, kSpecialInf, 3, kSpecialNan}), {}));
}

}  // namespace
}  // namespace caldera::testing
