// Values that were evaluated: which of them differentiation treats as constants, which it refuses, and what
// is kept alive for that.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;

TEST(History, AnEvaluatedValueIsOnTheWay) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor loss = sum(y * x);
  y.eval();
  EXPECT_EQ(grad(loss, x).to_vector<double>(), (Doubles{3, 12}));
  const LazyTensor total = sum(x * x).eval();
  EXPECT_EQ(grad(total, x).to_vector<double>(), (Doubles{2, 4}));
  EXPECT_EQ(grad(total, x).to_vector<double>(), (Doubles{2, 4})) << "and once more";
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
  for (int step = 0; step < 200; ++step) {
    const LazyTensor batch = (prepared * static_cast<double>(step)).eval();
    const LazyTensor g = grad(sum(w * batch), w);
    w = w - g * 0.0 * batch;
    w.eval();
    EXPECT_EQ(g.to_vector<double>(), (Doubles{3.0 * step, 5.0 * step}));
    const LazyTensor behind = (w * 2.0).eval();
    EXPECT_EQ(grad(sum(w * behind), w).to_vector<double>(), (Doubles{4, 8})) << "step " << step;
    if (step > 1) {
      ASSERT_THROW(grad(sum(w * behind), prepared), GradientError) << "w was replaced: step " << step;
    }
  }
}

TEST(History, GradientsPassWhatWasEvaluated) {
  const LazyTensor k = vector_of({3, 5});
  // `c` has come from `w`, as `again` of w would.
  const auto passes = [](const LazyTensor& c, const LazyTensor& w, const auto& again) {
    const Doubles wanted = grad(sum(again(w) * w), w).template to_vector<double>();
    EXPECT_EQ(grad(sum(c * w), w).to_vector<double>(), wanted);
    EXPECT_EQ(
        jvp({&c, 1}, {&w, 1}, {&w, 1})[0].to_vector<double>(),
        jvp([&](Inputs a) { return again(a[0]); }, {&w, 1}, {&w, 1}).second.template to_vector<double>());
    EXPECT_EQ(grad(sum(stop_gradient(c) * w), w).to_vector<double>(), c.to_vector<double>());
    EXPECT_EQ(grad(sum(c.detach() * w), w).to_vector<double>(), c.to_vector<double>());
  };
  const auto twice = [](const LazyTensor& x) { return x * 2.0; };
  const LazyTensor leaf = vector_of({1, 2});
  passes(sin(leaf).eval(), leaf, [](const LazyTensor& x) { return sin(x); });
  passes((sin(leaf).eval() * 2.0).eval(), leaf, [](const LazyTensor& x) { return sin(x) * 2.0; });
  const LazyTensor numbers = random_normal(Shape{2}, 7, DType::f64, Device::cpu());
  passes((numbers * 2.0).eval(), numbers, twice);
  {  // evaluated before, and after, what came of it
    const LazyTensor w = (k * 1.5).eval();
    passes((w * 2.0).eval(), w, twice);
    const LazyTensor v = k * 1.5, c = (v * 2.0).eval();
    passes(c, v, twice);
    v.eval();
    passes(c, v, twice);
    passes((c * 3.0).eval(), v, [](const LazyTensor& x) { return x * 2.0 * 3.0; });
  }
  {  // what it is computed of is evaluated together with others
    const LazyTensor m = vector_of({7, 7}), h = k * 1.5, x = sin(h), c = (x * 2.0).eval();
    eval({h, m * 2.0});
    passes(c, x, twice);
    std::vector<LazyTensor> many{x};
    for (int i = 0; i < 20; ++i) many.push_back(vector_of({1, 1}) * 2.0);
    eval(many);
    passes(c, x, twice);
  }
  {  // in one evaluation, in either order
    const LazyTensor w = k * 1.5, c = w * 2.0, u = k * 2.5, d = u * 2.0;
    eval({w, c});
    eval({d, u});
    passes(c, w, twice);
    passes(d, u, twice);
  }
  {  // through calls
    const TensorFunction custom = custom_vjp(
        [](Inputs a) { return a[0] * 2.0; },
        [](Inputs, const LazyTensor&, const LazyTensor& g) { return std::vector<LazyTensor>{g * 7.0}; });
    const LazyTensor c = custom({&leaf, 1}).eval();
    EXPECT_EQ(grad(sum(c), leaf).to_vector<double>(), (Doubles{7, 7}));
    const TensorFunction checked = checkpoint(TensorFunction([](Inputs a) { return a[0] * 2.0; }));
    passes(checked({&leaf, 1}).eval(), leaf, twice);
    const LazyTensor slope = value_and_grad([](Inputs a) { return sum(a[0] * a[0]); }, {&leaf, 1}).second[0];
    passes(slope.eval(), leaf, twice);
  }
}

TEST(History, ThatHasEndedIsAnErrorWhereItIsNeeded) {
  const LazyTensor x = vector_of({1, 2}), other = vector_of({3, 4});
  LazyTensor w = (x * 2.0).eval();
  w = (w * x).eval();
  // The value on the right is still held while it is evaluated; here it is not.
  w = w * x;
  w.eval();
  const std::string text = message_of<GradientError>([&] { grad(sum(w * x), x); });
  EXPECT_MENTIONS(text, "history has ended");
  EXPECT_MENTIONS(text, "(2,)");
  EXPECT_MENTIONS(text, "multiply");
  EXPECT_MENTIONS(text, "detach()");
  EXPECT_EQ(grad(sum(w * other), other).to_vector<double>(), w.to_vector<double>()) << "it came from x alone";
  EXPECT_EQ(grad(sum(w * x), w).to_vector<double>(), (Doubles{1, 2}));
  EXPECT_EQ(grad(sum(w.detach() * x), x).to_vector<double>(), w.to_vector<double>());
  const LazyTensor of_it = (w * 2.0).eval();
  EXPECT_THROW(grad(sum(of_it * x), x), GradientError) << "and what came of it";
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
