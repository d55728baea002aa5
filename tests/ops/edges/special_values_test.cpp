// NaN, infinities and zeros in operations that promise something about them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

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

double python_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Exact whatever the quotient: up to 2^120, and 2^1500 in float64.
TEST_P(SpecialValues, RemaindersOfAnyQuotient) {
  for (const DType type : supported({DType::f32, DType::f64})) {
    const bool wide = type == DType::f64;
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> mantissa(1, 2), sign(-1, 1);
    std::vector<double> a{0.0, -0.0, 6, -6, 6, -6, 0.0, -0.0, 1, -1, 1, 0.9, 7, kSpecialInf};
    std::vector<double> b{3,           3,           3,           3,   -3,  -3,  -5,
                          kSpecialInf, kSpecialInf, kSpecialInf, 0.1, 0.1, 0.1, kSpecialInf};
    for (int i = 0; i < 2000; ++i) {
      const int exponent = i % (wide ? 750 : 60);
      a.push_back(stored(std::copysign(std::ldexp(mantissa(random), exponent), sign(random)), type));
      b.push_back(stored(
          std::copysign(std::ldexp(mantissa(random), i % 3 == 0 ? exponent - 2 : -exponent), sign(random)),
          type));
    }
    for (double& x : a) x = stored(x, type);
    for (double& x : b) x = stored(x, type);
    std::vector<double> rests, floors;
    for (std::size_t i = 0; i < a.size(); ++i) {
      rests.push_back(std::fmod(a[i], b[i]));
      floors.push_back(stored(python_remainder(a[i], b[i]), type));
    }
    const Shape shape{static_cast<std::int64_t>(a.size())};
    const LazyTensor x = upload(Host(shape, a), type, device()), y = upload(Host(shape, b), type, device());
    EXPECT_TRUE(agrees(remainder(x, y), Host(shape, floors), {})) << name(type);
    for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u})
      EXPECT_EQ(std::signbit(download(remainder(x, y))[i]), std::signbit(floors[i])) << i;
    EXPECT_TRUE(agrees(fmod(x, y), Host(shape, rests), {})) << name(type);
  }
}

/// floor(a / b) of the numbers themselves: 1 / 0.1f is below 10.
TEST_P(SpecialValues, FloorDivideIsExact) {
  for (const DType type : supported({DType::f32, DType::f64})) {
    const LazyTensor x = upload(Host(Shape{6}, {1, 3, 6, 7, 1, -1}), type, device());
    const LazyTensor y =
        upload(Host(Shape{6}, {0.1, 0.1, 0.1, 0.1, -kSpecialInf, kSpecialInf}), type, device());
    EXPECT_EQ(download(floor_divide(x, y)), (std::vector<double>{9, 29, 59, 69, -1, -1})) << name(type);
  }
}

TEST_P(SpecialValues, SignsOfZero) {
  struct Row {
    const char* name;
    LazyTensor (*function)(const LazyTensor&);
  };
  const Row kOdd[] = {{"sin", sin},     {"tan", tan},     {"tanh", tanh},   {"expm1", expm1},
                      {"log1p", log1p}, {"erf", erf},     {"sqrt", sqrt},   {"floor", floor},
                      {"ceil", ceil},   {"round", round}, {"trunc", trunc}, {"asin", asin},
                      {"atan", atan},   {"sinh", sinh},   {"asinh", asinh}, {"atanh", atanh}};
  for (const DType type : supported({DType::f16, DType::bf16, DType::f32, DType::f64})) {
    const LazyTensor x = upload(Host(Shape{2}, {-0.0, 0.0}), type, device());
    for (const Row& row : kOdd) {
      const std::vector<double> y = download(row.function(x));
      EXPECT_TRUE(y[0] == 0 && std::signbit(y[0])) << row.name << "(-0) in " << name(type);
      EXPECT_TRUE(y[1] == 0 && !std::signbit(y[1])) << row.name << "(0) in " << name(type);
    }
  }
}

TEST_P(SpecialValues, Float64WhereItsBuiltInFunctionsEnd) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no float64 on " << device().to_string();
  const std::vector<double> whole{16777216.5, -19553745.98, 4503599627370495.5, -0.5, 1e300};
  const LazyTensor w = upload(Host(Shape{5}, whole), DType::f64, device());
  EXPECT_EQ(download(trunc(w)), (std::vector<double>{16777216, -19553745, 4503599627370495, 0, 1e300}));
  EXPECT_TRUE(std::signbit(download(trunc(w))[3]));
  std::vector<double> angles{1e6,     1048576, -1048577.25, 1968300000., 2e9, -1e10, 5.319372648326541e255,
                             1.7e308, 0x1p1023};
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const int exponent = 15 + static_cast<int>(random() % 1008);
    angles.push_back(std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent));
  }
  const auto n = static_cast<std::int64_t>(angles.size());
  const LazyTensor x = upload(Host(Shape{n}, angles), DType::f64, device());
  const auto sines = download(sin(x)), cosines = download(cos(x));
  for (std::size_t i = 0; i < angles.size(); ++i) {
    EXPECT_NEAR(sines[i], std::sin(angles[i]), 1e-15 + 4e-15 * std::abs(std::sin(angles[i]))) << angles[i];
    EXPECT_NEAR(cosines[i], std::cos(angles[i]), 1e-15 + 4e-15 * std::abs(std::cos(angles[i]))) << angles[i];
  }
  const LazyTensor base = upload(Host(Shape{3}, {-1, -1, -0.0}), DType::f64, device());
  const LazyTensor odd =
      upload(Host(Shape{3}, {4294967295., 4294967296., -2147483649.}), DType::f64, device());
  EXPECT_EQ(download(pow(base, odd)), (std::vector<double>{-1, 1, -kSpecialInf}));
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
