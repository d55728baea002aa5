#include "lm/serve/http/connection_threads.h"

namespace caldera::serve {
namespace {

constexpr std::size_t kMostRefused = 64;
thread_local bool refuses = false;

}  // namespace

ConnectionThreads::ConnectionThreads(std::size_t most) : most_(most) {
  threads_.emplace_back([this] { work(refused_, true); });
}

ConnectionThreads::~ConnectionThreads() { shutdown(); }

bool ConnectionThreads::refuses_here() { return refuses; }

void ConnectionThreads::add(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  if (idle_ > tasks_.size()) {
    tasks_.push_back(std::move(task));
  } else if (threads_.size() <= most_) {
    tasks_.push_back(std::move(task));
    threads_.emplace_back([this] { work(tasks_, false); });
  } else {
    changed_.wait(lock, [&] { return refused_.size() < kMostRefused || stopping_; });
    refused_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void ConnectionThreads::work(Tasks& tasks, bool refusing) {
  refuses = refusing;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!refusing) ++idle_;
    changed_.wait(lock, [&] { return !tasks.empty() || stopping_; });
    if (!refusing) --idle_;
    if (tasks.empty()) return;
    const std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    task();
    lock.lock();
    changed_.notify_all();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace caldera::serve
