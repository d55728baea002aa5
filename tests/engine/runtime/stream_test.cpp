// The stream on a device that runs on its own: what is queued behind what, the order of events, errors.
#include "engine/runtime/stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "tests/support/idle_backend.h"

namespace caldera::testing {
namespace {

/// A device on which nothing is done until the test says so.
class HeldBackend final : public IdleBackend {
 public:
  bool runs_ahead() const override { return true; }

  Ticket submit(Executable&, const Bindings& bindings) override {
    const std::scoped_lock lock(mutex_);
    if (bindings.scalars == refused) throw DeviceError("refused");
    changed_.notify_all();
    return ++submitted_;
  }
  void wait(Ticket ticket) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_ >= ticket; });
    if (ticket == failing) throw DeviceError("failed");
  }

  void release(Ticket ticket) {
    const std::scoped_lock lock(mutex_);
    released_ = ticket;
    changed_.notify_all();
  }
  /// Waits until so many are submitted. False if that does not come about.
  bool reaches(Ticket count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return submitted_ >= count; });
  }
  Ticket submitted() {
    const std::scoped_lock lock(mutex_);
    return submitted_;
  }

  /// Jobs that submit refuses are those with these scalars.
  const std::vector<std::uint64_t> refused{42};
  /// The ticket whose work ends with an error.
  Ticket failing = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Ticket submitted_ = 0;
  Ticket released_ = 0;
};

class StreamOrder : public ::testing::Test {
 protected:
  ~StreamOrder() override { backend_.release(~Ticket{0}); }

  std::shared_ptr<Job> job(std::vector<std::shared_ptr<Event>> depends = {}) {
    auto job = std::make_shared<Job>();
    job->executable = backend_.prepare(std::make_shared<Plan>());
    job->depends = std::move(depends);
    job->done = std::make_shared<Event>();
    return job;
  }
  std::shared_ptr<Event> start(const std::shared_ptr<Job>& job) {
    std::shared_ptr<Event> done = job->done;
    EXPECT_FALSE(stream_.enqueue(job, false));
    stream_.advance();
    return done;
  }
  static std::string error_of(const Event& event) {
    try {
      event.wait();
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  }

  HeldBackend backend_;
  Stream stream_{backend_};
};

TEST_F(StreamOrder, JobsAreSubmittedBehindOneThatRuns) {
  std::vector<std::shared_ptr<Event>> done;
  done.push_back(start(job()));
  for (int i = 1; i < 8; ++i) done.push_back(start(job({done.back()})));
  ASSERT_TRUE(backend_.reaches(Stream::kRunning));
  EXPECT_EQ(backend_.submitted(), Stream::kRunning) << "what is in flight is bounded";
  for (const auto& event : done) EXPECT_FALSE(event->is_set());
  backend_.release(1);
  done[0]->wait();
  ASSERT_TRUE(backend_.reaches(Stream::kRunning + 1)) << "as one ends the next is submitted";
  EXPECT_FALSE(done[1]->is_set());
  backend_.release(8);
  for (const auto& event : done) EXPECT_EQ(error_of(*event), "none");
  stream_.synchronize();
}

TEST_F(StreamOrder, AnErrorReachesWhatDependsOnItAndNothingElse) {
  const auto first = start(job());
  const auto refused = job();
  refused->bindings.scalars = backend_.refused;
  const auto second = start(refused);
  const auto third = start(job({second}));
  const auto fourth = start(job({first}));
  ASSERT_TRUE(backend_.reaches(1));
  EXPECT_FALSE(second->is_set()) << "events are set in order, those of jobs that failed at once too";
  backend_.release(8);
  EXPECT_EQ(error_of(*first), "none");
  EXPECT_EQ(error_of(*second), "refused");
  EXPECT_EQ(error_of(*third), "refused");
  EXPECT_EQ(error_of(*fourth), "none");
  EXPECT_EQ(backend_.submitted(), 2U) << "what has no input is not run";
}

TEST_F(StreamOrder, AnErrorFoundLateReachesWhatWasSubmittedBehind) {
  backend_.failing = 1;
  const auto first = start(job());
  const auto second = start(job({first}));
  const auto third = start(job());
  ASSERT_TRUE(backend_.reaches(3));
  backend_.release(3);
  EXPECT_EQ(error_of(*first), "failed");
  EXPECT_EQ(error_of(*second), "failed");
  EXPECT_EQ(error_of(*third), "none");
}

TEST_F(StreamOrder, WhatAnotherDeviceComputesIsWaitedForAfterWhatRunsHere) {
  const auto elsewhere = std::make_shared<Event>();
  const auto first = start(job());
  const auto second = start(job({elsewhere}));
  const auto third = start(job());
  ASSERT_TRUE(backend_.reaches(1));
  backend_.release(8);
  EXPECT_EQ(error_of(*first), "none") << "the other device may wait for it";
  EXPECT_EQ(backend_.submitted(), 1U);
  elsewhere->set();
  EXPECT_EQ(error_of(*second), "none");
  EXPECT_EQ(error_of(*third), "none");
}

TEST_F(StreamOrder, AnIdleStreamLetsTheCallerRunItsJob) {
  backend_.release(1);
  const auto mine = job();
  ASSERT_TRUE(stream_.enqueue(mine, true));
  stream_.run_inline(mine);
  EXPECT_TRUE(mine->done->is_set());

  const auto running = start(job());
  const auto behind = job();
  EXPECT_FALSE(stream_.enqueue(behind, true)) << "something runs";
  stream_.advance();
  ASSERT_TRUE(backend_.reaches(3)) << "it is queued behind that all the same";
  backend_.release(3);
  behind->done->wait();
}

TEST_F(StreamOrder, OthersSubmitBehindAJobThatItsCallerWaitsFor) {
  const auto mine = job();
  ASSERT_TRUE(stream_.enqueue(mine, true));
  std::thread caller([&] { stream_.run_inline(mine); });
  ASSERT_TRUE(backend_.reaches(1));
  const auto second = start(job({mine->done}));
  ASSERT_TRUE(backend_.reaches(2));
  EXPECT_FALSE(mine->done->is_set());
  backend_.release(2);
  EXPECT_EQ(error_of(*second), "none");
  EXPECT_TRUE(mine->done->is_set());
  caller.join();
}

}  // namespace
}  // namespace caldera::testing
