#include "engine/runtime/stream.h"

#include <exception>
#include <utility>

#include "engine/runtime/profiler.h"

namespace caldera {

Stream::~Stream() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

bool Stream::enqueue(std::shared_ptr<Job> job, bool inline_if_idle) {
  const std::scoped_lock lock(mutex_);
  if (inline_if_idle && !busy_ && queue_.empty()) {
    busy_ = true;
    return true;
  }
  queue_.push_back(std::move(job));
  if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
  changed_.notify_all();
  return false;
}

void Stream::run_inline(Job& job) {
  run(job);
  {
    const std::scoped_lock lock(mutex_);
    busy_ = false;
  }
  changed_.notify_all();
}

void Stream::run(Job& job) {
  std::exception_ptr error;
  for (const auto& event : job.depends) {
    // Earlier jobs of this stream are done, so their events are set.
    if (event->is_set() && event->error()) error = event->error();
  }
  if (!error) {
    try {
      if (job.record)
        run_recorded(backend_, job);
      else
        backend_.wait(backend_.submit(*job.executable, job.bindings));
    } catch (...) {
      error = std::current_exception();
    }
  }
  // What the job held goes before its completion is seen, so that memory is free when a waiter looks.
  job.storages.clear();
  job.depends.clear();
  job.executable.reset();
  job.done->set(error);
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return (!busy_ && !queue_.empty()) || (stopping_ && queue_.empty()); });
    if (queue_.empty()) return;
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    changed_.notify_all();
    run(*job);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Stream::throttle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < kMaxQueued; });
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

}  // namespace caldera
