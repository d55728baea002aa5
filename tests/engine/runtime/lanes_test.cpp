// The stream of a device that computes on its callers: which jobs run side by side, and which wait.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/runtime/stream.h"
#include "tests/support/idle_backend.h"

namespace caldera::testing {
namespace {

/// A device with lanes, on which a job that has a number (its scalar) lasts until the test lets it go.
class LaneBackend final : public IdleBackend {
 public:
  std::size_t lanes() const override { return 3; }
  void wait(Ticket) override {}

  Ticket submit(Executable&, const Bindings& bindings) override {
    std::unique_lock lock(mutex_);
    ++running_;
    begun_.push_back(bindings.scalars.empty() ? 0 : bindings.scalars[0]);
    changed_.notify_all();
    changed_.wait(lock, [&] { return bindings.scalars.empty() || bindings.scalars[0] <= released_; });
    --running_;
    changed_.notify_all();
    return 0;
  }

  void release(std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    released_ = number;
    changed_.notify_all();
  }
  /// Waits until so many run at once. False if that does not come about.
  bool reaches(std::size_t running, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return running_ == running; });
  }
  std::vector<std::uint64_t> begun() {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
  std::uint64_t released_ = 0;
  std::vector<std::uint64_t> begun_;
};

class StreamLanes : public ::testing::Test {
 protected:
  ~StreamLanes() override {
    backend_.release(~std::uint64_t{0});
    for (std::thread& caller : callers_) caller.join();
  }

  std::shared_ptr<Job> job(std::uint64_t number, std::vector<std::shared_ptr<Event>> depends = {}) {
    auto job = std::make_shared<Job>();
    job->executable = backend_.prepare(std::make_shared<Plan>());
    job->depends = std::move(depends);
    job->bindings.scalars = {number};
    job->done = std::make_shared<Event>();
    return job;
  }
  /// Schedules a job as eval does: by a thread of its own that runs it if it may.
  std::shared_ptr<Event> eval(const std::shared_ptr<Job>& job, bool expect_inline) {
    std::shared_ptr<Event> done = job->done;
    const bool is_inline = stream_.enqueue(job, true);
    EXPECT_EQ(is_inline, expect_inline);
    if (is_inline) callers_.emplace_back([this, job] { stream_.run_inline(job); });
    return done;
  }
  std::shared_ptr<Event> queue(const std::shared_ptr<Job>& job) {
    std::shared_ptr<Event> done = job->done;
    EXPECT_FALSE(stream_.enqueue(job, false));
    stream_.advance();
    return done;
  }

  LaneBackend backend_;
  std::vector<std::thread> callers_;
  Stream stream_{backend_};
};

TEST_F(StreamLanes, CallersRunTheirJobsSideBySide) {
  const auto first = eval(job(1), true), second = eval(job(2), true);
  ASSERT_TRUE(backend_.reaches(2));
  const auto queued = eval(job(3), false);
  ASSERT_TRUE(backend_.reaches(3)) << "one lane is left to what is queued";
  const auto waiting = queue(job(4));
  EXPECT_FALSE(backend_.reaches(4, std::chrono::milliseconds(20))) << "there are three lanes";
  backend_.release(4);
  for (const auto& done : {first, second, queued, waiting}) done->wait();
}

TEST_F(StreamLanes, AJobWaitsForWhatItReadsAndOthersPassIt) {
  backend_.release(1);
  const auto source = eval(job(2), true);
  ASSERT_TRUE(backend_.reaches(1));
  const auto reader = eval(job(1, {source}), false);
  const auto other = eval(job(1), true);
  other->wait();
  const auto queued = queue(job(1));
  queued->wait();
  EXPECT_FALSE(reader->is_set());
  backend_.release(2);
  reader->wait();
  EXPECT_EQ(backend_.begun(), (std::vector<std::uint64_t>{2, 1, 1, 1}));
}

TEST_F(StreamLanes, WhatAnotherDeviceComputesKeepsNobodyFromRunning) {
  const auto elsewhere = std::make_shared<Event>();
  const auto reader = queue(job(1, {elsewhere})), second = queue(job(1, {elsewhere}));
  backend_.release(1);
  queue(job(1))->wait();
  eval(job(1), true)->wait();
  EXPECT_FALSE(reader->is_set());
  elsewhere->set(std::make_exception_ptr(DeviceError("lost")));
  EXPECT_THROW(reader->wait(), DeviceError);
  EXPECT_THROW(second->wait(), DeviceError);
}

TEST_F(StreamLanes, SynchronizeWaitsForWhatIsScheduledAndNotForMore) {
  const auto first = eval(job(1), true);
  ASSERT_TRUE(backend_.reaches(1));
  std::thread waiter([&] { stream_.synchronize(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto later = eval(job(2), true);  // never ends before the waiter does
  ASSERT_TRUE(backend_.reaches(2));
  backend_.release(1);
  waiter.join();
  EXPECT_TRUE(first->is_set());
  EXPECT_FALSE(later->is_set());
}

}  // namespace
}  // namespace caldera::testing
