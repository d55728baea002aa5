// What an evaluation takes over from the one before: the memory of its job's lists.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/base/small_allocator.h"
#include "engine/runtime/job.h"
#include "engine/runtime/job_inputs.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

TEST(JobMemory, TheNextJobHasIt) {
  if (!small_memory::kIsKept) GTEST_SKIP() << "nothing is kept under AddressSanitizer";
  std::shared_ptr<Job> job = new_job();
  const Job* const was = job.get();
  const std::shared_ptr<Event> done = job->done;
  job->bindings.slots.resize(5);
  job->bindings.scalars.resize(7);
  job.reset();
  job = new_job();
  ASSERT_EQ(job.get(), was);
  EXPECT_TRUE(job->bindings.slots.empty());
  EXPECT_TRUE(job->bindings.scalars.empty());
  EXPECT_GE(job->bindings.slots.capacity(), 5U);
  EXPECT_GE(job->bindings.scalars.capacity(), 7U);
  EXPECT_NE(job->done, done);  // who waits for the first does not wait for the second
  EXPECT_EQ(job->bindings.is_cancelled, &job->done->cancel_flag());
  EXPECT_NE(new_job().get(), was);  // it is in use
}

TEST(JobMemory, AJobThatHoldsSomethingIsNotRenewed) {
  Job job;
  EXPECT_TRUE(job.renew());
  job.storages.push_back(nullptr);
  EXPECT_FALSE(job.renew());
  job.storages.clear();
  EXPECT_TRUE(job.renew());
  job.bindings.slots.resize(100'000);  // not worth keeping
  EXPECT_FALSE(job.renew());
}

TEST(JobMemory, LoopsOfEvaluationsGiveRightValues) {
  // Graphs of several sizes, one after another and from errors: none sees what another left.
  for (int turn = 0; turn < 50; ++turn) {
    const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3}, {3});
    LazyTensor y = x;
    for (int i = 0; i < turn % 7; ++i) y = y + x;
    const LazyTensor z = x * static_cast<double>(turn);
    caldera::eval({y, z});
    const auto n = static_cast<float>(turn % 7 + 1);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{n, 2 * n, 3 * n}));
    const auto t = static_cast<float>(turn);
    EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{t, 2 * t, 3 * t}));
    if (turn % 5 != 0) continue;
    EXPECT_THROW(cholesky(LazyTensor::from_vector<float>({-1}, {1, 1})).eval(), Error);
  }
}

}  // namespace
}  // namespace caldera::testing
