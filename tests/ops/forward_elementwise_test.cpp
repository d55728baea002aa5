// Values of element-wise operations on every device against plain functions of double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

/// How far from the rounded result a device may be.
enum class Precision {
  exact,      // rounded once
  division,   // CPU: rounded once; Vulkan allows 2.5 units in the last place of a quotient, and so of a root
  composite,  // of two operations of the library
  library,    // CPU: polynomials within 2 units; GPUs: software functions within 1e-5
};

Within within(Precision precision, DType type, bool is_vulkan) {
  if (is_half(type)) return half_units(type, precision == Precision::composite ? 2 : 1);
  const double unit = type == DType::f64 ? 0x1p-52 : 0x1p-23;
  switch (precision) {
    case Precision::exact:
      return rounded_once(type);
    case Precision::division:
      return is_vulkan ? Within{3 * unit, 0} : rounded_once(type);
    case Precision::composite:
    case Precision::library:
      return is_vulkan ? Within{1e-5, 1e-6} : Within{2.5 * unit, unit * 1e-3};
  }
  return {};
}

class ForwardElementwise : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ForwardElementwise, ::testing::ValuesIn(op_settings()), op_setting_name);

struct UnaryRow {
  const char* name;
  LazyTensor (*function)(const LazyTensor&);
  double (*oracle)(double);
  Precision precision = Precision::exact;
  double low = 0.1;
  double high = 9;
  bool both_signs = true;
  bool integers = false;
};

double round_half_even(double x) { return std::nearbyint(x); }
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const UnaryRow kUnary[] = {
    {"negative", negative, [](double x) { return -x; }, Precision::exact, 1, 99, true, true},
    {"abs", abs, [](double x) { return std::abs(x); }, Precision::exact, 1, 99, true, true},
    {"sign", sign, sign_of, Precision::exact, 0, 3, true, true},
    {"floor", floor, [](double x) { return std::floor(x); }, Precision::exact, 0, 9, true, true},
    {"ceil", ceil, [](double x) { return std::ceil(x); }, Precision::exact, 0, 9, true, true},
    {"round", round, round_half_even, Precision::exact, 0, 9, true, true},
    {"trunc", trunc, [](double x) { return std::trunc(x); }, Precision::exact, 0, 9, true, true},
    {"square", square, [](double x) { return x * x; }, Precision::exact, 1, 15, true, true},
    {"isnan", isnan, [](double x) { return std::isnan(x) ? 1.0 : 0.0; }, Precision::exact, 1, 9, true, true},
    {"exp", exp, [](double x) { return std::exp(x); }, Precision::library, 0.1, 20},
    {"expm1", expm1, [](double x) { return std::expm1(x); }, Precision::library, 0.1, 5},
    {"log", log, [](double x) { return std::log(x); }, Precision::library, 0.01, 50, false},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, Precision::library, 0.01, 0.9},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, Precision::division, 0.01, 50, false},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, Precision::library, 0.01, 50, false},
    {"sin", sin, [](double x) { return std::sin(x); }, Precision::library, 0.1, 30},
    {"cos", cos, [](double x) { return std::cos(x); }, Precision::library, 0.1, 30},
    {"tan", tan, [](double x) { return std::tan(x); }, Precision::library, 0.1, 1.4},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, Precision::library, 0.01, 9},
    {"sigmoid", sigmoid, sigmoid_of, Precision::library, 0.1, 9},
    {"erf", erf, [](double x) { return std::erf(x); }, Precision::library, 0.01, 4},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, Precision::division, 0.1, 9},
    {"silu", silu, [](double x) { return x * sigmoid_of(x); }, Precision::composite, 0.1, 9},
};

struct Placed {
  Shape shape;
  Layout layout;
};
const Placed kPlaced[] = {
    {{}, Layout::plain},
    {{0}, Layout::plain},
    {{1}, Layout::reversed},
    {{7}, Layout::sliced},
    {{33}, Layout::plain},
    {{1025}, Layout::plain},
    {{33, 7}, Layout::permuted},
    {{7, 33}, Layout::broadcast},
    {{2, 1, 5, 3, 4}, Layout::permuted},
    {{3, 0, 2}, Layout::sliced},
    {{2, 1, 5, 3, 4}, Layout::sliced},
    {{33, 7}, Layout::reversed},
};

TEST_P(ForwardElementwise, Unary) {
  for (const Placed& placed : kPlaced) {
    std::vector<Pending> all;
    std::uint64_t seed = 1;
    for (const UnaryRow& row : kUnary) {
      for (const DType type : supported(kNumericTypes)) {
        if (!row.integers && !is_floating(type)) continue;
        if (is_unsigned(type) && std::string_view(row.name) == "negative") continue;  // wraps: see below
        const Operand x = random_operand(placed.shape, placed.layout, type, device(), row.low, row.high,
                                         row.both_signs, seed++);
        all.push_back(
            {std::string(row.name) + " of " + std::string(name(type)) + " " + to_string(placed.layout),
             row.function(x.tensor),
             Host::from(placed.shape, [&](const Index& at) { return row.oracle(x.host[at]); }),
             within(row.precision, type, is_vulkan())});
      }
    }
    check_all(all);
  }
}

struct BinaryRow {
  const char* name;
  LazyTensor (*function)(const LazyTensor&, const LazyTensor&);
  double (*oracle)(double, double);
  Precision precision = Precision::exact;
  bool integers = true;
  bool positive = false;
};

double floored_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

const BinaryRow kBinary[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"divide", divide, [](double a, double b) { return a / b; }, Precision::division, false},
    {"floor_divide", floor_divide, [](double a, double b) { return std::floor(a / b); }},
    {"remainder", remainder, floored_remainder, Precision::library},
    {"pow", pow, [](double a, double b) { return std::pow(a, b); }, Precision::library, false, true},
    {"atan2", atan2, [](double a, double b) { return std::atan2(a, b); }, Precision::library, false},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
    {"equal", equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"not_equal", not_equal, [](double a, double b) { return a != b ? 1.0 : 0.0; }},
    {"less", less, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"less_equal", less_equal, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"greater", greater, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"greater_equal", greater_equal, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"where", [](const LazyTensor& a, const LazyTensor& b) { return where(a > b, a, b * b); },
     [](double a, double b) { return a > b ? a : b * b; }},
};

struct PlacedPair {
  Placed a, b;
};
const PlacedPair kPairs[] = {
    {{{}, Layout::plain}, {{}, Layout::plain}},
    {{{1025}, Layout::plain}, {{1025}, Layout::plain}},
    {{{33, 7}, Layout::permuted}, {{7}, Layout::reversed}},
    {{{33, 1}, Layout::sliced}, {{1, 7}, Layout::plain}},
    {{{7}, Layout::reversed}, {{}, Layout::plain}},
    {{{2, 1, 5, 1, 3}, Layout::permuted}, {{4, 1, 6, 3}, Layout::sliced}},
    {{{7, 33}, Layout::broadcast}, {{7, 33}, Layout::permuted}},
    {{{0, 7}, Layout::plain}, {{1, 7}, Layout::plain}},
};

Shape joint_shape(const Shape& a, const Shape& b) {
  Shape out = Shape(Dims::filled(std::max(a.rank(), b.rank()), 1));
  for (const Shape& s : {a, b}) {
    for (int i = 0; i < s.rank(); ++i) {
      const int to = out.rank() - s.rank() + i;
      if (s[i] != 1) out[to] = s[i];
    }
  }
  return out;
}

TEST_P(ForwardElementwise, BinaryWithBroadcasting) {
  for (const PlacedPair& pair : kPairs) {
    std::vector<Pending> all;
    std::uint64_t seed = 100;
    const Shape shape = joint_shape(pair.a.shape, pair.b.shape);
    for (const BinaryRow& row : kBinary) {
      for (const DType type : supported(kNumericTypes)) {
        if (!row.integers && !is_floating(type)) continue;
        // Integers small and never 0: equal pairs occur, products fit u8, quotients are exact in double.
        const double high = is_floating(type) ? 4 : 8;
        const double low = is_floating(type) ? 0.25 : 1;
        const bool both_signs = !row.positive;
        const Operand a =
            random_operand(pair.a.shape, pair.a.layout, type, device(), low, high, both_signs, seed++);
        const Operand b =
            random_operand(pair.b.shape, pair.b.layout, type, device(), low, high, both_signs, seed++);
        const Host expected = Host::from(
            shape, [&](const Index& at) { return row.oracle(a.host.stretched(at), b.host.stretched(at)); });
        all.push_back({std::string(row.name) + " of " + std::string(name(type)) + " " +
                           pair.a.shape.to_string() + " and " + pair.b.shape.to_string(),
                       row.function(a.tensor, b.tensor), expected, within(row.precision, type, is_vulkan())});
      }
    }
    check_all(all);
  }
}

TEST_P(ForwardElementwise, Logic) {
  const Host a(Shape{2, 2}, {0, 0, 1, 1});
  const Host b(Shape{2, 2}, {0, 1, 0, 1});
  const LazyTensor x = upload(a, DType::boolean, device());
  const LazyTensor y = upload(b, DType::boolean, device());
  const auto expect = [&](const char* what, const LazyTensor& actual, std::vector<double> expected) {
    EXPECT_EQ(actual.dtype(), DType::boolean);
    EXPECT_TRUE(agrees(actual, Host(Shape{2, 2}, std::move(expected)), {})) << what;
  };
  expect("and", logical_and(x, y), {0, 0, 0, 1});
  expect("or", logical_or(x, transpose(y)), {0, 0, 1, 1});
  expect("xor", logical_xor(x, y), {0, 1, 1, 0});
  expect("not", logical_not(x), {1, 1, 0, 0});
  expect("equal", equal(x, y), {1, 0, 0, 1});
  expect("not_equal", not_equal(x, y), {0, 1, 1, 0});
  expect("where", where(x, y, logical_not(y)), {1, 0, 0, 1});
}

TEST_P(ForwardElementwise, IntegersWrapAndPowersAreExact) {
  const Host big(Shape{4}, {2147483647, -2147483648.0, 65536, -65537});
  const LazyTensor x = upload(big, DType::i32, device());
  EXPECT_EQ((x + 1).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{-2147483647 - 1, -2147483647, 65537, -65536}));
  EXPECT_EQ((x * x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 0, 0, 131073}));
  EXPECT_EQ(negative(x).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{-2147483647, -2147483647 - 1, -65536, 65537}));
  const LazyTensor base = upload(Host(Shape{5}, {2, -3, 7, 10, 0}), DType::i32, device());
  const LazyTensor power = upload(Host(Shape{5}, {30, 5, 0, 9, 3}), DType::i32, device());
  EXPECT_EQ(pow(base, power).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1 << 30, -243, 1, 1000000000, 0}));
  if (supports(DType::i64)) {
    const LazyTensor wide =
        LazyTensor::from_vector<std::int64_t>({(1LL << 53) + 1, -(1LL << 62)}, Shape{2}, device());
    EXPECT_EQ((wide + 2).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{(1LL << 53) + 3, -(1LL << 62) + 2}));
    EXPECT_EQ(floor_divide(wide, 3).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{((1LL << 53) + 1) / 3, -1537228672809129302LL}));
  }
  if (supports(DType::u8)) {
    const LazyTensor small = upload(Host(Shape{3}, {0, 1, 200}), DType::u8, device());
    EXPECT_EQ(negative(small).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 255, 56}));
    EXPECT_EQ((small + small).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 2, 144}));
  }
}

TEST_P(ForwardElementwise, Casts) {
  const auto types = supported(kAllDTypes);
  std::vector<Pending> all;
  std::uint64_t seed = 7;
  for (const DType from : types) {
    for (const DType to : types) {
      const bool unsigned_ends =
          is_unsigned(from) || is_unsigned(to);  // negative to unsigned is no one's promise
      const Operand x =
          random_operand(Shape{33, 7}, Layout::permuted, from, device(), 0, 100, !unsigned_ends, seed++);
      all.push_back({std::string(name(from)) + " to " + std::string(name(to)),
                     astype(x.tensor, to),
                     stored(x.host, to),
                     {}});
    }
  }
  check_all(all);
}

}  // namespace
}  // namespace caldera::testing
