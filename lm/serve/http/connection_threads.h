// ConnectionThreads: a bounded number of threads for the connections of an HTTP server.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace caldera::serve {

/// A thread a connection, as many as there are connections, up to a number. One more thread takes those
/// beyond, one at a time, and tells them to come back later: refuses_here() is true on it. Where many of
/// those wait, the system holds back the next.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most);
  ~ConnectionThreads() override;

  // The return type differs between versions of cpp-httplib: nothing, or whether the task is taken.
  using Enqueued =
      decltype(std::declval<httplib::TaskQueue&>().enqueue(std::declval<std::function<void()>>()));
  Enqueued enqueue(std::function<void()> task) override {
    add(std::move(task));
    return static_cast<Enqueued>(true);
  }
  void shutdown() override;

  /// Whether the calling thread is there to refuse what it gets.
  static bool refuses_here();

 private:
  using Tasks = std::deque<std::function<void()>>;

  void add(std::function<void()> task);
  void work(Tasks& tasks, bool refuses);

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Tasks tasks_;
  Tasks refused_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // the first refuses
};

}  // namespace caldera::serve
