// compiled and the other transforms: through one another in any order, and gradients past a call.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<LazyTensor>;
using Inputs = std::span<const LazyTensor>;

class CompiledTransforms : public EngineTest {
 protected:
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, CompiledTransforms, ::testing::ValuesIn(engine_setups()), engine_setup_name);

/// sum(w^2 x): by w 2 w x, by x w^2.
const TensorFunction kLoss = [](Inputs a) { return sum(a[0] * a[0] * a[1]); };

TEST_P(CompiledTransforms, AreOfTheFunctionItself) {
  const Tensors at{leaf({1, 2}), leaf({3, 4})}, along{leaf({1, 0}), leaf({0, 1})};
  const TensorFunction f = compiled(kLoss);
  EXPECT_EQ(f(at).item<float>(), 19);
  const auto [value, grads] = value_and_grad(f, at);
  EXPECT_EQ(value.item<float>(), 19);
  EXPECT_EQ(grads[0].to_vector<float>(), (Floats{6, 16}));
  EXPECT_EQ(grads[1].to_vector<float>(), (Floats{1, 4}));
  EXPECT_EQ(jvp(f, at, along).second.item<float>(), 6 + 4);
  EXPECT_EQ(hvp(f, at, along)[0].to_vector<float>(), (Floats{6, 4}));
  const Tensors rows{reshape(leaf({1, 2, 3, 4}), {2, 2}), leaf({1, 1})};
  EXPECT_EQ(vmap(f, {0, kUnmapped})(rows).to_vector<float>(), (Floats{5, 25}));
  EXPECT_EQ(grad(checkpoint(f)(at), at[0]).to_vector<float>(), (Floats{6, 16}));
  EXPECT_EQ(value_and_grad(checkpoint(f), at).second[0].to_vector<float>(), (Floats{6, 16}));
}

TEST_P(CompiledTransforms, AreCompiledTogetherWithIt) {
  const Tensors at{leaf({1, 2}), leaf({3, 4})};
  int calls = 0;
  const VectorFunction gradient = compiled(VectorFunction([&](Inputs a) {
    ++calls;
    return value_and_grad(compiled(kLoss), a).second;
  }));
  const VectorFunction plain = compiled(VectorFunction([](Inputs a) {
    return grad(kLoss(a), {a[0], a[1]});
  }));
  const TensorFunction mapped = compiled(vmap(compiled(kLoss), {0, kUnmapped}));
  for (int i = 1; i < 4; ++i) {
    const auto w = static_cast<float>(i);
    for (const VectorFunction& f : {gradient, plain}) {
      const Tensors grads = f(Tensors{leaf({w, 2}), leaf({3, 4})});
      EXPECT_EQ(grads[0].to_vector<float>(), (Floats{6 * w, 16}));
      EXPECT_EQ(grads[1].to_vector<float>(), (Floats{w * w, 4}));
    }
    EXPECT_EQ(mapped(Tensors{reshape(leaf({w, 2, 3, 4}), {2, 2}), leaf({1, 1})}).to_vector<float>(),
              (Floats{w * w + 4, 25}));
  }
  EXPECT_EQ(calls, 1);
}

TEST_P(CompiledTransforms, SeeWhatItCapturesOfThem) {
  const LazyTensor x = leaf({3, 4});
  const auto loss = [&](Inputs w) {
    const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& y) { return w[0] * w[0] * y; }));
    return sum(f(x));
  };
  const auto [value, grads] = value_and_grad(TensorFunction(loss), Tensors{leaf({1, 2})});
  EXPECT_EQ(value.item<float>(), 19);
  EXPECT_EQ(grads[0].to_vector<float>(), (Floats{6, 16}));
  const auto of_row = [&](const LazyTensor& row) {
    return compiled(UnaryFunction([&](const LazyTensor& y) { return sum(row * y); }))(x);
  };
  const LazyTensor rows = reshape(leaf({1, 2, 3, 4}), {2, 2});
  EXPECT_EQ(vmap(UnaryFunction(of_row))(rows).to_vector<float>(), (Floats{11, 25}));
  // A number of an outer function, captured by an inner one.
  const TensorFunction outer = compiled(TensorFunction([&](Inputs a) {
    return a[0] + compiled(UnaryFunction([&](const LazyTensor& y) { return y * a[1]; }))(x);
  }));
  for (const float number : {2.0F, 5.0F})
    EXPECT_EQ(outer(Tensors{x, number}).to_vector<float>(), (Floats{3 + 3 * number, 4 + 4 * number}));
}

TEST_P(CompiledTransforms, DoNotSilentlyLoseAGradientPastACall) {
  const UnaryFunction square_of = compiled(UnaryFunction([](const LazyTensor& x) { return x * x; }));
  const LazyTensor w = leaf({1, 2}), hidden = tanh(w);
  const LazyTensor y = square_of(w), twice = square_of(square_of(w)), behind = square_of(hidden);
  for (const LazyTensor& result : {y, twice, behind}) {
    const std::string message = message_of<GradientError>([&] { (void)grad(sum(result), w); });
    EXPECT_MENTIONS(message, "result of a compiled function");
    EXPECT_MENTIONS(message, "differentiate inside");
    const Tensors inputs{w};
    EXPECT_THROW((void)vjp(Tensors{result * 1.0}, inputs, Tensors{w}), GradientError);
  }
  const LazyTensor captured = leaf({3, 3});
  const UnaryFunction with = compiled(UnaryFunction([&](const LazyTensor& x) { return x * captured; }));
  EXPECT_THROW((void)grad(sum(with(w)), captured), GradientError);
  EXPECT_EQ(grad(sum(y * captured), y).to_vector<float>(), (Floats{3, 3})) << "a result is asked for";
}

TEST_P(CompiledTransforms, TakeResultsForConstantsBesideOtherParameters) {
  const VectorFunction f = compiled(VectorFunction([](Inputs a) {
    return Tensors{a[0] * a[1], a[1] * 2.0, stop_gradient(a[0])};
  }));
  const LazyTensor w = leaf({1, 2}), x = leaf({3, 4}), other = leaf({5, 6});
  const Tensors y = f(Tensors{w, x});
  EXPECT_EQ(grad(sum(y[0] * other), other).to_vector<float>(), (Floats{3, 8}));
  EXPECT_EQ(grad(sum(y[1] * w), w).to_vector<float>(), (Floats{6, 8})) << "the second comes from x alone";
  EXPECT_EQ(grad(sum(y[2] * w), w).to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(grad(sum(y[0].detach() * w), w).to_vector<float>(), (Floats{3, 8}));
  EXPECT_THROW((void)grad(sum(y[0] * w), w), GradientError);
}

TEST_P(CompiledTransforms, RememberLongChainsOfCalls) {
  const UnaryFunction half = compiled(UnaryFunction([](const LazyTensor& x) { return x * 0.5; }));
  const LazyTensor start = leaf({1, 2}), beside = leaf({1, 1});
  Tensors states{start};
  for (int i = 0; i < 300; ++i) states.push_back(half(states.back()));
  EXPECT_THROW((void)grad(sum(states.back()), start), GradientError);
  EXPECT_THROW((void)grad(sum(states.back()), states[150]), GradientError);
  EXPECT_THROW((void)grad(sum(states.back()), states[299]), GradientError);
  EXPECT_EQ(grad(sum(states.back() * beside), beside).to_vector<float>(), states.back().to_vector<float>());
  EXPECT_EQ(grad(sum(states[150] * states[200]), states[200]).to_vector<float>(),
            states[150].to_vector<float>());
}

TEST_P(CompiledTransforms, PassAValueThatWasTracedBefore) {
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
    ++calls;
    return x + 1.0;
  }));
  for (int i = 0; i < 3; ++i) {
    const Tensors at{leaf({1, 2}), leaf({3, 4})};
    const LazyTensor g = value_and_grad(kLoss, at).second[0];  // made from what the transform traced
    EXPECT_EQ(f(g).to_vector<float>(), (Floats{7, 17}));
  }
  EXPECT_EQ(calls, 1);
}

// Ids of nodes rise within a thread: another thread's may be younger than what is made later here.
TEST_P(CompiledTransforms, DoNotLoseAGradientPastACallWithAnotherThreadsTensor) {
  const UnaryFunction f = compiled(UnaryFunction([](const LazyTensor& a) { return square(a); }));
  LazyTensor x;
  std::thread([&] { x = leaf({1, 2}).eval(); }).join();
  EXPECT_THROW(grad(sum(f(x) * x), x), GradientError);
}

}  // namespace
}  // namespace caldera::testing
