// cond, switch_case and while_loop: values, gradients, refusals.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/caldera.h"
#include "tests/support/memory_watch.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class BranchTest : public OpTest {
 protected:
  LazyTensor number(double x) const {
    return supports(DType::f64) ? LazyTensor::from_vector<double>({x}, {}, device())
                                : LazyTensor::from_vector<float>({static_cast<float>(x)}, {}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, BranchTest, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(BranchTest, CondRunsOneOfTwo) {
  const LazyTensor w = number(3);
  for (const double at : {-2.0, 5.0}) {
    const LazyTensor x = number(at);
    const auto [value, grads] = value_and_grad(
        [](std::span<const LazyTensor> a) {
          return cond(
              a[0] > 0, [&](const LazyTensor& y) { return y * a[1]; },
              [](const LazyTensor& y) { return y * y; }, a[0]);
        },
        std::vector{x, w});
    EXPECT_NEAR(value.item<double>(), at > 0 ? 3 * at : at * at, 1e-9);
    EXPECT_NEAR(grads[0].item<double>(), at > 0 ? 3 : 2 * at, 1e-9);
    EXPECT_NEAR(grads[1].item<double>(), at > 0 ? at : 0, 1e-9);
  }
}

TEST_P(BranchTest, WhatIsNotZeroIsTrue) {
  const LazyTensor x = number(4);
  for (const int at : {-3, -1, 0, 1, 2}) {
    const LazyTensor predicate = LazyTensor::from_vector<std::int32_t>({at}, {1}, device());
    const LazyTensor y = cond(
        predicate, [](const LazyTensor& a) { return a + 1; }, [](const LazyTensor& a) { return a - 1; }, x);
    EXPECT_EQ(y.item<double>(), at != 0 ? 5 : 3) << at;
  }
}

TEST_P(BranchTest, SwitchTakesTheNearestBranch) {
  const std::vector<VectorFunction> branches{
      [](std::span<const LazyTensor> a) { return std::vector{a[0] + 1}; },
      [](std::span<const LazyTensor> a) { return std::vector{a[0] * 10}; },
      [](std::span<const LazyTensor> a) { return std::vector{a[0]}; }};
  const std::vector<LazyTensor> x{number(4)};
  const double want[] = {5, 5, 40, 4, 4};
  for (int i = -1; i < 4; ++i) {
    const LazyTensor which = LazyTensor::from_vector<std::int32_t>({i}, {}, device());
    EXPECT_EQ(switch_case(which, branches, x)[0].item<double>(), want[i + 1]);
  }
  const LazyTensor far = LazyTensor::from_vector<std::int64_t>({std::int64_t{1} << 32}, {}, device());
  EXPECT_EQ(switch_case(far, branches, x)[0].item<double>(), 4) << "beyond 32 bits";
}

LazyTensor example_loop(const LazyTensor& x, std::int64_t snapshots) {
  return while_loop([](const LazyTensor& y) { return y < 10; },
                    [&](const LazyTensor& y) {
                      return 1.7 * y + cond(
                                           y < 3, [&](const LazyTensor&) { return x; },
                                           [&](const LazyTensor&) { return x * x; }, y);
                    },
                    x, {.snapshots = snapshots});
}

TEST_P(BranchTest, WhileLoopAndItsGradient) {
  for (const std::int64_t snapshots : {1, 2, 32}) {
    const LazyTensor x = number(0.7);
    const auto [y, grads] = value_and_grad(
        [&](std::span<const LazyTensor> a) { return example_loop(a[0], snapshots); }, std::vector{x});
    EXPECT_NEAR(y.item<double>(), 12.63157, 1e-5);
    EXPECT_NEAR(grads[0].item<double>(), 19.9351, 1e-4);
    const auto along =
        jvp([&](std::span<const LazyTensor> a) { return std::vector{example_loop(a[0], snapshots)}; },
            std::vector{x}, std::vector{ones_like(x)});
    EXPECT_NEAR(along.second[0].item<double>(), 19.9351, 1e-4);
  }
}

TEST_P(BranchTest, AThousandTurnsInFewSubmits) {
  const LazyTensor start = zeros({3});
  const LazyTensor last = while_loop([](const LazyTensor& x) { return max(x) < 1000; },
                                     [](const LazyTensor& x) { return x + 1; }, start);
  eval({start});
  const auto before = device_counters(device()).submits;
  eval({last});
  const auto submits = device_counters(device()).submits - before;
  EXPECT_EQ(last.to_vector<float>(), std::vector<float>(3, 1000));
  if (is_vulkan()) {
    EXPECT_LE(submits, 12U);
  }
}

TEST_P(BranchTest, AMillionTurnsTakeNoMoreMemoryThanAThousand) {
  const LazyTensor x = number(1);
  const auto run = [&](std::int64_t turns) {
    return for_loop(
               turns, [](const LazyTensor&, const LazyTensor& y) { return y + 1; }, x)
        .item<double>();
  };
  (void)run(6000);  // a driver has what it takes for as many commands as are on their way at once
  const MemorySample before = take_sample(device(), 0, 0);
  // A device that is a processor takes a minute for a million.
  const std::int64_t turns = is_vulkan() ? 20000 : 1000000;
  EXPECT_EQ(run(turns), static_cast<double>(turns + 1));
  const MemorySample after = take_sample(device(), 0, 0);
  EXPECT_LE(after.device_held, before.device_held + 4096);
  EXPECT_LE(after.rss, before.rss + (std::uint64_t{1} << (is_vulkan() ? 23 : 22)));
}

TEST_P(BranchTest, ALoopWithoutEndCanBeCancelled) {
  const LazyTensor x = number(1);
  const LazyTensor last =
      while_loop([](const LazyTensor& y) { return y > 0; }, [](const LazyTensor& y) { return y + 1; }, x);
  const EvalFuture future = last.eval_async();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(future.is_ready());
  future.cancel();
  EXPECT_THROW(future.get(), CancelledError);
  EXPECT_EQ((x + 1).item<double>(), 2) << "the engine does not go on";
  EXPECT_EQ(
      while_loop([](const LazyTensor& y) { return y < 5; }, [](const LazyTensor& y) { return y + 1; }, x)
          .item<double>(),
      5);
}

TEST_P(BranchTest, WhileLoopWithoutATurn) {
  const LazyTensor x = number(20);
  const auto [y, grads] =
      value_and_grad([&](std::span<const LazyTensor> a) { return example_loop(a[0], 4); }, std::vector{x});
  EXPECT_EQ(y.item<double>(), 20);
  EXPECT_EQ(grads[0].item<double>(), 1);
}

TEST_P(BranchTest, SecondDerivatives) {
  const LazyTensor x = number(0.7);
  const UnaryFunction f = [](const LazyTensor& at) { return example_loop(at, 3); };
  const auto grad_of = [&](const LazyTensor& at) {
    return value_and_grad([&](std::span<const LazyTensor> a) { return f(a[0]); }, std::span(&at, 1))
        .second[0];
  };
  const auto along = jvp([&](std::span<const LazyTensor> a) { return std::vector{grad_of(a[0])}; },
                         std::vector{x}, std::vector{ones_like(x)});
  // y -> 1.7 y + x thrice from x, then 1.7 y + x^2 (y >= 3 from the third turn on): the second derivative is
  // that of the last terms, 2 for each turn with x^2, 1.7 times for each turn behind it.
  double y = 0.7, second = 0;
  while (y < 10) {
    second = 1.7 * second + (y < 3 ? 0 : 2);
    y = 1.7 * y + (y < 3 ? 0.7 : 0.49);
  }
  EXPECT_NEAR(along.second[0].item<double>(), second, 1e-4);
  const auto twice = [&](std::int64_t snapshots) {
    const auto of = [&](const LazyTensor& at) {
      return value_and_grad([&](std::span<const LazyTensor> a) { return example_loop(a[0], snapshots); },
                            std::span(&at, 1))
          .second[0];
    };
    return value_and_grad([&](std::span<const LazyTensor> a) { return of(a[0]); }, std::vector{x})
        .second[0]
        .item<double>();
  };
  for (const std::int64_t snapshots : {1, 2, 3, 32}) EXPECT_NEAR(twice(snapshots), second, 1e-4) << snapshots;
}

}  // namespace
}  // namespace caldera::testing
