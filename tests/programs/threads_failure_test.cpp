// A failure in one thread is that thread's: others, and what they wait for, go on.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

TEST(ProgramFailingThread, AnErrorIsThrownWhereItsValueIsAskedForAndNowhereElse) {
  const ScopedSettings scope;
  const LazyTensor good = LazyTensor::from_vector<float>({4, 0, 0, 9}, {2, 2});
  const LazyTensor bad = LazyTensor::from_vector<float>({4, 0, 0, -9}, {2, 2});  // has no Cholesky factor
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        try {
          const std::vector<float> factor = cholesky(t == 0 ? bad : good).to_vector<float>();
          EXPECT_EQ(factor, (std::vector<float>{2, 0, 0, 3})) << t;
        } catch (const Error&) {
          EXPECT_EQ(t, 0);
          ++errors;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 20);
  EXPECT_EQ((bad + 1.0).to_vector<float>(), (std::vector<float>{5, 1, 1, -8})) << "its input is as it was";
}

TEST(ProgramFailingThread, AFutureCarriesTheErrorToWhoeverAsks) {
  const ScopedSettings scope;
  const LazyTensor bad = LazyTensor::from_vector<float>({-1}, {1, 1});
  const EvalFuture future = cholesky(bad).eval_async();
  const EvalFuture other = (bad * 2.0).eval_async();
  std::thread([&] { EXPECT_THROW(future.get(), Error); }).join();
  EXPECT_THROW(future.get(), Error) << "every time";
  EXPECT_NO_THROW(other.get());
}

}  // namespace
}  // namespace caldera::testing
