// eval: values, what has been computed, one submit an evaluation, and errors that leave the engine usable.
#include "engine/runtime/evaluate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Evaluate : public EngineTest {
 protected:
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, device());
  }
  static DeviceCounters counters() { return backend(device()).counters(); }
};
INSTANTIATE_TEST_SUITE_P(Setups, Evaluate, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Evaluate, ComputesOnce) {
  const LazyTensor y = leaf({1, 2, 3}) * 2.0 + 1.0;
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(y.graph_size(), 4U);
  EXPECT_EQ(&y.eval(), &y);
  EXPECT_TRUE(y.is_evaluated());
  EXPECT_EQ(y.graph_size(), 0U);
  EXPECT_EQ(y.to_vector<float>(), (Floats{3, 5, 7}));

  const DeviceCounters before = counters();
  y.eval();
  eval({y, y});
  y.eval_async().get();
  EXPECT_EQ(y.to_vector<float>(), (Floats{3, 5, 7}));
  EXPECT_EQ(counters().submits, before.submits);
  EXPECT_EQ(counters().dispatches, before.dispatches);
}

TEST_P(Evaluate, LeavesAreThereFromTheStart) {
  const LazyTensor x = leaf({1, 2});
  EXPECT_TRUE(x.is_evaluated());
  const DeviceCounters before = counters();
  x.eval();
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(counters().submits, before.submits);
}

TEST_P(Evaluate, OneSubmitAnEvaluationAndADispatchAStep) {
  const LazyTensor x = LazyTensor::from_vector(Floats(24, 0.5F), {4, 6}, device());
  const LazyTensor y = softmax(matmul(x, transpose(x)));
  const LazyTensor z = sum(y * y) + mean(x);
  const auto plan = plan_for({y, z});
  ASSERT_GT(plan->steps.size(), 2U);
  const DeviceCounters before = counters();
  eval({y, z});
  EXPECT_EQ(counters().submits, before.submits + 1);
  // The softmax finishes the product's dispatch. On the CPU it stands behind a barrier all the same.
  const auto dispatches = static_cast<std::uint64_t>(plan->dispatch_count());
  const std::uint64_t within = plan->steps.size() - dispatches;
  EXPECT_EQ(within, GetParam().fusion ? 1U : 0U);
  EXPECT_EQ(counters().dispatches, before.dispatches + dispatches);
  EXPECT_EQ(counters().barriers, before.barriers + static_cast<std::uint64_t>(plan->barrier_count()) -
                                     (device().kind == DeviceKind::vulkan ? within : 0));
}

TEST_P(Evaluate, SeveralOutputsOfAnyKind) {
  const LazyTensor x = leaf({1, 2, 3});
  const LazyTensor done = (x + x).eval();
  const LazyTensor y = done * x;
  const LazyTensor z = y - done;
  eval({y, done, z, y, x});
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 8, 18}));
  EXPECT_EQ(z.to_vector<float>(), (Floats{0, 4, 12}));
  eval(std::span<const LazyTensor>());
}

TEST_P(Evaluate, OutputsOnSeveralDevices) {
  const LazyTensor here = leaf({1, 2}) + 1.0;
  const LazyTensor there = LazyTensor::from_vector(Floats{1, 2}, {2}, Device::null()) + 1.0;
  const auto before = backend(Device::null()).counters().submits;
  eval({here, there});
  EXPECT_TRUE(there.is_evaluated());
  EXPECT_EQ(backend(Device::null()).counters().submits, before + 1);
  EXPECT_EQ(here.to_vector<float>(), (Floats{2, 3}));
}

TEST_P(Evaluate, InStagesAsInOneGo) {
  const LazyTensor x = leaf({0.5F, -1, 2});
  LazyTensor staged = x;
  LazyTensor whole = x;
  for (int i = 0; i < 10; ++i) {
    staged = tanh(staged * 1.5) + x;
    whole = tanh(whole * 1.5) + x;
    staged.eval();
  }
  const Floats a = staged.to_vector<float>();
  const Floats b = whole.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5F);
}

TEST_P(Evaluate, ManyNumbersInOneKernel) {
  LazyTensor y = leaf({1, -2});
  float a = 1;
  float b = -2;
  for (int i = 0; i < 24; ++i) {
    const float scale = 0.5F + 0.03125F * static_cast<float>(i);
    const float shift = 0.25F * static_cast<float>(i % 7);
    y = y * scale + shift;
    a = a * scale + shift;
    b = b * scale + shift;
  }
  EXPECT_EQ(plan_for({y})->steps.size(), GetParam().fusion ? 1U : 48U);
  const Floats got = y.to_vector<float>();
  EXPECT_NEAR(got[0], a, 1e-4F);
  EXPECT_NEAR(got[1], b, 1e-4F);
}

TEST_P(Evaluate, ScalarsAndEmptyTensors) {
  EXPECT_EQ(LazyTensor(2.5).item(), 2.5F);
  EXPECT_EQ((LazyTensor(2) + LazyTensor(3)).item<std::int32_t>(), 5);
  const LazyTensor none = LazyTensor::zeros({0, 3}, DType::f32, device());
  EXPECT_EQ(exp(none).to_vector<float>(), Floats{});
  EXPECT_EQ(sum(none, 0).to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(LazyTensor::full({}, 7, DType::i32, device()).item<float>(), 7.0F);
}

TEST_P(Evaluate, AnInputMayBeDroppedBeforeItsUserIsEvaluated) {
  LazyTensor y;
  {
    const LazyTensor x = leaf({1, 2, 3});
    y = exp(x - x) + x;
  }
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 3, 4}));
}

TEST_P(Evaluate, DetachSharesAValueAndForgetsItsHistory) {
  const LazyTensor x = leaf({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor lazy = y.detach();
  EXPECT_FALSE(lazy.is_evaluated());
  EXPECT_THROW(grad(sum(lazy), x), GradientError);
  EXPECT_EQ(grad(sum(lazy * x), x).to_vector<float>(), (Floats{1, 4}));

  y.eval();
  const LazyTensor ready = y.detach();
  EXPECT_TRUE(ready.is_evaluated());
  EXPECT_NE(ready.node_id(), y.node_id());
  EXPECT_EQ(ready.node().value().storage, y.node().value().storage);
  EXPECT_EQ(grad(sum(ready * x), x).to_vector<float>(), (Floats{1, 4}));
}

TEST_P(Evaluate, HostCopiesConvertNothingSilently) {
  const LazyTensor x = leaf({1.5F});
  EXPECT_EQ(x.item(), 1.5F);
  EXPECT_EQ(x.item<std::int32_t>(), 1);
  EXPECT_THROW(x.to_vector<double>(), DTypeError);
  const LazyTensor truth = x > 1.0;
  EXPECT_EQ(truth.to_vector<bool>(), std::vector<bool>{true});
  const LazyTensor whole = LazyTensor::from_vector(std::vector<std::int64_t>{1LL << 40}, {1}, device());
  EXPECT_EQ(whole.item<std::int64_t>(), 1LL << 40);
}

TEST(EvaluateNull, CountsAndComputesNothing) {
  const ScopedSettings scope;
  const Backend& null = backend(Device::null());
  const LazyTensor x = LazyTensor::from_vector(Floats(1 << 20, 3.0F), {1024, 1024}, Device::null());
  const DeviceCounters before = null.counters();
  const LazyTensor y = matmul(x, matmul(x, x));
  y.eval();
  const DeviceCounters after = null.counters();
  EXPECT_EQ(after.submits, before.submits + 1);
  EXPECT_EQ(after.dispatches, before.dispatches + 2);
  EXPECT_EQ(after.barriers, before.barriers + 1);
  EXPECT_EQ(y.to_vector<float>(), Floats(1 << 20, 0.0F));
}

}  // namespace
}  // namespace caldera::testing
