// What differentiation promises beyond the rules of single operations: what it refuses, what it treats as
// constant, and what it leaves behind.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/graph/graph.h"
#include "engine/runtime/runtime.h"
#include "ops/build.h"
#include "tests/support/gradcheck.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;

TEST(Vjp, SeveralOutputs) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor w = vector_of({5, 7, 11});
  const LazyTensor outputs[] = {x * x, sum(x * w), x};
  const LazyTensor cotangents[] = {vector_of({1, 10, 100}), cpu_tensor({2}, Shape{}),
                                   vector_of({0.5, 0.25, 0})};
  const LazyTensor inputs[] = {x, w};
  const auto grads = vjp(outputs, inputs, cotangents);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{2 + 10 + 0.5, 40 + 14 + 0.25, 600 + 22}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{2, 4, 6}));
}

TEST(Vjp, OneOutputTwiceAndOneInputTwice) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor outputs[] = {y, y};
  const LazyTensor cotangents[] = {vector_of({1, 1}), vector_of({10, 100})};
  const LazyTensor inputs[] = {x, x};
  for (const LazyTensor& g : vjp(outputs, inputs, cotangents))
    EXPECT_EQ(g.to_vector<double>(), (Doubles{22, 404}));
}

TEST(Vjp, AnInputBehindAnotherInput) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * 3.0;
  const auto grads = grad(sum(y * y), {x, y});
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{18, 36}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{6, 12}));
}

TEST(Vjp, UnusedInputsGetZerosButGradRefusesThem) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor unused = cpu_tensor({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  const LazyTensor loss = sum(x * x);
  const LazyTensor one = ones_like(loss);
  const LazyTensor inputs[] = {x, unused};
  const auto grads = vjp({&loss, 1}, inputs, {&one, 1});
  EXPECT_EQ(grads[1].shape(), unused.shape());
  EXPECT_EQ(grads[1].to_vector<double>(), Doubles(6, 0));
  const std::string text = message_of<GradientError>([&] { grad(loss, inputs); });
  EXPECT_MENTIONS(text, "input 1");
  EXPECT_MENTIONS(text, "(2, 3)");
}

TEST(Vjp, RefusesWhatHasNoGradient) {
  const LazyTensor x = vector_of({1, 2});
  for (const DType type :
       {DType::boolean, DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64}) {
    const LazyTensor k = astype(x, type);
    EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(k * x), k); }), std::string(name(type)));
  }
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(x * x, x); }), "(2,)");  // not a scalar
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(astype(x, DType::i32)), x); }), "int32");
  const LazyTensor y = x * x;
  const LazyTensor narrow = cpu_tensor({1}, Shape{1});
  EXPECT_THROW(vjp({&y, 1}, {&x, 1}, {&narrow, 1}), ShapeError);
  EXPECT_THROW(vjp({&y, 1}, {&x, 1}, {}), ShapeError);
}

TEST(Vjp, GradientsHaveTheDtypeOfTheirInputs) {
  const LazyTensor narrow = LazyTensor::from_vector<float>({1, 2}, Shape{2}, Device::cpu());
  const LazyTensor wide = vector_of({3, 4});
  const auto grads = grad(sum(narrow * wide), {narrow, wide});
  EXPECT_EQ(grads[0].dtype(), DType::f32);
  EXPECT_EQ(grads[1].dtype(), DType::f64);
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(Vjp, SourcesAreConstants) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor noise = random_normal(Shape{3}, 7, DType::f64, Device::cpu()) +
                           random_uniform(Shape{3}, 7, DType::f64, Device::cpu());
  const LazyTensor steps = arange(3, DType::f64, Device::cpu());
  const LazyTensor factor = zeros_like(x) + ones_like(x) * full_like(x, 4) + steps + noise;
  const Doubles slope = grad(sum(factor * x), x).to_vector<double>();
  EXPECT_EQ(slope, factor.to_vector<double>());
}

TEST(Detach, AnEvaluatedValueOnTheWayIsAnError) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor loss = sum(y * x);
  y.eval();
  const std::string text = message_of<GradientError>([&] { grad(loss, x); });
  EXPECT_MENTIONS(text, "evaluated");
  EXPECT_MENTIONS(text, "multiply");
  const LazyTensor total = sum(x * x).eval();
  EXPECT_THROW(grad(total, x), GradientError);
}

TEST(Detach, MakesAConstant) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor lazy = x * x;
  EXPECT_EQ(grad(sum(lazy.detach() * x), x).to_vector<double>(), (Doubles{1, 4}));
  EXPECT_EQ(grad(sum(stop_gradient(lazy) * x), x).to_vector<double>(), (Doubles{1, 4}));
  EXPECT_EQ(grad(sum(lazy * x), x).to_vector<double>(), (Doubles{3, 12}))
      << "the original keeps its gradient";
  const LazyTensor ready = (x * x).eval();
  EXPECT_EQ(grad(sum(ready.detach() * x), x).to_vector<double>(), (Doubles{1, 4}));
  EXPECT_THROW(grad(sum(stop_gradient(x)), x), GradientError) << "nothing is left that depends on x";
}

TEST(Detach, AnEvaluatedInputIsALeaf) {
  const LazyTensor x = (vector_of({1, 2}) * 3.0).eval();  // as a parameter is after a step of training
  EXPECT_EQ(grad(sum(x * x), x).to_vector<double>(), (Doubles{6, 12}));
  const LazyTensor older = (vector_of({5, 6}) * 1.0).eval();
  const LazyTensor younger = vector_of({1, 1});
  EXPECT_EQ(grad(sum(older * younger), younger).to_vector<double>(), (Doubles{5, 6}));
}

// ---- rules
// -------------------------------------------------------------------------------------------------------

const OpDef kWithoutRule{.name = "frobnicate", .kind = OpClass::identity};
LazyTensor frobnicate(const LazyTensor& x) { return ops::make(kWithoutRule, x.shape(), x.dtype(), {x}); }

TEST(MissingRule, IsAnErrorThatNamesTheOperation) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor c = vector_of({3, 4});
  EXPECT_EQ(frobnicate(x).to_vector<double>(), (Doubles{1, 2})) << "without a gradient it works";
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(frobnicate(x * x)), x); }), "frobnicate");
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(frobnicate(x) + x), x); }), "frobnicate");
  EXPECT_EQ(grad(sum(frobnicate(c) * x), x).to_vector<double>(), (Doubles{3, 4})) << "off the way";
  EXPECT_EQ(grad(sum(frobnicate(stop_gradient(x)) * x), x).to_vector<double>(), (Doubles{1, 2}));
}

TEST(MissingRule, ARuleThatForgetsAnInputOrItsShapeIsAnError) {
  static const OpDef kForgetful{
      .name = "forgetful", .kind = OpClass::elementwise, .scalar = ScalarOp::add, .vjp = [](VjpContext& c) {
        c.grads[0] = c.cotangent;
      }};
  static const OpDef kMisshapen{.name = "misshapen", .kind = OpClass::identity, .vjp = [](VjpContext& c) {
                                  c.grads[0] = sum(c.cotangent);
                                }};
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor c = vector_of({3, 4});
  const auto forgetful = [](const LazyTensor& a, const LazyTensor& b) {
    return ops::make(kForgetful, a.shape(), a.dtype(), {a, b});
  };
  EXPECT_EQ(grad(sum(forgetful(x, c)), x).to_vector<double>(), (Doubles{1, 1}));
  const std::string text = message_of<GradientError>([&] { grad(sum(forgetful(c, x)), x); });
  EXPECT_MENTIONS(text, "forgetful");
  EXPECT_MENTIONS(text, "input 1");
  EXPECT_THROW(grad(sum(ops::make(kMisshapen, x.shape(), x.dtype(), {x})), x), ShapeError);
}

// ---- value_and_grad
// ----------------------------------------------------------------------------------------------

TEST(ValueAndGrad, GivesValueAndGradients) {
  const LazyTensor arguments[] = {vector_of({1, 2}), vector_of({3, 4}), vector_of({9})};
  const auto [value, grads] = value_and_grad([](Inputs x) { return sum(x[0] * x[0] * x[1]); }, arguments);
  EXPECT_EQ(value.item<double>(), 1 * 3 + 4 * 4);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{6, 16}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{1, 4}));
  EXPECT_EQ(grads[2].to_vector<double>(), (Doubles{0})) << "an argument that is ignored gets zeros";
}

TEST(ValueAndGrad, AllowsEvaluationInside) {
  const LazyTensor arguments[] = {vector_of({1, 2})};
  for (const double scale : {1.0, -1.0}) {
    const auto [value, grads] = value_and_grad(
        [&](Inputs x) {
          const LazyTensor y = x[0] * x[0] * scale;
          y.eval();
          // Control flow that depends on data is why evaluation inside must work.
          const LazyTensor z = sum(y).item<double>() > 0 ? exp(y) : y * 3.0;
          return sum(z.eval()).eval();
        },
        arguments);
    const Doubles expected = scale > 0 ? Doubles{2 * std::exp(1.0), 4 * std::exp(4.0)} : Doubles{-6, -12};
    const Doubles actual = grads[0].to_vector<double>();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12 * std::abs(expected[i]));
  }
}

TEST(ValueAndGrad, NestsForSecondDerivatives) {
  const LazyTensor arguments[] = {vector_of({1, 2})};
  const auto [value, grads] = value_and_grad(
      [](Inputs x) {
        const auto inner = value_and_grad(
            [](Inputs y) {
              const LazyTensor cube = y[0] * y[0] * y[0];
              return sum(cube.eval());
            },
            x);
        return sum(inner.second[0].eval());  // 3 x^2
      },
      arguments);
  EXPECT_EQ(value.item<double>(), 15);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{6, 12}));
}

TEST(ValueAndGrad, KeepsNoHistory) {
  Backend& cpu = backend(Device::cpu());
  LazyTensor parameter = vector_of(Doubles(1025, 0.5));
  std::uint64_t live = 0;
  for (int step = 0; step < 6; ++step) {
    auto [value, grads] = value_and_grad(
        [](Inputs x) {
          const LazyTensor y = sin(x[0]);
          return sum((y * y).eval());
        },
        {&parameter, 1});
    parameter = parameter - grads[0] * 0.1;
    eval({parameter, value, grads[0]});
    EXPECT_EQ(Graph({parameter, value, grads[0]}).node_count(), 3U) << "step " << step;
    value = grads[0] = LazyTensor();
    if (step == 1) live = cpu.counters().live_bytes;
    if (step > 1) {
      EXPECT_EQ(cpu.counters().live_bytes, live) << "step " << step;
    }
  }
}

TEST(ValueAndGrad, LetsGoOfWhatTheFunctionPutAside) {
  const LazyTensor parameter = vector_of({1, 2});
  LazyTensor inside;
  LazyTensor afterwards;
  auto [value, grads] = value_and_grad(
      [&](Inputs x) {
        const LazyTensor h = sin(x[0] * x[0]);
        inside = sum(h * 3.0).eval();
        afterwards = sum(h * 5.0);
        return sum(h);
      },
      {&parameter, 1});
  eval({value, grads[0], afterwards});
  EXPECT_EQ(Graph({inside}).node_count(), 1U);
  EXPECT_EQ(Graph({afterwards}).node_count(), 1U);
}

TEST(ValueAndGrad, EndsItsTraceWhenTheFunctionThrows) {
  LazyTensor parameter = vector_of({1, 2});
  EXPECT_THROW(value_and_grad([](Inputs) -> LazyTensor { throw ValueError("no"); }, {&parameter, 1}),
               ValueError);
  EXPECT_THROW(value_and_grad([](Inputs x) { return x[0]; }, {&parameter, 1}), GradientError);
  auto [value, grads] = value_and_grad([](Inputs x) { return sum(x[0] * x[0]); }, {&parameter, 1});
  parameter = parameter - grads[0];
  eval({parameter});
  EXPECT_EQ(Graph({parameter}).node_count(), 1U);
}

}  // namespace
}  // namespace caldera::testing
