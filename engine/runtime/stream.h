// Stream: the in-order queue of one device.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/device/backend.h"
#include "engine/graph/node.h"

namespace caldera {

struct RunRecord;

/// One replay of a plan: everything it needs, held until it is done.
struct Job {
  std::shared_ptr<Executable> executable;
  Bindings bindings;
  std::vector<StoragePtr> storages;             // of all bindings
  std::vector<std::shared_ptr<Event>> depends;  // of inputs that may still fail
  std::shared_ptr<Event> done;
  std::shared_ptr<RunRecord> record;  // null unless someone records (profiler.h)
};

/// Runs jobs one after the other. A job whose input failed fails with the same error. An idle stream lets the
/// caller run its job itself: handing it to another thread and back costs more than most small graphs.
class Stream {
 public:
  explicit Stream(Backend& backend) : backend_(backend) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes the job's place in the order. True if the stream was idle and `inline_if_idle`: then the caller
  /// must call run_inline with the same job, soon. False: the stream's thread will run it.
  bool enqueue(std::shared_ptr<Job> job, bool inline_if_idle);
  void run_inline(Job& job);
  /// Blocks while so many jobs wait that more would only hold memory.
  void throttle();
  void synchronize();

 private:
  void run(Job& job);
  void work();

  static constexpr std::size_t kMaxQueued = 16;

  Backend& backend_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace caldera
