// compiled: what a call gives, when it traces, and what its arguments may be.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<LazyTensor>;
using Inputs = std::span<const LazyTensor>;

class Compiled : public EngineTest {
 protected:
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, Compiled, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Compiled, IsCalledOnceAndReplayed) {
  int calls = 0;
  const VectorFunction f = compiled(VectorFunction([&](Inputs a) {
    ++calls;
    return Tensors{a[0] * a[1] + a[0], sum(a[1])};
  }));
  for (int i = 0; i < 5; ++i) {
    const float x = static_cast<float>(i);
    const Tensors y = f(Tensors{leaf({x, 1}), leaf({3, x})});
    ASSERT_EQ(y.size(), 2U);
    EXPECT_EQ(y[0].to_vector<float>(), (Floats{4 * x, x + 1}));
    EXPECT_EQ(y[1].item<float>(), 3 + x);
  }
  EXPECT_EQ(calls, 1);
  const auto copy = f;
  EXPECT_EQ(copy(Tensors{leaf({2, 2}), leaf({1, 2})})[0].to_vector<float>(), (Floats{4, 6}));
  EXPECT_EQ(calls, 1) << "copies share their traces";
}

TEST_P(Compiled, GivesBackTheKindThatItWasGiven) {
  const UnaryFunction twice = compiled(UnaryFunction([](const LazyTensor& x) { return x + x; }));
  const TensorFunction total = compiled(TensorFunction([](Inputs a) { return a[0] + a[1]; }));
  EXPECT_EQ(twice(leaf({1, 2})).to_vector<float>(), (Floats{2, 4}));
  EXPECT_EQ(total(Tensors{leaf({1, 2}), leaf({3, 4})}).to_vector<float>(), (Floats{4, 6}));
}

TEST_P(Compiled, TracesAnewForShapesTypesAndSettings) {
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
    ++calls;
    return sum(x * x);
  }));
  EXPECT_EQ(f(leaf({1, 2})).item<float>(), 5);
  EXPECT_EQ(f(leaf({1, 2, 2})).item<float>(), 9);
  EXPECT_EQ(f(LazyTensor::from_vector<std::int32_t>({3, 4}, {2}, device())).item<std::int32_t>(), 25);
  EXPECT_EQ(f(LazyTensor::from_vector<float>({1, 2}, {1, 2}, device())).item<float>(), 5);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(f(leaf({2, 2})).item<float>(), 8);
  EXPECT_EQ(f(leaf({2, 2, 1})).item<float>(), 9);
  EXPECT_EQ(calls, 4);
  settings().fusion = !settings().fusion;
  EXPECT_EQ(f(leaf({2, 2})).item<float>(), 8);
  EXPECT_EQ(calls, 5);
}

TEST_P(Compiled, HasValuesAtOnce) {
  const UnaryFunction f = compiled(UnaryFunction([](const LazyTensor& x) { return exp(x); }));
  const LazyTensor y = f(leaf({0, 0}));
  EXPECT_TRUE(y.node().has_value());
  EXPECT_EQ(y.graph_size(), 0U);
  if (device() == Device::cpu()) {
    EXPECT_TRUE(y.is_evaluated());
  }
  EXPECT_EQ(f(f(y)).to_vector<float>(), exp(exp(exp(leaf({0, 0})))).to_vector<float>());
}

TEST_P(Compiled, TakesArgumentsThatAreLazyOrPending) {
  const VectorFunction f = compiled(VectorFunction([](Inputs a) {
    return Tensors{a[0] - a[1] * a[2], a[1]};
  }));
  const LazyTensor x = leaf({1, 2}), lazy = x * 3.0, other = lazy + 1.0, pending = x + 5.0;
  pending.eval_async();
  const Tensors y = f(Tensors{lazy, other, pending});
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{3 - 4 * 6, 6 - 7 * 7}));
  EXPECT_TRUE(lazy.is_evaluated() && other.is_evaluated());
  EXPECT_EQ(y[1].node_id(), other.node_id()) << "an argument is given back as it is";
}

TEST_P(Compiled, TakesNumbersAsArguments) {
  int calls = 0;
  const TensorFunction f = compiled(TensorFunction([&](Inputs a) {
    ++calls;
    return a[0] * a[1] + a[2];
  }));
  for (const DType type : {DType::f32, DType::f16, DType::i32}) {
    if (!backend(device()).supports(type)) continue;
    const int before = calls;
    const LazyTensor x = leaf({1, 2}).astype(type);
    for (int i = 0; i < 4; ++i) {
      const LazyTensor plain = x * (i + 1) + i * i;
      const LazyTensor y = f(Tensors{x, i + 1, i * i});
      EXPECT_EQ(y.dtype(), plain.dtype());
      EXPECT_EQ(astype(y, DType::f32).to_vector<float>(), astype(plain, DType::f32).to_vector<float>());
    }
    EXPECT_EQ(calls, before + 1) << name(type);
  }
}

TEST_P(Compiled, GivesNumbersThatDoNotFitTheErrorOfThePlainCall) {
  const TensorFunction f = compiled(TensorFunction([](Inputs a) { return a[0] + a[1]; }));
  const LazyTensor x = LazyTensor::from_vector<std::int32_t>({1, 2}, {2}, device());
  EXPECT_EQ(f(Tensors{x, 3}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{4, 5}));
  const auto large = std::int64_t{1} << 40;
  EXPECT_THROW((void)(x + large), ValueError);
  EXPECT_THROW((void)f(Tensors{x, large}), ValueError);
  EXPECT_EQ(f(Tensors{x, 4}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{5, 6}));
}

TEST_P(Compiled, TakesPositionsAsArguments) {
  int calls = 0;
  const TensorFunction read = compiled(TensorFunction([&](Inputs a) {
    ++calls;
    return dynamic_slice(a[0], {a[1]}, {2});
  }));
  const TensorFunction write =
      compiled(TensorFunction([](Inputs a) { return dynamic_update_slice(a[0], a[1], {a[2]}); }));
  const LazyTensor x = leaf({0, 1, 2, 3, 4});
  for (int at = 0; at < 4; ++at) {
    const auto from = static_cast<float>(at);
    EXPECT_EQ(read(Tensors{x, at}).to_vector<float>(), (Floats{from, from + 1}));
    Floats expected{0, 1, 2, 3, 4};
    expected[static_cast<std::size_t>(at)] = expected[static_cast<std::size_t>(at) + 1] = 9;
    EXPECT_EQ(write(Tensors{x, leaf({9, 9}), at}).to_vector<float>(), expected);
  }
  EXPECT_EQ(calls, 1);
}

TEST_P(Compiled, TracesAnewForNumbersThatAreLookedAt) {
  int calls = 0;
  const TensorFunction f = compiled(TensorFunction([&](Inputs a) {
    ++calls;
    return a[0] + random_bernoulli(a[1], a[0].shape(), 7, DType::f32).to(a[0].device());
  }));
  if (device() != default_device()) {
    GTEST_SKIP()
        << "random_bernoulli of a number draws on the default device (ops/random/distributions.h), and "
           "a compiled function crosses no devices";
  }
  const LazyTensor x = leaf({0, 0, 0});
  EXPECT_EQ(f(Tensors{x, 0.0}).to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(f(Tensors{x, 1.0}).to_vector<float>(), (Floats{1, 1, 1}));
  EXPECT_EQ(f(Tensors{x, 0.0}).to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(calls, 2);
  EXPECT_THROW((void)f(Tensors{x, 1.5}), ValueError);
}

TEST_P(Compiled, BindsWhatItCapturesByReference) {
  LazyTensor scale = leaf({2, 3});
  const LazyTensor lazy = scale + 1.0;
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
    ++calls;
    return x * scale + lazy + arange(2, DType::f32, device());
  }));
  EXPECT_EQ(f(leaf({1, 1})).to_vector<float>(), (Floats{5, 8}));
  EXPECT_TRUE(lazy.is_evaluated()) << "once, at the trace";
  scale = leaf({100, 100});
  EXPECT_EQ(f(leaf({0, 2})).to_vector<float>(), (Floats{3, 11})) << "another binding is not seen";
  EXPECT_EQ(calls, 1);
}

TEST_P(Compiled, GivesSeveralResultsOfAnyOrigin) {
  const LazyTensor captured = leaf({7, 8});
  const VectorFunction f = compiled(VectorFunction([&](Inputs a) {
    const LazyTensor y = a[0] + 1.0;
    return Tensors{y, a[0], captured, y, a[1], 2.5, a[0] * captured};
  }));
  const LazyTensor x = leaf({1, 2});
  for (const double number : {3.0, 4.0}) {
    const Tensors y = f(Tensors{x, number});
    EXPECT_EQ(y[0].to_vector<float>(), (Floats{2, 3}));
    EXPECT_EQ(y[1].node_id(), x.node_id());
    EXPECT_EQ(y[2].node_id(), captured.node_id());
    EXPECT_EQ(y[3].node_id(), y[0].node_id());
    EXPECT_EQ(y[4].item<float>(), static_cast<float>(number));
    EXPECT_EQ(y[5].item<float>(), 2.5F);
    EXPECT_EQ(y[6].to_vector<float>(), (Floats{7, 16}));
  }
  const UnaryFunction same = compiled(UnaryFunction([](const LazyTensor& z) { return z; }));
  EXPECT_EQ(same(x).node_id(), x.node_id());
  EXPECT_EQ(same(5).item<std::int32_t>(), 5);
}

TEST_P(Compiled, NeedsNoArguments) {
  int calls = 0;
  const VectorFunction f = compiled(VectorFunction([&](Inputs) {
    ++calls;
    return Tensors{random_uniform({3}, 11, DType::f32, device())};
  }));
  const Floats first = f({})[0].to_vector<float>();
  EXPECT_EQ(first, random_uniform({3}, 11, DType::f32, device()).to_vector<float>());
  EXPECT_EQ(f({})[0].to_vector<float>(), first) << "an explicit seed is a constant";
  EXPECT_EQ(calls, 1);
}

TEST_P(Compiled, HasNoValuesToEvaluateInside) {
  const LazyTensor x = leaf({1, 2});
  const auto reading = [](const auto& read) {
    return compiled(TensorFunction([read](Inputs a) {
      read(a);
      return a[0] * a[1];
    }));
  };
  const TensorFunction tensor = reading([](Inputs a) { (void)sum(a[0]).item<float>(); });
  const TensorFunction number = reading([](Inputs a) { (void)a[1].item<float>(); });
  const TensorFunction vector = reading([](Inputs a) { (void)(a[0] * a[1]).to_vector<float>(); });
  for (const TensorFunction* f : {&tensor, &number, &vector}) {
    for (int i = 0; i < 2; ++i) {
      const std::string message = message_of<ValueError>([&] { (void)(*f)(Tensors{x, 2.0}); });
      EXPECT_MENTIONS(message, "argument");
      EXPECT_MENTIONS(message, "compiled function");
    }
  }
  EXPECT_EQ(LazyTensor(2.0).item<float>(), 2.0F);
}

TEST_P(Compiled, DoesNotLetItsArgumentsOut) {
  LazyTensor kept, number;
  const TensorFunction f = compiled(TensorFunction([&](Inputs a) {
    kept = a[0] * 2.0;
    number = a[1];
    return a[0] * a[1];
  }));
  EXPECT_EQ(f(Tensors{leaf({1, 2}), 3.0}).to_vector<float>(), (Floats{3, 6}));
  EXPECT_THROW(kept.eval(), ValueError);
  EXPECT_THROW((void)(kept + number).to_vector<float>(), ValueError);
  EXPECT_THROW((void)random_bernoulli(number, {2}, 1), ValueError);
}

TEST_P(Compiled, ComputesOnOneDevice) {
  const Device other = Device::null();
  const LazyTensor x = leaf({1, 2});
  const UnaryFunction moving =
      compiled(UnaryFunction([&](const LazyTensor& y) { return y.to(other) * 2.0; }));
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)moving(x); }), "crosses devices");
  const VectorFunction apart = compiled(VectorFunction([](Inputs a) {
    return Tensors{a[0] + 1.0, a[1] + 1.0};
  }));
  const LazyTensor there = LazyTensor::zeros({2}, DType::f32, other);
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)apart(Tensors{x, there}); }), "one device");
  const TensorFunction first = compiled(TensorFunction([](Inputs a) { return a[0] + 1.0; }));
  EXPECT_EQ(first(Tensors{x, there}).to_vector<float>(), (Floats{2, 3}));
}

TEST_P(Compiled, ChecksWhatItIsGiven) {
  EXPECT_MENTIONS(message_of<ValueError>([] { (void)compiled(UnaryFunction()); }), "compiled");
  const TensorFunction f = compiled(TensorFunction([](Inputs a) { return a[0]; }), {.donate = {3}});
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)f(Tensors{leaf({1})}); }), "argument 3");
  const UnaryFunction empty = compiled(UnaryFunction([](const LazyTensor&) { return LazyTensor(); }));
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)empty(leaf({1})); }), "result 0");
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)empty(LazyTensor()); }), "argument 0");
  const UnaryFunction wrong = compiled(UnaryFunction([](const LazyTensor& x) {
    return matmul(x, LazyTensor::ones({7, 7}));
  }));
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)wrong(LazyTensor::ones({2, 3})), Error);
}

}  // namespace
}  // namespace caldera::testing
