// Stream: the in-order queue of one device.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/job.h"

namespace caldera {

/// Runs jobs in order. A job whose input failed fails with the same error. An idle stream lets the caller run
/// its job itself: handing it to another thread and back costs more than most small graphs.
///
/// A device that runs on its own (Backend::runs_ahead) gets the next jobs while it runs one, kRunning at
/// once, from whichever thread comes first: the one that schedules, or the stream's own. Events are set in
/// order, each when its job and all before it are done.
///
/// What other devices compute is waited for asleep, by the stream's own thread, and so are copies. All jobs
/// of all devices are queued in an order in which none depends on a later one, so some device can always go
/// on.
class Stream {
 public:
  /// Jobs on the device at once: one runs, one waits behind it, one is being submitted.
  static constexpr std::size_t kRunning = 3;

  explicit Stream(Backend& backend) : backend_(backend), depth_(backend.runs_ahead() ? kRunning : 1) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes the job's place in the order. True if the stream was idle and `inline_if_idle`: then the caller
  /// must call run_inline with the same job, soon. False: the caller calls advance, and the stream does the
  /// rest.
  bool enqueue(std::shared_ptr<Job> job, bool inline_if_idle);
  void run_inline(const std::shared_ptr<Job>& job);
  /// Submits what the device takes without waiting. Then blocks while so many jobs wait that more would only
  /// hold memory, the last `own` of them left out.
  void advance(std::size_t own = 1);
  void synchronize();

 private:
  static constexpr std::size_t kMaxQueued = 16;

  /// A job that has been submitted, or failed before it could be.
  struct Running {
    std::shared_ptr<Job> job;
    Ticket ticket = 0;
    std::exception_ptr error;
    bool has_begun = false;  // memory may have been written
  };
  enum class Input : std::uint8_t { ready, failed, elsewhere };

  // Under the mutex; what takes `lock` gives it up for a while.
  Input inputs(const Job& job, std::exception_ptr& error) const;
  bool may_submit(bool may_wait) const;
  bool may_finish() const { return !finishing_ && !running_.empty(); }
  void submit_next(std::unique_lock<std::mutex>& lock);
  void finish_oldest(std::unique_lock<std::mutex>& lock);
  bool is_idle() const { return queue_.empty() && running_.empty() && !submitting_; }

  Running submit(std::shared_ptr<Job> job, Input input, std::exception_ptr error);
  void finish(Running running);
  void work();

  Backend& backend_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;  // not yet submitted
  std::deque<Running> running_;             // oldest first
  bool submitting_ = false;                 // a thread has the place behind running_
  bool finishing_ = false;                  // a thread waits for the front of running_
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace caldera
