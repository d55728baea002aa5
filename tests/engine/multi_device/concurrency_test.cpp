// Several devices at once: threads, asynchronous evaluation, errors that travel, very long chains.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/multi_device/two_devices.h"
#include "tests/support/plans/named_programs.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Concurrency : public TwoDevices {
 protected:
  /// Takes a while, and comes to 1 in every element.
  static LazyTensor slow(Device device, int products = 6) {
    constexpr int kSize = 192;
    const LazyTensor x = LazyTensor::full({kSize, kSize}, 1.0 / kSize, DType::f32, device).eval();
    LazyTensor y = LazyTensor::ones({kSize, kSize}, DType::f32, device);
    for (int i = 0; i < products; ++i) y = matmul(y, x);
    return y;
  }
  /// Needs an arena that fits nowhere. The CPU finds out when it runs.
  static LazyTensor failing(const LazyTensor& one_by_one) {
    const std::int64_t huge = std::int64_t{1} << 44;
    return sum(matmul(broadcast_to(one_by_one, {huge, 1}), one_by_one)) + 1.0;
  }
};
INSTANTIATE_TEST_SUITE_P(Fusion, Concurrency, ::testing::Bool(), fusion_name);

TEST_P(Concurrency, ThreadsThatCrossInOppositeDirections) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 6;
  const LazyTensor shared = program_input({16}, cpu());
  const Floats in = shared.to_vector<float>();
  std::barrier<> start(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        LazyTensor y = shared + static_cast<double>(t);
        for (int hop = 0; hop < 6; ++hop) {
          const int turn = t % 2 == 0 ? hop % 3 : 2 - hop % 3;
          y = y.to(all()[static_cast<std::size_t>(turn)]) * 1.0 + static_cast<double>(round);
        }
        if (t < 2)
          y.eval();
        else
          y.eval_async().get();
        const Floats got = y.to_vector<float>();
        for (std::size_t i = 0; i < in.size(); ++i)
          EXPECT_NEAR(got[i], in[i] + static_cast<float>(t + 6 * round), 1e-3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Concurrency, AsynchronousEvaluationReturnsBeforeTheWorkIsDone) {
  bool seen_running = false;
  for (int i = 0; i < 10 && !seen_running; ++i) {
    LazyTensor y = slow(first());
    for (int hop = 0; hop < 24; ++hop)
      y = y.to(hop % 2 == 0 ? second() : first()) * 1.0;  // more than a queue
    const EvalFuture future = y.eval_async();
    seen_running = !future.is_ready();
    future.get();
    const Floats values = y.to_vector<float>();
    EXPECT_NEAR(values[0], 1, 1e-4);
    EXPECT_NEAR(values.back(), 1, 1e-4);
  }
  EXPECT_TRUE(seen_running);
}

TEST_P(Concurrency, ManyEvaluationsInFlight) {
  std::vector<EvalFuture> futures;
  std::vector<LazyTensor> results;
  LazyTensor y = program_input({8}, cpu());
  const Floats in = y.to_vector<float>();
  for (int i = 0; i < 60; ++i) {
    y = y.to(all()[static_cast<std::size_t>(i % 3)]) + 1.0;
    futures.push_back(y.eval_async());
    results.push_back(y);
  }
  for (const EvalFuture& future : futures) future.get();
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_NEAR(results[i].to_vector<float>()[3], in[3] + static_cast<float>(i + 1), 1e-3);
}

TEST_P(Concurrency, AnErrorReachesItsDependantsOnOtherDevicesAndNobodyElse) {
  const LazyTensor one = LazyTensor::ones({1, 1}, DType::f32, cpu()).eval();
  const LazyTensor bad = failing(one);
  const EvalFuture failed = bad.eval_async();
  const LazyTensor dependant = bad.to(first()) + 1.0;
  const LazyTensor further = dependant.to(second()) * 2.0;
  const LazyTensor bystander = program_input({4}, second()) + 1.0;
  const EvalFuture future = eval_async({further, dependant});
  EXPECT_THROW(future.get(), DeviceError);
  EXPECT_THROW(failed.get(), DeviceError);
  for (const LazyTensor* x : {&dependant, &further}) {
    EXPECT_FALSE(x->is_evaluated());
    EXPECT_THROW((void)x->to_vector<float>(), DeviceError);
    EXPECT_THROW(((*x) + 1.0).eval(), DeviceError);
  }
  std::string text;
  try {
    further.eval();
  } catch (const DeviceError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("cpu"), std::string::npos) << "the device that failed is named: " << text;
  EXPECT_FLOAT_EQ(bystander.to_vector<float>()[0], program_input({4}, cpu()).to_vector<float>()[0] + 1);
}

TEST_P(Concurrency, AnErrorInTheMiddleOfOneEvaluation) {
  const LazyTensor one = LazyTensor::ones({1, 1}, DType::f32, first()).eval();
  const LazyTensor good = one.to(second()) + 1.0;
  const LazyTensor bad = failing(exp(one).to(cpu()));  // fails when it runs, between two others
  const LazyTensor end = bad.to(second()) + good;
  const EvalFuture future = eval_async({end, good});
  EXPECT_THROW(future.get(), DeviceError);
  EXPECT_FLOAT_EQ(good.item<float>(), 2.0F);
  EXPECT_THROW(end.eval(), DeviceError);
  EXPECT_FLOAT_EQ((good * 3.0).to(cpu()).item<float>(), 6.0F) << "the devices go on";
}

TEST_P(Concurrency, AMillionNodesThatCrossRarely) {
  constexpr int kNodes = kSanitized ? 50'000 : 1'000'000;
  if (!GetParam()) GTEST_SKIP() << "a step a node: its plans would not fit";
  settings().verify = false;
  constexpr int kPart = kNodes / 4;
  LazyTensor y = LazyTensor::zeros({4}, DType::f32, cpu()).eval();
  for (int i = 0; i < kNodes; ++i) {
    if (i % kPart == kPart / 2) y = y.to(all()[static_cast<std::size_t>(i / kPart % 2)]);
    y = y + 1.0;
  }
  EXPECT_EQ(y.to_vector<float>(), Floats(4, static_cast<float>(kNodes)));
  clear_plan_cache();
}

}  // namespace
}  // namespace caldera::testing
