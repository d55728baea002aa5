// eval_async: futures, the order of the stream, errors that travel with the value, throttling.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Async : public EngineTest {
 protected:
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, device());
  }
  /// Takes a while: a chain of matrix products, none of which the plan can leave out.
  static LazyTensor slow(int products = 12) {
    const int n = device().kind == DeviceKind::cpu ? 768 : 256;
    const LazyTensor x = LazyTensor::full({n, n}, 1.0 / n, DType::f32, device()).eval();
    LazyTensor y = x;
    for (int i = 0; i < products; ++i) y = matmul(y, x);
    return y;
  }
  /// Its arena does not fit into any machine. The CPU finds out when it runs, a GPU when it prepares the
  /// plan.
  static LazyTensor failing() {
    const LazyTensor x = LazyTensor::ones({1, 1}, DType::f32, device()).eval();
    const std::int64_t huge = std::int64_t{1} << 44;
    return sum(matmul(broadcast_to(x, {huge, 1}), x)) + 1.0;
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, Async, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Async, TheFutureBecomesReady) {
  const LazyTensor y = leaf({1, 2}) + 1.0;
  const EvalFuture future = y.eval_async();
  future.get();
  EXPECT_TRUE(future.is_ready());
  EXPECT_TRUE(y.is_evaluated());
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 3}));
  future.wait();  // as often as wanted
  EXPECT_TRUE(EvalFuture().is_ready());
}

TEST_P(Async, ReturnsBeforeTheWorkIsDone) {
  // On a loaded machine this thread may sleep until the work is done: a few tries.
  bool seen_running = false;
  for (int i = 0; i < 10 && !seen_running; ++i) {
    const LazyTensor y = slow();
    const EvalFuture future = y.eval_async();
    seen_running = !future.is_ready() && !y.is_evaluated();
    future.get();
    EXPECT_TRUE(y.is_evaluated());
  }
  EXPECT_TRUE(seen_running);
}

TEST_P(Async, TheFutureServesManyThreads) {
  const LazyTensor y = slow(2);
  const EvalFuture future = y.eval_async();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([future, y] {
      future.get();
      EXPECT_TRUE(y.is_evaluated());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Async, ValuesInFlightMayBeUsed) {
  const LazyTensor y = slow(2);
  const EvalFuture first = y.eval_async();
  const LazyTensor z = y * 2.0;
  EXPECT_EQ(z.graph_size(), 2U) << "what is scheduled counts as computed";
  const EvalFuture second = z.eval_async();
  second.get();
  EXPECT_TRUE(first.is_ready()) << "the stream is in order";
  const int n = static_cast<int>(y.shape(0));
  EXPECT_NEAR(z.to_vector<float>()[0], 2.0F / static_cast<float>(n), 1e-6F);
}

TEST_P(Async, InterleavedWithSyncKeepsOrder) {
  LazyTensor y = leaf({1, -1});
  std::vector<EvalFuture> futures;
  double a = 1;
  double b = -1;
  for (int i = 0; i < 60; ++i) {
    y = y * 0.5 + static_cast<double>(i % 5);
    a = a * 0.5 + i % 5;
    b = b * 0.5 + i % 5;
    if (i % 3 == 0) {
      y.eval();
    } else {
      futures.push_back(y.eval_async());
    }
    if (i % 7 == 0) {
      EXPECT_NEAR(y.to_vector<float>()[1], static_cast<float>(b), 1e-5F);
    }
  }
  EXPECT_NEAR(y.to_vector<float>()[0], static_cast<float>(a), 1e-5F);
  for (const EvalFuture& future : futures) EXPECT_TRUE(future.is_ready());
}

TEST_P(Async, AThousandInARow) {
  LazyTensor total = leaf({0, 0});
  const LazyTensor step = leaf({1, 2});
  std::vector<EvalFuture> futures;
  for (int i = 0; i < 1000; ++i) {
    total = total + step;
    futures.push_back(total.eval_async());
  }
  for (const EvalFuture& future : futures) future.get();
  EXPECT_EQ(total.to_vector<float>(), (Floats{1000, 2000}));
}

TEST_P(Async, SeveralOutputsShareAFuture) {
  const LazyTensor x = leaf({1, 2});
  const LazyTensor y = exp(x - x);
  const LazyTensor z = x + y;
  const LazyTensor elsewhere = LazyTensor::ones({2}, DType::f32, Device::null()) * 2.0;
  const EvalFuture future = eval_async({y, z, x, y, elsewhere});
  future.get();
  EXPECT_TRUE(y.is_evaluated() && z.is_evaluated() && elsewhere.is_evaluated());
  EXPECT_EQ(z.to_vector<float>(), (Floats{2, 3}));
}

TEST_P(Async, HandlesMayGoWhileTheWorkRuns) {
  {
    const LazyTensor y = slow(2);
    static_cast<void>(eval_async({y, y * 2.0}));
  }
  synchronize();
  EXPECT_EQ((leaf({1}) + 1.0).item(), 2.0F);
}

TEST_P(Async, SynchronizeWaitsForEverything) {
  std::vector<EvalFuture> futures;
  for (int i = 0; i < 4; ++i) futures.push_back(slow(2).eval_async());
  synchronize();
  for (const EvalFuture& future : futures) EXPECT_TRUE(future.is_ready());
}

TEST_P(Async, ErrorsOfPlanningAreInTheFuture) {
  const LazyTensor x = LazyTensor::ones({2048, 1}, DType::f32, device()).eval();
  // No room for the output, 16 MiB that are taken before anything is handed to the device.
  set_memory_limit(device(), 1 << 20);
  const LazyTensor y = matmul(x, transpose(x));
  const std::uint64_t submits = backend(device()).counters().submits;
  const EvalFuture future = y.eval_async();
  EXPECT_TRUE(future.is_ready());
  EXPECT_THROW(future.get(), OutOfMemoryError);
  EXPECT_THROW(future.get(), OutOfMemoryError) << "as often as asked";
  EXPECT_EQ(backend(device()).counters().submits, submits);
  EXPECT_FALSE(y.is_evaluated());
  set_memory_limit(device(), 0);
  EXPECT_EQ(sum(y).item(), 2048.0F * 2048);
}

TEST_P(Async, AFailureReachesEverythingThatDependsOnIt) {
  const LazyTensor bad = failing();
  const EvalFuture future = bad.eval_async();
  const LazyTensor dependent = bad * 2.0 + 1.0;
  const EvalFuture later = dependent.eval_async();
  const LazyTensor good = leaf({1, 2}) + 1.0;
  EXPECT_THROW(future.get(), Error);
  EXPECT_THROW(later.get(), Error);
  EXPECT_THROW(bad.eval(), Error);
  EXPECT_THROW(dependent.item(), Error);
  EXPECT_FALSE(bad.is_evaluated());
  EXPECT_FALSE(dependent.is_evaluated());
  EXPECT_THROW((bad + dependent).item(), Error) << "one more that is planned after the failure";
  EXPECT_EQ(good.to_vector<float>(), (Floats{2, 3})) << "the engine is as usable as before";
}

TEST_P(Async, ACpuThatIsOutOfMemorySaysSo) {
  if (device().kind != DeviceKind::cpu) GTEST_SKIP() << "a GPU refuses such shapes earlier";
  const LazyTensor bad = failing();
  EXPECT_NE(plan_for({bad}), nullptr);
  EXPECT_THROW(bad.eval_async().get(), DeviceError);
}

TEST_P(Async, AFailureInsideEvalIsThrownThere) {
  EXPECT_THROW(failing().eval(), Error);
  EXPECT_EQ((leaf({1}) + 1.0).item(), 2.0F);
}

}  // namespace
}  // namespace caldera::testing
