// What forward-mode differentiation promises beyond the rules of single operations: what it refuses, what it
// treats as constant, and that it nests with the reverse.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/runtime/runtime.h"
#include "ops/core/node_builder.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"
#include "tests/support/transforms/jvp_check.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;

TEST(Jvp, OfAGraph) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor w = vector_of({5, 7, 11});
  const LazyTensor outputs[] = {x * x * w, sum(w), x, stop_gradient(x), astype(x, DType::i32)};
  const LazyTensor inputs[] = {x, w};
  const LazyTensor tangents[] = {vector_of({1, 10, 100}), vector_of({1, 0, 2})};
  const std::vector<LazyTensor> out = jvp(outputs, inputs, tangents);
  EXPECT_EQ(out[0].to_vector<double>(), (Doubles{2 * 5 + 1, 4 * 10 * 7, 6 * 100 * 11 + 9 * 2}));
  EXPECT_EQ(out[1].to_vector<double>(), (Doubles{3}));
  EXPECT_EQ(out[2].to_vector<double>(), (Doubles{1, 10, 100}));
  EXPECT_EQ(out[3].to_vector<double>(), (Doubles{0, 0, 0}));
  EXPECT_EQ(out[4].to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 0}));
}

TEST(Jvp, AnInputTwiceAndAnInputBehindAnother) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * 3.0;
  const LazyTensor z = y * y;
  const LazyTensor one = vector_of({1, 1});
  const LazyTensor twice[] = {x, x};
  const LazyTensor both[] = {x, y};
  const LazyTensor tangents[] = {one, one};
  EXPECT_EQ(jvp({&z, 1}, twice, tangents)[0].to_vector<double>(), (Doubles{36, 72}));
  EXPECT_EQ(jvp({&z, 1}, both, tangents)[0].to_vector<double>(), (Doubles{6 * 4, 12 * 4}));
}

TEST(Jvp, AnEmptyTangentIsZeroAndIntegersTakeNoOther) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0}, Shape{2}, Device::cpu());
  const LazyTensor w = vector_of({5, 7});
  const TensorFunction function = [](Inputs a) { return take(a[0], a[1]) * a[2]; };
  const LazyTensor primals[] = {x, which, w};
  const LazyTensor tangents[] = {vector_of({1, 10, 100}), {}, {}};
  const auto [value, along] = jvp(function, primals, tangents);
  EXPECT_EQ(value.to_vector<double>(), (Doubles{15, 7}));
  EXPECT_EQ(along.to_vector<double>(), (Doubles{500, 7}));
  const LazyTensor none[] = {{}, {}, {}};
  EXPECT_EQ(jvp(function, primals, none).second.to_vector<double>(), (Doubles{0, 0}));
  const LazyTensor wrong[] = {{}, which, {}};
  const std::string text = message_of<GradientError>([&] { jvp(function, primals, wrong); });
  EXPECT_MENTIONS(text, "input 1");
  EXPECT_MENTIONS(text, "int32");
}

TEST(Jvp, RefusesTangentsThatDoNotFit) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor narrow = vector_of({1});
  const TensorFunction function = [](Inputs a) { return a[0] * a[0]; };
  EXPECT_MENTIONS(message_of<ShapeError>([&] { jvp(function, {&x, 1}, {&narrow, 1}); }), "(1,)");
  EXPECT_THROW(jvp(function, {&x, 1}, {}), ShapeError);
}

TEST(Jvp, TangentsHaveTheDtypeOfTheirValues) {
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2}, Shape{2}, Device::cpu());
  const LazyTensor along = vector_of({3, 4});
  const auto [value, tangent] =
      jvp(TensorFunction([](Inputs a) { return a[0] * a[0]; }), {&x, 1}, {&along, 1});
  EXPECT_EQ(tangent.to_vector<float>(), (std::vector<float>{6, 16}));
}

TEST(Jvp, OfScalarLeaves) {
  const LazyTensor number = 3.0;
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2}, Shape{2}, Device::cpu());
  const LazyTensor y = x * number;
  const LazyTensor along = 2.0;
  EXPECT_EQ(jvp({&y, 1}, {&number, 1}, {&along, 1})[0].to_vector<float>(), (std::vector<float>{2, 4}));
  const auto [value, tangent] =
      jvp(TensorFunction([&](Inputs a) { return a[0] * a[0] * x; }), {&number, 1}, {&along, 1});
  EXPECT_EQ(tangent.to_vector<float>(), (std::vector<float>{12, 24}));
}

TEST(Jvp, NamesAnOperationWithoutARule) {
  static const OpDef kWithoutRule{
      .name = "frobnicate", .kind = OpClass::identity, .vjp = ops::pass_cotangent};
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor c = vector_of({3, 4});
  const auto frobnicate = [](const LazyTensor& y) {
    return ops::make(kWithoutRule, y.shape(), y.dtype(), {y});
  };
  const TensorFunction function = [&](Inputs a) { return frobnicate(a[0] * a[0]); };
  EXPECT_MENTIONS(message_of<GradientError>([&] { jvp(function, {&x, 1}, {&c, 1}); }), "frobnicate");
  const auto off_the_way =
      jvp(TensorFunction([&](Inputs a) { return frobnicate(c) * a[0]; }), {&x, 1}, {&c, 1});
  EXPECT_EQ(off_the_way.second.to_vector<double>(), (Doubles{9, 16}));
}

TEST(Jvp, PassesAValueThatWasEvaluatedBefore) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor z = y + 1.0;
  y.eval();
  EXPECT_EQ(jvp({&z, 1}, {&x, 1}, {&x, 1})[0].to_vector<double>(), (Doubles{2, 8}));
}

TEST(Jvp, AllowsEvaluationInside) {
  const LazyTensor x = vector_of({1, 2});
  const TensorFunction function = [](Inputs a) {
    const LazyTensor y = (a[0] * a[0]).eval();
    return sum(y).item<double>() > 0 ? exp(y) : y;
  };
  const Doubles slope = jvp(function, {&x, 1}, {&x, 1}).second.to_vector<double>();
  EXPECT_NEAR(slope[0], 2 * std::exp(1.0), 1e-12);
  EXPECT_NEAR(slope[1], 8 * std::exp(4.0), 1e-12 * slope[1]);
}

TEST(Jvp, TiesOfExtremaShareEquallyOrTheFirstCounts) {
  const LazyTensor x = cpu_tensor({1, 3, 3, 2, 3, 0}, Shape{2, 3});
  const LazyTensor along = cpu_tensor({1, 2, 4, 8, 16, 32}, Shape{2, 3});
  const auto tangent = [&](const TensorFunction& f) {
    return jvp(f, {&x, 1}, {&along, 1}).second.to_vector<double>();
  };
  EXPECT_EQ(tangent([](Inputs a) { return amax(a[0], -1); }), (Doubles{3, 16}));
  EXPECT_EQ(tangent([](Inputs a) { return amin(-a[0], 0); }), (Doubles{-8, -9, -4}));
  EXPECT_EQ(tangent([](Inputs a) { return max(a[0], -1); }), (Doubles{2, 16}));
  EXPECT_EQ(tangent([](Inputs a) { return min(-a[0], 0); }), (Doubles{-8, -2, -4}));
  EXPECT_EQ(tangent([](Inputs a) { return maximum(a[0], a[0] * 1.0); }), (Doubles{1, 2, 4, 8, 16, 32}));
}

// ---- nesting

TEST(Jvp, OfJvp) {
  const LazyTensor x = vector_of({0.5, 2});
  const LazyTensor one = vector_of({1, 1});
  const TensorFunction cube = [](Inputs a) { return a[0] * a[0] * a[0]; };
  const TensorFunction slope = [&](Inputs a) { return jvp(cube, a, {&one, 1}).second; };
  const TensorFunction curvature = [&](Inputs a) { return jvp(slope, a, {&one, 1}).second; };
  EXPECT_EQ(slope({&x, 1}).to_vector<double>(), (Doubles{0.75, 12}));
  EXPECT_EQ(curvature({&x, 1}).to_vector<double>(), (Doubles{3, 12}));
  EXPECT_EQ(jvp(curvature, {&x, 1}, {&one, 1}).second.to_vector<double>(), (Doubles{6, 6}));
}

TEST(Jvp, DoesNotConfuseItsPerturbationWithThatOfAnother) {
  // d/dx (x * d/dy (x + y)) is 1: the inner derivative is the constant 1.
  const LazyTensor x = vector_of({3});
  const LazyTensor one = vector_of({1});
  const TensorFunction outer = [&](Inputs a) {
    const TensorFunction inner = [&](Inputs b) { return a[0] + b[0]; };
    return a[0] * jvp(inner, a, {&one, 1}).second;
  };
  EXPECT_EQ(jvp(outer, {&x, 1}, {&one, 1}).second.to_vector<double>(), (Doubles{1}));
  EXPECT_EQ(value_and_grad([&](Inputs a) { return sum(outer(a)); }, {&x, 1}).second[0].to_vector<double>(),
            (Doubles{1}));
}

const TensorFunction kQuartic = [](Inputs a) {  // sum over i, j of x_i^2 x_j^2, plus sum of x^3
  const LazyTensor q = sum(a[0] * a[0]);
  return q * q + sum(a[0] * a[0] * a[0]);
};
/// H v = 8 x (x . v) + 4 |x|^2 v + 6 x v.
Doubles hessian_times(const Doubles& x, const Doubles& v) {
  double xv = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xv += x[i] * v[i];
    xx += x[i] * x[i];
  }
  Doubles out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(8 * x[i] * xv + 4 * xx * v[i] + 6 * x[i] * v[i]);
  return out;
}

TEST(Hvp, MatchesAClosedFormInEveryOrderOfModes) {
  const Doubles x0{1, 2, -3}, v0{0.5, -1, 2};
  const LazyTensor x = vector_of(x0), v = vector_of(v0);
  const Doubles expected = hessian_times(x0, v0);
  EXPECT_EQ(hvp(kQuartic, {&x, 1}, {&v, 1})[0].to_vector<double>(), expected);
  const TensorFunction along = [&](Inputs a) { return jvp(kQuartic, a, {&v, 1}).second; };
  EXPECT_EQ(value_and_grad(along, {&x, 1}).second[0].to_vector<double>(), expected) << "reverse over forward";
  const TensorFunction pulled = [&](Inputs a) { return sum(value_and_grad(kQuartic, a).second[0] * v); };
  EXPECT_EQ(value_and_grad(pulled, {&x, 1}).second[0].to_vector<double>(), expected)
      << "reverse over reverse";
}

TEST(Hvp, OfSeveralArguments) {
  const LazyTensor primals[] = {vector_of({1, 2}), vector_of({3, 5})};
  const LazyTensor tangents[] = {vector_of({1, 10}), vector_of({100, 1000})};
  const auto out = hvp([](Inputs a) { return sum(a[0] * a[0] * a[1]); }, primals, tangents);
  EXPECT_EQ(out[0].to_vector<double>(), (Doubles{2 * 3 * 1 + 2 * 1 * 100, 2 * 5 * 10 + 2 * 2 * 1000}));
  EXPECT_EQ(out[1].to_vector<double>(), (Doubles{2 * 1 * 1, 2 * 2 * 10}));
}

TEST(Jvp, OfASoftmaxWithATargetOnTheWay) {
  // The short forms of a softmax's derivative must not pass by a value that is itself differentiated.
  const LazyTensor x = vector_of({0.1, 0.7, -0.4});
  const LazyTensor e = exp(x);
  const LazyTensor p = e / sum(e, 0, true);
  const LazyTensor w = vector_of({1, 2, 5});
  const LazyTensor loss = sum(p * w);
  const std::vector<LazyTensor> grads = grad(loss, {x, e});
  const Doubles gx = grads[0].to_vector<double>(), ge = grads[1].to_vector<double>(),
                ex = e.to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(gx[i], ge[i] * ex[i], 1e-14);
  EXPECT_GT(std::abs(ge[0]), 0.1);
}

TEST(Jvp, OfWhatLooksLikeASoftmaxButStopsTheGradientOfItsSum) {
  const LazyTensor x = vector_of({0.1, 0.7, -0.4});
  const LazyTensor along = vector_of({1, 2, 5});
  const TensorFunction function = [](Inputs a) {
    const LazyTensor e = exp(a[0]);
    return e / stop_gradient(sum(e, 0, true));
  };
  const Doubles p = function({&x, 1}).to_vector<double>();
  const Doubles tangent = jvp(function, {&x, 1}, {&along, 1}).second.to_vector<double>();
  const LazyTensor y = function({&x, 1});
  const Doubles pulled = vjp({&y, 1}, {&x, 1}, {&along, 1})[0].to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(tangent[i], p[i] * along.to_vector<double>()[i], 1e-15);
    EXPECT_NEAR(pulled[i], p[i] * along.to_vector<double>()[i], 1e-15);
  }
}

}  // namespace
}  // namespace caldera::testing
