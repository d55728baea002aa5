// Special values of the functions in ops/elementwise/trigonometry.h, and what their table entries cannot say:
// signs of zero, exact results, limits, gradients where a formula written down plainly has none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "engine/autodiff/autodiff.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Functions : public OpTest {
 protected:
  LazyTensor tensor(const std::vector<double>& values, DType type = DType::f32) const {
    return upload(Host(Shape{static_cast<std::int64_t>(values.size())}, values), type, device());
  }
  /// The gradient of the sum of f at `values`.
  template <class F>
  std::vector<double> slopes(const F& f, const std::vector<double>& values, DType type = DType::f32) const {
    const LazyTensor x = tensor(values, type);
    return download(grad(sum(f(x)), x));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Functions, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPosInf = std::numeric_limits<double>::infinity();
const std::vector<double> kValues{kNan, kPosInf, -kPosInf, 0.0, -0.0, 1,   -1,   0.5, -0.5,
                                  2,    -2,      3,        -3,  0.25, 7.5, -7.5, 30};

/// Equal within the tolerance, signs of zero included.
void expect_alike(const std::string& name, const std::vector<double>& got, const std::vector<double>& want,
                  double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << name << " " << i << ": " << got[i];
    } else if (std::isinf(want[i]) || want[i] == 0) {
      EXPECT_EQ(got[i], want[i]) << name << " " << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << name << " " << i;
    } else {
      EXPECT_LE(std::abs(got[i] - want[i]), relative * std::abs(want[i]))
          << name << " " << i << ": " << got[i];
    }
  }
}

TEST_P(Functions, SpecialValuesAreThoseOfTheArrayApi) {
  struct Row {
    const char* name;
    LazyTensor (*function)(const LazyTensor&);
    double (*oracle)(double);
  };
  const Row kRows[] = {
      {"acos", acos, std::acos},
      {"acosh", acosh, std::acosh},
      {"asin", asin, std::asin},
      {"asinh", asinh, std::asinh},
      {"atan", atan, std::atan},
      {"atanh", atanh, std::atanh},
      {"cosh", cosh, std::cosh},
      {"sinh", sinh, std::sinh},
      {"exp2", exp2, std::exp2},
      {"log2", log2, std::log2},
      {"log10", log10, std::log10},
      {"erfc", erfc, std::erfc},
      {"lgamma", lgamma, [](double x) { return std::isinf(x) ? kPosInf : std::lgamma(x); }},
  };
  for (const DType type : supported({DType::f32, DType::f64})) {
    std::vector<LazyTensor> results;
    for (const Row& row : kRows) results.push_back(row.function(tensor(kValues, type)));
    eval(results);
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::vector<double> want;
      for (const double x : kValues) want.push_back(stored(kRows[r].oracle(x), type));
      expect_alike(kRows[r].name, download(results[r]), want, type == DType::f32 ? 3e-6 : 1e-13);
    }
  }
}

TEST_P(Functions, SpecialValuesOfPairsAreThoseOfTheArrayApi) {
  struct Row {
    const char* name;
    LazyTensor (*function)(const LazyTensor&, const LazyTensor&);
    double (*oracle)(double, double);
  };
  const Row kRows[] = {
      {"hypot", hypot, [](double a, double b) { return std::hypot(a, b); }},
      {"copysign", copysign, [](double a, double b) { return std::copysign(a, b); }},
      {"fmax", fmax, [](double a, double b) { return std::isnan(a) || a < b ? b : a; }},
      {"fmin", fmin, [](double a, double b) { return std::isnan(a) || a > b ? b : a; }},
      {"fmod", fmod, [](double a, double b) { return std::fmod(a, b); }},
      {"xlogy", xlogy, [](double a, double b) { return a == 0 && !std::isnan(b) ? 0 : a * std::log(b); }},
      {"heaviside", heaviside,
       [](double a, double b) {
         return std::isnan(a) ? a : a > 0 ? 1.0 : a < 0 ? 0.0 : b;
       }},
  };
  const auto n = static_cast<std::int64_t>(kValues.size());
  for (const DType type : supported({DType::f32, DType::f64})) {
    const LazyTensor a = upload(Host(Shape{n, 1}, kValues), type, device());
    const LazyTensor b = tensor(kValues, type);
    std::vector<LazyTensor> results;
    for (const Row& row : kRows) results.push_back(row.function(a, b));
    eval(results);
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::vector<double> want;
      for (const double x : kValues) {
        for (const double y : kValues) want.push_back(stored(kRows[r].oracle(x, y), type));
      }
      std::vector<double> got = download(results[r]);
      // Which zero of two is the larger, and that of a product with 0, are nobody's promise.
      if (kRows[r].name != std::string("copysign") && kRows[r].name != std::string("fmod")) {
        for (std::size_t i = 0; i < got.size(); ++i) {
          if (got[i] == 0 && want[i] == 0) got[i] = want[i];
        }
      }
      expect_alike(kRows[r].name, got, want, type == DType::f32 ? 3e-6 : 1e-13);
    }
  }
}

TEST_P(Functions, SpecialValuesWithoutAnOracleInTheLibrary) {
  for (const DType type : supported({DType::f32, DType::f64})) {
    const double relative = type == DType::f32 ? 3e-6 : 1e-13;
    expect_alike("sinc", download(sinc(tensor({0, -0.0, 1, 0.5, -1.5, 1000.5, kNan}, type))),
                 {1, 1, -0.0, 2 / std::numbers::pi, -2 / (3 * std::numbers::pi),
                  1 / (1000.5 * std::numbers::pi), kNan},
                 relative);
    expect_alike("erfinv",
                 download(erfinv(tensor({0, -0.0, 1, -1, 1.5, -2, kNan, 0.5, -0.75, 0.99609375}, type))),
                 {0, -0.0, kPosInf, -kPosInf, kNan, kNan, kNan, 0.4769362762044699, -0.8134198475976184,
                  2.0404520146056092},
                 relative);
    expect_alike(
        "digamma",
        download(digamma(tensor({0, -0.0, -1, -2, kPosInf, kNan, 1, 0.5, -0.5, 10, -2.25, 100}, type))),
        {-kPosInf, kPosInf, kNan, kNan, kPosInf, kNan, -0.5772156649015329, -1.9635100260214235,
         0.03648997397857652, 2.2517525890667212, 4.1585835646579730, 4.600161852738087},
        type == DType::f32 ? 3e-5 : 1e-12);
    expect_alike("logit", download(logit(tensor({0, 1, 0.5, -0.5, 1.5, kNan, 0.75}, type))),
                 {-kPosInf, kPosInf, 0, kNan, kNan, kNan, std::log(3.0)}, relative);
  }
}

TEST_P(Functions, PredicatesTellWhatNumbersAre) {
  const std::vector<double> x{kNan, kPosInf, -kPosInf, 0.0, -0.0, 1, -1};
  for (const DType type : supported({DType::f16, DType::bf16, DType::f32, DType::f64})) {
    EXPECT_EQ(download(isfinite(tensor(x, type))), (std::vector<double>{0, 0, 0, 1, 1, 1, 1}));
    EXPECT_EQ(download(isinf(tensor(x, type))), (std::vector<double>{0, 1, 1, 0, 0, 0, 0}));
    EXPECT_EQ(download(signbit(tensor(x, type))), (std::vector<double>{0, 0, 1, 0, 1, 0, 1}));
  }
  EXPECT_EQ(download(signbit(tensor({-kNan, kNan}))), (std::vector<double>{1, 0}));
  EXPECT_EQ(download(signbit(tensor({-3, 0, 3}, DType::i32))), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(download(isfinite(tensor({-3, 0}, DType::i32))), (std::vector<double>{1, 1}));
  EXPECT_EQ(download(isinf(tensor({-3, 0}, DType::i32))), (std::vector<double>{0, 0}));
}

TEST_P(Functions, LogarithmsAndPowersOfTwoAreExact) {
  std::vector<double> powers, exponents;
  for (int n = -126; n < 128; ++n) {
    powers.push_back(std::ldexp(1.0, n));
    exponents.push_back(n);
  }
  for (const DType type : supported({DType::f32, DType::f64})) {
    EXPECT_EQ(download(log2(tensor(powers, type))), exponents);
    EXPECT_EQ(download(exp2(tensor(exponents, type))), powers);
    const std::vector<double> tens{1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
    EXPECT_EQ(download(log10(tensor(tens, type))), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  }
}

TEST_P(Functions, NothingOverflowsBeforeTheResultDoes) {
  const std::vector<double> x{1e30, -1e30, 1e-30, -1e-30};
  expect_alike("asinh", download(asinh(tensor(x))), {std::asinh(1e30), -std::asinh(1e30), 1e-30, -1e-30},
               3e-6);
  expect_alike("acosh", download(acosh(tensor({1e30, 3e38, 1.0000001192092896}))),
               {std::acosh(1e30), std::acosh(3e38), std::acosh(1.0000001192092896)}, 3e-6);
  expect_alike("atanh", download(atanh(tensor(x))), {kNan, kNan, 1e-30, -1e-30}, 3e-6);
  expect_alike("cosh", download(cosh(tensor({89, -89, 90}))), {std::cosh(89.0), std::cosh(89.0), kPosInf},
               3e-6);
  expect_alike("sinh", download(sinh(tensor({89, -89, 90, -90, 1e-30}))),
               {std::sinh(89.0), -std::sinh(89.0), kPosInf, -kPosInf, 1e-30}, 3e-6);
  const LazyTensor large = tensor({2e38, 1e-30, 3e30});
  expect_alike("hypot", download(hypot(large, tensor({1e38, 1e-30, 4e30}))),
               {std::hypot(2e38, 1e38), std::hypot(1e-30, 1e-30), 5e30}, 3e-6);
  expect_alike("erfc", download(erfc(tensor({5, 8, 9, 12, -12}))),
               {std::erfc(5.0), std::erfc(8.0), std::erfc(9.0), 0, 2}, 3e-6);
}

TEST_P(Functions, ClipTakesNumbersTensorsOrNothing) {
  const LazyTensor x = tensor({-2, -1, 0, 1, 2, kNan});
  const auto values = [](const LazyTensor& t) { return download(t); };
  expect_alike("both", values(clip(x, -1, 1)), {-1, -1, 0, 1, 1, kNan}, 0);
  expect_alike("low", values(clip(x, 0.5)), {0.5, 0.5, 0.5, 1, 2, kNan}, 0);
  expect_alike("high", values(clip(x, {}, -1.5)), {-2, -1.5, -1.5, -1.5, -1.5, kNan}, 0);
  expect_alike("none", values(clip(x, {})), {-2, -1, 0, 1, 2, kNan}, 0);
  expect_alike("crossed", values(clip(x, 1, -1)), {-1, -1, -1, -1, -1, kNan}, 0);
  expect_alike("infinite", values(clip(x, -kPosInf, kPosInf)), {-2, -1, 0, 1, 2, kNan}, 0);
  expect_alike("NaN", values(clip(x, tensor({kNan}), 1)), {kNan, kNan, kNan, kNan, kNan, kNan}, 0);
  EXPECT_EQ(download(clip(tensor({-5, 5, 300}, DType::i32), 0, 255)), (std::vector<double>{0, 5, 255}));
  EXPECT_EQ(clip(tensor({1}, DType::i32), 0, 255).dtype(), DType::i32);
  // The gradient at a bound is x's.
  EXPECT_EQ(slopes([](const auto& y) { return clip(y, -1, 1); }, {-2, -1, 0, 1, 2}),
            (std::vector<double>{0, 1, 1, 1, 0}));
}

TEST_P(Functions, NanToNumReplacesByWhatTheTypeHolds) {
  const std::vector<double> x{kNan, kPosInf, -kPosInf, 1.5};
  EXPECT_EQ(
      download(nan_to_num(tensor(x))),
      (std::vector<double>{0, std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 1.5}));
  EXPECT_EQ(download(nan_to_num(tensor(x, DType::f16))), (std::vector<double>{0, 65504, -65504, 1.5}));
  EXPECT_EQ(download(nan_to_num(tensor(x), 7, 8, -9)), (std::vector<double>{7, 8, -9, 1.5}));
  EXPECT_EQ(slopes([](const auto& y) { return nan_to_num(y); }, x), (std::vector<double>{0, 0, 0, 1}));
}

TEST_P(Functions, LerpIsExactAtItsEnds) {
  const LazyTensor a = tensor({1e8, -3, 0.1}), b = tensor({-1, 7, 1e-8});
  EXPECT_EQ(download(lerp(a, b, 0)), download(a));
  EXPECT_EQ(download(lerp(a, b, 1)), download(b));
}

TEST_P(Functions, NumbersStandBesideTensorsOfAnyDevice) {
  const LazyTensor x = tensor({4, -4});
  EXPECT_EQ(download(hypot(3, x)), (std::vector<double>{5, 5}));
  EXPECT_EQ(download(fmod(-7, x)), (std::vector<double>{-3, -3}));
  EXPECT_EQ(download(fmax(5, x)), (std::vector<double>{5, 5}));
  EXPECT_EQ(download(copysign(2, x)), (std::vector<double>{2, -2}));
  EXPECT_EQ(download(xlogy(0, x)), (std::vector<double>{0, 0}));
  EXPECT_EQ(download(heaviside(x, 3)), (std::vector<double>{1, 0}));
  EXPECT_EQ(download(lerp(0, x, 0.5)), (std::vector<double>{2, -2}));
}

TEST_P(Functions, FmodOfIntegersHasTheSignOfTheFirstDownToTheLeast) {
  for (const DType type : supported({DType::i8, DType::i16, DType::i32, DType::i64})) {
    const std::int64_t least = facts(type).lowest, most = facts(type).highest;
    for (const std::int64_t a :
         {least, least + 1, std::int64_t{-7}, std::int64_t{0}, std::int64_t{7}, most}) {
      for (const std::int64_t b :
           {std::int64_t{3}, std::int64_t{-3}, std::int64_t{1}, std::int64_t{5}, most, least}) {
        const LazyTensor x = astype(
            reshape(LazyTensor::from_vector(std::vector<std::int64_t>{a, 0}, Shape{2}, device()), Shape{2}),
            type);
        EXPECT_EQ(fmod(x, b).astype(DType::i64).to_vector<std::int64_t>()[0], a % b)
            << a << " " << b << " " << name(type);
      }
    }
  }
}

TEST_P(Functions, GradientsAreFiniteWhereTheFunctionHasOne) {
  for (const double ord : {0.5, 1.5, 3.0, -1.0}) {
    SCOPED_TRACE(ord);
    EXPECT_EQ(slopes([&](const auto& x) { return vector_norm(x, {}, ord); }, {0, 0, 0}),
              (std::vector<double>{0, 0, 0}));
    const auto some = slopes([&](const auto& x) { return vector_norm(x, {}, ord); }, {0, -2, 0});
    EXPECT_EQ(some.at(0), 0);
    EXPECT_NEAR(some.at(1), ord > 0 ? -1 : 0, 1e-6);
    EXPECT_EQ(some.at(2), 0);
  }
  EXPECT_EQ(slopes([](const auto& x) { return hypot(x, zeros_like(x)); }, {0, 3, -3}),
            (std::vector<double>{0, 1, -1}));
  EXPECT_EQ(slopes([](const auto& x) { return xlogy(x, ones_like(x) * 0); }, {0}), (std::vector<double>{0}));
  EXPECT_EQ(slopes([](const auto& x) { return xlogy(ones_like(x) * 0, x); }, {0, 2}),
            (std::vector<double>{0, 0}));
  expect_alike("asinh", slopes([](const auto& x) { return asinh(x); }, {1e30, 0, -1e-30}), {1e-30, 1, 1},
               1e-6);
  expect_alike("sinh", slopes([](const auto& x) { return sinh(x); }, {0, 88.5}), {1, std::cosh(88.5)}, 3e-6);
  expect_alike("atan", slopes([](const auto& x) { return atan(x); }, {kPosInf, 1e30, 0}), {0, 0, 1}, 1e-6);
  expect_alike("asin", slopes([](const auto& x) { return asin(x); }, {0.99999994039535522, 1}),
               {1 / std::sqrt(0x1p-24 * (2 - 0x1p-24)), kPosInf}, 1e-6);
  expect_alike("erfc", slopes([](const auto& x) { return erfc(x); }, {0, 30, kPosInf}),
               {-2 * std::numbers::inv_sqrtpi, -0.0, -0.0}, 1e-6);
  expect_alike("copysign", slopes([](const auto& x) { return copysign(x, -ones_like(x)); }, {2, -2, 0}),
               {-1, 1, -0.0}, 0);
  // sinc is flat at 0 and curved by -pi^2 / 3.
  const LazyTensor x = tensor({0, 0.0625});
  const LazyTensor first = grad(sum(sinc(x)), x);
  const LazyTensor second = grad(sum(first), x);
  EXPECT_EQ(download(first).at(0), 0);
  EXPECT_NEAR(download(second).at(0), -std::numbers::pi * std::numbers::pi / 3, 1e-5);
}

TEST_P(Functions, IntegersAndBoolBecomeFloat32) {
  EXPECT_EQ(asinh(tensor({1, 2}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(hypot(tensor({3}, DType::i32), tensor({4}, DType::u8)).item<float>(), 5);
  EXPECT_EQ(download(exp2(tensor({0, 1}, DType::boolean))), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace caldera::testing
