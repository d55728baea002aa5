// RequestBook: the requests of a batch generator from all threads: who waits, who is to end, what was
// counted. Private to lm/generate/.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lm/generate/batch/batch_request.h"
#include "lm/generate/batch/running_request.h"

namespace caldera {

using RequestPtr = std::unique_ptr<RunningRequest>;

/// Thread-safe. A request is alive from add() to ended(), whether it waits here or whoever took it has it.
class RequestBook {
 public:
  explicit RequestBook(const BatchLimits& limits) : limits_(limits) {}

  /// Puts a request at the queue's end. Throws QueueFull, DeviceError after close(), and what `make` throws.
  RequestId add(const std::function<RequestPtr(RequestId)>& make);
  /// Notes that a request is to end. False where it is not alive, or its last event is on its way.
  bool cancel(RequestId id);
  /// Says that the last event of a request is told now: it cannot be cancelled any more. False, and nothing
  /// changes, where it was cancelled before.
  bool begin_end(RequestId id);
  void ended(RequestId id);
  /// Refuses requests from now on, for this reason.
  void close(std::string why);
  /// That reason; none before close().
  std::optional<std::string> closed() const;

  bool has_work() const;
  bool wait(double seconds);
  /// The request that waits for longest; null where none waits.
  RequestPtr next();
  /// Puts one back to where next() takes it from.
  void put_back(RequestPtr request);
  /// Returns those that wait and were cancelled, and whether one that does not wait was.
  std::vector<RequestPtr> take_cancelled();
  bool is_cancelled(RequestId id) const;
  /// All that wait.
  std::vector<RequestPtr> take_waiting();

  /// Calls `change` with the counters.
  void count(const std::function<void(BatchStatus&)>& change);
  BatchStatus status() const;

 private:
  const BatchLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestPtr> queue_;
  std::unordered_set<RequestId> alive_;
  std::unordered_set<RequestId> cancelled_;
  std::unordered_set<RequestId> ending_;
  std::optional<std::string> closed_;
  RequestId next_ = 1;
  BatchStatus status_;
};

}  // namespace caldera
