// Stream: the queue of one device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/adaptive_mutex.h"
#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/job.h"

namespace caldera {

/// Runs jobs, each after those that it depends on. A job whose input failed fails with the same error. The
/// caller may be let run its job itself: handing it to another thread and back costs more than most small
/// graphs.
///
/// A device that runs on its own (Backend::runs_ahead) runs jobs in order. It gets the next ones while it
/// runs one, kRunning at once, from whichever thread comes first: the one that schedules, or the stream's
/// own. Events are set in order, each when its job and all before it are done. An idle stream lets the caller
/// run its job.
///
/// A device that computes on the threads that call it runs jobs side by side, in Backend::lanes() lanes. A
/// job all of whose inputs are there is run by its caller, if a lane is free, ahead of what is queued; one
/// lane is left to the queue. Of what is queued, threads of the stream's own take the oldest job whose inputs
/// are there. This is sound because jobs in flight share no memory that one of them writes: a job writes to
/// blocks that were allocated for it, or that were given to it (find_donors), which happens only while no
/// other job holds them; jobs hold the blocks that they read or write until they are done. What a job reads
/// it depends on, unless that was there when it was scheduled.
///
/// What other devices compute is waited for asleep, by the stream's own thread, and so are copies. All jobs
/// of all devices are queued in an order in which none depends on a later one, so some device can always go
/// on.
class Stream {
 public:
  /// Jobs on the device at once: one runs, one waits behind it, one is being submitted.
  static constexpr std::size_t kRunning = 3;

  explicit Stream(Backend& backend)
      : backend_(backend), depth_(backend.runs_ahead() ? kRunning : 1), lanes_(backend.lanes()) {
    busy_.reserve(lanes_);
  }
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes the job's place in the order. True if the caller may run it now and `inline_if_idle`: then it must
  /// call run_inline with the same job, soon. False: the caller calls advance, and the stream does the
  /// rest.
  bool enqueue(std::shared_ptr<Job> job, bool inline_if_idle);
  void run_inline(const std::shared_ptr<Job>& job);
  /// Submits what the device takes without waiting. Then blocks while so many jobs wait that more would only
  /// hold memory, the last `own` of them left out.
  void advance(std::size_t own = 1);
  /// Blocks until what has been scheduled is done.
  void synchronize();
  /// The process is about to end, or ending: finishes what is queued and lets the threads go. From then on
  /// every job is run while its caller waits, so that what static objects still evaluate gets its value.
  void end_threads();

 private:
  static constexpr std::size_t kMaxQueued = 16;
  static constexpr std::size_t kMostWorkers = 8;
  static constexpr std::size_t kNone = ~std::size_t{0};

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
  std::size_t depth() const;
  bool may_submit(bool may_wait) const;
  bool may_finish() const { return !finishing_ && !running_.empty(); }
  void submit_next(std::unique_lock<std::mutex>& lock);
  void finish_oldest(std::unique_lock<std::mutex>& lock);
  bool is_idle() const { return queue_.empty() && running_.empty() && !submitting_; }

  // With lanes (stream_lanes.cpp), under the mutex.
  bool has_lanes() const { return lanes_ > 1; }
  bool has_free_lane() const { return busy_.size() < lanes_; }
  bool may_run_in_lane(const Job& job) const;
  std::size_t next_for_lane() const;
  void staff();
  void run_in_lane(std::unique_lock<std::mutex>& lock, std::size_t place);
  void leave_lane(const Job* job);

  void run_here(const std::shared_ptr<Job>& job);
  Running submit(std::shared_ptr<Job> job, Input input, std::exception_ptr error);
  void finish(Running running);
  void work();
  void work_in_lane();
  void wait_for_lanes();

  Backend& backend_;
  const std::size_t depth_;
  const std::size_t lanes_;
  AdaptiveMutex mutex_;
  std::condition_variable changed_;
  std::condition_variable takeable_;        // with lanes: a worker may have something to take
  std::deque<std::shared_ptr<Job>> queue_;  // not yet submitted
  std::deque<Running> running_;             // oldest first
  bool submitting_ = false;                 // a thread has the place behind running_
  bool finishing_ = false;                  // a thread waits for the front of running_
  bool stopping_ = false;
  std::atomic<bool> has_ended_{false};  // no threads any more
  std::vector<const Job*> busy_;        // a lane each; alive while they are here
  std::size_t waiting_ = 0;             // lanes that wait for another device
  std::size_t watchers_ = 0;            // threads that wait for `changed_`, with lanes
  std::size_t idle_ = 0;                // workers without a job
  std::vector<std::thread> workers_;    // one; with lanes some
};

}  // namespace caldera
