// Gradients of element-wise operations, first and second, against central differences in f64.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/transforms/transform_cases.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;

struct UnaryGradRow {
  const char* name;
  LazyTensor (*function)(const LazyTensor&);
  double low = 0.3;
  double high = 1.7;
  bool both_signs = true;
};

// Ranges keep away from kinks (0 for abs), poles and the edges of domains.
const UnaryGradRow kUnaryGrads[] = {
    {"negative", negative},
    {"abs", abs},
    {"sign", sign},
    {"floor", floor, 0.1, 0.9},
    {"ceil", ceil, 0.1, 0.9},
    {"round", round, 0.1, 0.4},
    {"trunc", trunc, 0.1, 0.9},
    {"exp", exp},
    {"expm1", expm1},
    {"log", log, 0.3, 2.5, false},
    {"log1p", log1p, 0.1, 0.7},
    {"sqrt", sqrt, 0.3, 2.5, false},
    {"rsqrt", rsqrt, 0.3, 2.5, false},
    {"sin", sin, 0.1, 3},
    {"cos", cos, 0.1, 3},
    {"tan", tan, 0.1, 1.2},
    {"tanh", tanh},
    {"sigmoid", sigmoid, 0.1, 3},
    {"erf", erf},
    {"reciprocal", reciprocal},
    {"square", square},
    {"silu", silu, 0.1, 3},
    {"relu by maximum", [](const LazyTensor& x) { return maximum(x, 0.0); }},
    {"scalars on both sides", [](const LazyTensor& x) { return 2.0 / (1 - x * 3) - 0.5; }, 0.5, 1.5},
    {"scalar base", [](const LazyTensor& x) { return pow(2.0, x); }},
    {"whole power of negatives", [](const LazyTensor& x) { return pow(x, 3); }},
    {"floor_divide", [](const LazyTensor& x) { return floor_divide(x, 0.7); }},
};

TEST(GradcheckElementwise, UnaryOfEveryLayout) {
  for (const UnaryGradRow& row : kUnaryGrads) {
    for (const Layout layout : kLayouts) {
      for (const Shape& shape : {Shape{7}, Shape{2, 1, 3}}) {
        const Argument argument{base_shape(shape, layout), row.low, row.high, row.both_signs};
        check_case({std::string(row.name) + " of " + to_string(layout) + " " + shape.to_string(),
                    {argument},
                    [&](Inputs x) { return row.function(view_of(x[0], shape, layout)); }});
      }
    }
  }
}

TEST(GradcheckElementwise, UnaryOfAwkwardShapes) {
  for (const UnaryGradRow& row : kUnaryGrads) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{33}, Shape{0}, Shape{3, 0, 2}}) {
      check_case({std::string(row.name) + " of " + shape.to_string(),
                  {{shape, row.low, row.high, row.both_signs}},
                  [&](Inputs x) { return row.function(x[0]); }});
    }
  }
}

struct BinaryGradRow {
  const char* name;
  LazyTensor (*function)(const LazyTensor&, const LazyTensor&);
  bool positive_left = false;
};

const BinaryGradRow kBinaryGrads[] = {
    {"add", add},
    {"subtract", subtract},
    {"multiply", multiply},
    {"divide", divide},
    {"floor_divide", floor_divide},
    {"remainder", remainder},
    {"pow", pow, true},
    {"maximum", maximum},
    {"minimum", minimum},
    {"atan2", atan2},
    {"where", [](const LazyTensor& a, const LazyTensor& b) { return where(a * a > b * b, a, b); }},
    {"where of products",
     [](const LazyTensor& a, const LazyTensor& b) { return where(a > 0, a * b, a - b); }},
    {"comparison as a number",
     [](const LazyTensor& a, const LazyTensor& b) { return astype(a < b, DType::f64) * a + b; }},
};

Argument left_of(const BinaryGradRow& row, const Shape& shape) {
  return row.positive_left ? positive(shape) : Argument{shape};
}

TEST(GradcheckElementwise, BinaryWithBroadcasting) {
  const std::pair<Shape, Shape> kShapes[] = {
      {{7}, {7}}, {{}, {}},         {{33}, {}},       {{}, {7}},
      {{1}, {7}}, {{7, 1}, {1, 3}}, {{3}, {2, 1, 3}}, {{2, 1, 3}, {4, 1}},
      {{0}, {1}}, {{0, 7}, {7}},    {{1, 1}, {}}};
  for (const BinaryGradRow& row : kBinaryGrads) {
    for (const auto& [a, b] : kShapes) {
      check_case({std::string(row.name) + " of " + a.to_string() + " and " + b.to_string(),
                  {left_of(row, a), {b}},
                  [&](Inputs x) { return row.function(x[0], x[1]); }});
    }
  }
}

TEST(GradcheckElementwise, BinaryOfStridedOperands) {
  const Shape shape{2, 3};
  for (const BinaryGradRow& row : kBinaryGrads) {
    for (const Layout left : kLayouts) {
      const Layout right = kLayouts[(static_cast<std::size_t>(left) + 1) % std::size(kLayouts)];
      check_case(
          {std::string(row.name) + " of " + to_string(left) + " and " + to_string(right),
           {left_of(row, base_shape(shape, left)), {base_shape(shape, right)}},
           [&](Inputs x) { return row.function(view_of(x[0], shape, left), view_of(x[1], shape, right)); }});
    }
  }
}

TEST(GradcheckElementwise, SharedOperands) {
  for (const BinaryGradRow& row : kBinaryGrads) {
    const std::string name(row.name);
    // The same operand twice, where the two uses are not on the kink of maximum and minimum.
    check_case({name + " of x and 3x", {positive(Shape{7})}, [&](Inputs x) {
                  return row.function(x[0], x[0] * 3.3);
                }});
    check_case({name + " of x and its transpose, used again", {positive(Shape{3, 3})}, [&](Inputs x) {
                  const LazyTensor y = row.function(x[0], transpose(x[0]) * 1.7 + 0.1);
                  return y * y + x[0];
                }});
  }
  check_case({"x * x", {{Shape{7}}}, [](Inputs x) { return x[0] * x[0]; }});
  check_case({"x / x + x - x", {{Shape{7}}}, [](Inputs x) { return x[0] / x[0] + x[0] - x[0]; }});
  check_case({"diamond", {{Shape{7}}}, [](Inputs x) {
                const LazyTensor s = sin(x[0]);
                return exp(s) * cos(s) + s / (s * s + 1.0);
              }});
}

TEST(GradcheckElementwise, WhereWithItsConditionFromOutside) {
  const LazyTensor condition =
      LazyTensor::from_vector<std::int32_t>({1, 0, 1, 1, 0, 0, 1}, Shape{7}, Device::cpu()) == 1;
  check_case(
      {"tensors", {{Shape{7}}, {Shape{7}}}, [&](Inputs x) { return where(condition, x[0], x[1] * x[0]); }});
  check_case({"scalar", {{Shape{2, 7}}}, [&](Inputs x) { return where(condition, x[0], 2.0); }});
  check_case(
      {"broadcast", {{Shape{}}, {Shape{3, 1}}}, [&](Inputs x) { return where(condition, x[0], x[1]); }});
}

TEST(GradcheckElementwise, CastsToNarrowerTypesAreLinear) {
  // f32 holds multiples of 1/64 exactly, and the function is linear: a large step has no error. What is left
  // is the cotangent, which passes through f32 on its way back (2^-24 = 6e-8).
  const GradOptions exact{.eps = 0x1p-6, .absolute = 1e-12, .relative = 1.2e-7, .quantum = 0x1p-6};
  check_case({"f64 to f32",
              {{Shape{33}}},
              [](Inputs x) { return astype(astype(x[0], DType::f32) * 4.0, DType::f64); }},
             exact);
  EXPECT_TRUE(gradients_agree([](Inputs x) { return astype(x[0], DType::f64) * 3.0; }, {{Shape{7}}}, exact));
}

TEST(GradcheckElementwise, PowerAtZero) {
  // x^0 is constant, x^1 has slope 1, x^2 slope 0, also at x = 0; 0^b is constantly 0 for b > 0.
  const LazyTensor zero = cpu_tensor({0, 0, 0}, Shape{3});
  const LazyTensor exponent = cpu_tensor({0, 1, 2}, Shape{3});
  const LazyTensor total = sum(pow(zero, exponent));
  EXPECT_EQ(grad(total, zero).to_vector<double>(), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(grad(total, exponent).to_vector<double>(), (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace caldera::testing
