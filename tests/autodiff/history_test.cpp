// Values that were evaluated: which of them differentiation treats as constants, which it refuses, and what
// is kept alive for that.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/runtime/runtime.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;

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

}  // namespace
}  // namespace caldera::testing
