// What differentiation promises beyond the rules of single operations: what it refuses, what it treats as
// constant, and what it leaves behind.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/graph/graph.h"
#include "engine/runtime/runtime.h"
#include "ops/core/node_builder.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

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

// ---- constants that were evaluated: none of them has come from the input

TEST(History, AConstantThatIsYoungerThanTheInputIsNoWay) {
  const LazyTensor k = vector_of({3, 5});
  const LazyTensor leaf = vector_of({1, 2});
  const LazyTensor evaluated = (vector_of({1, 2}) * 1.0).eval();
  const LazyTensor lazy = leaf * 1.0;
  const LazyTensor of_numbers = random_normal(Shape{2}, 7, DType::f64, Device::cpu());
  for (const LazyTensor& w : {leaf, evaluated, lazy, of_numbers}) {
    const LazyTensor c = (k * 2.0).eval();
    EXPECT_EQ(grad(sum(w * c), w).to_vector<double>(), (Doubles{6, 10}));
    EXPECT_EQ(jvp({&c, 1}, {&w, 1}, {&c, 1})[0].to_vector<double>(), (Doubles{0, 0}));
    const LazyTensor later = (c * 2.0 + random_uniform(Shape{2}, 3, DType::f64, Device::cpu()) * 0.0).eval();
    EXPECT_EQ(grad(sum(w * later), w).to_vector<double>(), (Doubles{12, 20})) << "of what was evaluated";
  }
}

TEST(History, AConstantThatIsEvaluatedInsideIsNoWay) {
  const LazyTensor k = vector_of({3, 5}), w = vector_of({1, 2});
  const TensorFunction function = [&](Inputs a) {
    const LazyTensor c = (k * 2.0).eval();
    const LazyTensor from_outside = (w * 2.0).eval();  // the argument's value, but not the argument
    return sum(a[0] * c + a[0] * from_outside * 0.0);
  };
  const UnaryFunction unary = [&](const LazyTensor& a) { return function({&a, 1}); };
  EXPECT_EQ(value_and_grad(function, {&w, 1}).second[0].to_vector<double>(), (Doubles{6, 10}));
  EXPECT_EQ(jvp(function, {&w, 1}, {&w, 1}).second.item<double>(), 26);
  EXPECT_EQ(hvp(function, {&w, 1}, {&w, 1})[0].to_vector<double>(), (Doubles{0, 0}));
  const TensorFunction of_constants = [&](Inputs a) { return sum(a[0] * (k * 2.0).eval()); };
  EXPECT_EQ(grad(checkpoint(of_constants)({&w, 1}), w).to_vector<double>(), (Doubles{6, 10}));
  for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward}) {
    EXPECT_EQ(jacobian(unary, w, mode).to_vector<double>(), (Doubles{6, 10}));
  }
  const UnaryFunction slope = [&](const LazyTensor& a) {
    return value_and_grad(function, {&a, 1}).second[0];
  };
  EXPECT_EQ(vmap(slope)(stack({w, w})).to_vector<double>(), (Doubles{6, 10, 6, 10}));
}

TEST(History, AConstantThatIsEvaluatedWithOthersIsNoWay) {
  const LazyTensor k = vector_of({3, 5});
  {
    const LazyTensor w = k * 1.5, v = k * 2.5;  // siblings
    eval({w, v});
    EXPECT_EQ(grad(sum(w * v), w).to_vector<double>(), v.to_vector<double>());
  }
  {
    const LazyTensor w = random_normal(Shape{2}, 1, DType::f64, Device::cpu());
    const LazyTensor v = random_normal(Shape{2}, 2, DType::f64, Device::cpu());
    const LazyTensor c = (k * 2.0).eval();
    eval({w, v});
    EXPECT_EQ(grad(sum(w * c), w).to_vector<double>(), (Doubles{6, 10}));
    EXPECT_EQ(grad(sum(v * c), v).to_vector<double>(), (Doubles{6, 10}));
    const LazyTensor d = k * 3.0, of_w = w * 2.0;
    eval({d, of_w});
    EXPECT_EQ(grad(sum(w * d), w).to_vector<double>(), (Doubles{9, 15}));
  }
}

TEST(History, InALoopOfTraining) {
  LazyTensor w = vector_of({1, 2});
  const LazyTensor prepared = (vector_of({3, 5}) * 1.0).eval();
  for (int step = 0; step < 200; ++step) {  // more steps than a lineage names
    const LazyTensor batch = (prepared * static_cast<double>(step)).eval();
    const LazyTensor g = grad(sum(w * batch), w);
    w = w - g * 0.0 * batch;
    w.eval();
    EXPECT_EQ(g.to_vector<double>(), (Doubles{3.0 * step, 5.0 * step}));
    const LazyTensor behind = (w * 2.0).eval();
    ASSERT_THROW(grad(sum(w * behind), w), GradientError) << "step " << step;
  }
}

TEST(History, AGradientThatWouldBeLostIsAlwaysAnError) {
  const LazyTensor k = vector_of({3, 5});
  const auto refused = [](const LazyTensor& c, const LazyTensor& w) {
    EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(c * w), w); }), "evaluated before");
    EXPECT_MENTIONS(message_of<GradientError>([&] { jvp({&c, 1}, {&w, 1}, {&w, 1}); }), "evaluated before");
    EXPECT_EQ(grad(sum(stop_gradient(c) * w), w).to_vector<double>(), c.to_vector<double>());
    EXPECT_EQ(grad(sum(c.detach() * w), w).to_vector<double>(), c.to_vector<double>());
  };
  const LazyTensor leaf = vector_of({1, 2});
  refused(sin(leaf).eval(), leaf);
  refused((sin(leaf).eval() * 2.0).eval(), leaf);
  const LazyTensor numbers = random_normal(Shape{2}, 7, DType::f64, Device::cpu());
  refused((numbers * 2.0).eval(), numbers);
  {  // evaluated before, and after, what came of it
    const LazyTensor w = (k * 1.5).eval();
    refused((w * 2.0).eval(), w);
    const LazyTensor v = k * 1.5, c = (v * 2.0).eval();
    refused(c, v);
    v.eval();
    refused(c, v);
    refused((c * 3.0).eval(), v);
  }
  {  // what it was computed of is evaluated only later
    const LazyTensor h = k * 1.5, x = sin(h), c = (x * 2.0).eval();
    h.eval();
    refused(c, x);
  }
  {  // what it is computed of is evaluated together with others
    const LazyTensor m = vector_of({7, 7}), h = k * 1.5, x = sin(h), c = (x * 2.0).eval();
    eval({h, m * 2.0});
    refused(c, x);
    std::vector<LazyTensor> many{x};
    for (int i = 0; i < 20; ++i) many.push_back(vector_of({1, 1}) * 2.0);
    eval(many);
    refused(c, x);
  }
  {  // in one evaluation, in either order
    const LazyTensor w = k * 1.5, c = w * 2.0, u = k * 2.5, d = u * 2.0;
    eval({w, c});
    eval({d, u});
    refused(c, w);
    refused(d, u);
  }
  {  // through calls and names
    const TensorFunction twice = custom_vjp(
        [](Inputs a) { return a[0] * 2.0; },
        [](Inputs, const LazyTensor&, const LazyTensor& g) { return std::vector<LazyTensor>{g * 2.0}; });
    refused(twice({&leaf, 1}).eval(), leaf);
    const TensorFunction checked = checkpoint(TensorFunction([](Inputs a) { return a[0] * 2.0; }));
    refused(checked({&leaf, 1}).eval(), leaf);
    const LazyTensor traced = value_and_grad([](Inputs a) { return sum(a[0] * a[0]); }, {&leaf, 1}).second[0];
    refused(traced.eval(), leaf);
  }
  {  // of more leaves than are remembered
    LazyTensor total = leaf;
    for (int i = 0; i < 300; ++i) total = total + vector_of({1, 1});
    refused(total.eval(), leaf);
  }
}

TEST(History, WhatAStoppedGradientCameFromIsAConstant) {
  const LazyTensor w = vector_of({1, 2});
  const LazyTensor c = (stop_gradient(w) * 3.0).eval();
  EXPECT_EQ(grad(sum(w * c), w).to_vector<double>(), (Doubles{3, 6}));
  const LazyTensor rounded = (floor(w) * 3.0).eval();
  EXPECT_EQ(grad(sum(w * rounded), w).to_vector<double>(), (Doubles{3, 6}));
  const LazyTensor off_the_way = stop_gradient((w * 3.0).eval());
  EXPECT_EQ(grad(sum(w * off_the_way), w).to_vector<double>(), (Doubles{3, 6}));
}

TEST(History, KeepsNothingAlive) {
  Backend& cpu = backend(Device::cpu());
  const LazyTensor c = (vector_of(Doubles(1025, 0.5)) * 2.0).eval();
  const std::uint64_t live = cpu.counters().live_bytes;
  LazyTensor last = c;
  for (int i = 0; i < 100; ++i) last = (last * vector_of(Doubles(1025, 1))).eval();
  last = LazyTensor();
  EXPECT_EQ(cpu.counters().live_bytes, live);
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

TEST(ValueAndGrad, GivesIntegersAnEmptyGradient) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0, 2}, Shape{3}, Device::cpu());
  const LazyTensor mask = x > 1.5;
  const TensorFunction function = [](Inputs a) { return sum(where(a[2], take(a[1], a[0]), a[1]) * a[1]); };
  const LazyTensor arguments[] = {which, x, mask};
  const auto [value, grads] = value_and_grad(function, arguments);
  ASSERT_EQ(grads.size(), 3U);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_FALSE(grads[2].defined());
  EXPECT_EQ(value.item<double>(), 1 * 1 + 1 * 2 + 3 * 3);
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{2 + 2, 1, 6}));
  const LazyTensor tangents[] = {{}, vector_of({1, 10, 100}), {}};
  const std::vector<LazyTensor> products = hvp(function, arguments, tangents);
  EXPECT_FALSE(products[0].defined());
  EXPECT_EQ(products[1].to_vector<double>(), (Doubles{2 * 1 + 10, 1, 200}));
  const std::string text = message_of<GradientError>([&] { value_and_grad(function, {&which, 1}); });
  EXPECT_MENTIONS(text, "value_and_grad: no argument is floating");
  EXPECT_MENTIONS(text, "int32");
}

// ---- what is not there
// ----------------------------------------------------------------------------------------------

TEST(EmptyFunctions, AreRefusedByTheTransformThatIsCalled) {
  const LazyTensor x = vector_of({1, 2});
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"value_and_grad",
       [&] {
         value_and_grad({}, {&x, 1});
       }},
      {"jvp",
       [&] {
         jvp(VectorFunction(), {&x, 1}, {&x, 1});
       }},
      {"jvp",
       [&] {
         jvp(TensorFunction(), {&x, 1}, {&x, 1});
       }},
      {"hvp",
       [&] {
         hvp({}, {&x, 1}, {&x, 1});
       }},
      {"jacobian", [&] { jacobian(UnaryFunction(), x); }},
      {"jacobian", [&] { jacobian(UnaryFunction()); }},
      {"jacobian",
       [&] {
         jacobian(VectorFunction(), {&x, 1});
       }},
      {"hessian", [&] { hessian(UnaryFunction(), x); }},
      {"hessian", [&] { hessian(UnaryFunction()); }},
      {"hessian",
       [&] {
         hessian(TensorFunction(), {&x, 1});
       }},
      {"vmap", [&] { vmap(UnaryFunction()); }},
      {"vmap", [&] { vmap(TensorFunction()); }},
      {"vmap", [&] { vmap(VectorFunction()); }},
      {"checkpoint", [&] { checkpoint(UnaryFunction()); }},
      {"checkpoint", [&] { checkpoint(TensorFunction()); }},
      {"checkpoint", [&] { checkpoint(VectorFunction()); }},
  };
  for (const auto& [transform, call] : calls) {
    EXPECT_EQ(message_of<ValueError>(call).find(std::string(transform) + ": the function is empty"), 0U)
        << transform;
  }
}

TEST(EmptyTensors, AreRefusedByNameAndPosition) {
  const LazyTensor x = vector_of({1, 2}), none;
  const LazyTensor second[] = {x, none}, both[] = {x, x};
  const TensorFunction total = [](Inputs a) { return sum(a[0]); };
  const VectorFunction as_they_are = [](Inputs a) { return std::vector<LazyTensor>(a.begin(), a.end()); };
  const UnaryFunction forgets = [](const LazyTensor&) { return LazyTensor(); };
  const TensorFunction forgets_all = [](Inputs) { return LazyTensor(); };
  const VectorFunction forgets_one = [](Inputs a) { return std::vector<LazyTensor>{a[0], {}}; };
  const VectorFunction custom =
      custom_vjp(CustomVjp{.name = "mine", .forward = forgets_one, .backward = [](Inputs, Inputs, Inputs) {
                             return std::vector<LazyTensor>();
                           }});
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"vjp: output 1", [&] { vjp(second, both, both); }},
      {"vjp: input 1", [&] { vjp(both, second, both); }},
      {"vjp: cotangent 1", [&] { vjp(both, both, second); }},
      {"grad: output 0", [&] { grad(none, x); }},
      {"grad: input 1", [&] { grad(sum(x), second); }},
      {"value_and_grad: argument 1", [&] { value_and_grad(total, second); }},
      {"value_and_grad: result 0", [&] { value_and_grad(forgets_all, both); }},
      {"jvp: output 1", [&] { jvp(second, both, both); }},
      {"jvp: input 1", [&] { jvp(both, second, both); }},
      {"jvp: argument 1", [&] { jvp(as_they_are, second, both); }},
      {"jvp: result 1", [&] { jvp(forgets_one, both, both); }},
      {"hvp: argument 1", [&] { hvp(total, second, both); }},
      {"hvp: result 0", [&] { hvp(forgets_all, both, both); }},
      {"jacobian: argument 0", [&] { jacobian([](const LazyTensor& a) { return a; }, none); }},
      {"jacobian: result 0", [&] { jacobian(forgets, x); }},
      {"jacobian: result 1", [&] { jacobian(forgets_one, both); }},
      {"hessian: argument 0", [&] { hessian([](const LazyTensor& a) { return sum(a); }, none); }},
      {"hessian: result 0", [&] { hessian(forgets, x); }},
      {"vmap: argument 1", [&] { vmap(as_they_are)(second); }},
      {"vmap: result 1", [&] { vmap(forgets_one)(both); }},
      {"checkpoint: argument 1", [&] { checkpoint(as_they_are)(second); }},
      {"checkpoint: result 1", [&] { checkpoint(forgets_one)(both); }},
      {"custom_vjp 'mine': argument 1", [&] { custom(second); }},
      {"custom_vjp 'mine': result 1", [&] { custom(both); }},
  };
  for (const auto& [start, call] : calls) {
    EXPECT_EQ(message_of<ValueError>(call).find(std::string(start) + " is an empty LazyTensor"), 0U) << start;
  }
}

TEST(Errors, BeginWithTheTransformThatIsCalled) {
  const LazyTensor x = vector_of({1, 2}), narrow = vector_of({1}), k = astype(x, DType::i32);
  const LazyTensor both[] = {x, x}, one_wrong[] = {x, narrow}, one_whole[] = {x, k};
  const TensorFunction odd = [](Inputs a) { return sum(frobnicate(a[0] * a[0])); };
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"vjp: cotangent 1 has shape (1,), output 1 has (2,)", [&] { vjp(both, both, one_wrong); }},
      {"vjp: input 1", [&] { vjp(both, one_whole, both); }},
      {"grad: input 1", [&] { grad(sum(x * k), one_whole); }},
      {"jvp: tangent 1 has shape (1,), input 1 has (2,)", [&] { jvp(both, both, one_wrong); }},
      {"vjp: 'frobnicate'",
       [&] {
         const LazyTensor y = odd({&x, 1}), g = ones_like(y);
         vjp({&y, 1}, {&x, 1}, {&g, 1});
       }},
      {"value_and_grad: 'frobnicate'",
       [&] {
         value_and_grad(odd, {&x, 1});
       }},
      {"value_and_grad: the output must be one",
       [&] {
         value_and_grad([](Inputs a) { return a[0]; }, {&x, 1});
       }},
      {"jvp: 'frobnicate'",
       [&] {
         jvp(odd, {&x, 1}, {&x, 1});
       }},
      {"hvp: 'frobnicate'",
       [&] {
         hvp(odd, {&x, 1}, {&x, 1});
       }},
      {"hvp: tangent 0",
       [&] {
         hvp([](Inputs a) { return sum(a[0]); }, {&x, 1}, {&narrow, 1});
       }},
      {"jacobian: 'frobnicate'",
       [&] {
         jacobian([&](const LazyTensor& a) { return odd({&a, 1}); }, x, JacobianMode::reverse);
       }},
      {"hessian: 'frobnicate'",
       [&] {
         hessian([&](const LazyTensor& a) { return odd({&a, 1}); }, x);
       }},
      {"grad: 'frobnicate'",
       [&] {
         grad(checkpoint(odd)({&x, 1}), x);
       }},
  };
  for (const auto& [start, call] : calls) {
    std::string text;
    try {
      call();
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_EQ(text.find(start), 0U) << start << " <- " << text;
  }
}

}  // namespace
}  // namespace caldera::testing
