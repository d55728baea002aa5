// The stream of a device that computes on the threads that call it: jobs side by side.
#include <algorithm>
#include <exception>
#include <utility>

#include "engine/runtime/stream.h"

namespace caldera {
namespace {

bool is_ready(const Job& job) {
  return std::ranges::all_of(job.depends, [](const auto& event) { return event->is_set(); });
}

}  // namespace

bool Stream::may_run_in_lane(const Job& job) const {
  return busy_.size() + 1 < lanes_ && job.copies.empty() && is_ready(job);
}

/// The place in the queue of the oldest job whose inputs are there; of the first, if there is none such and
/// nobody waits for another device yet; kNone otherwise.
std::size_t Stream::next_for_lane() const {
  if (queue_.empty() || !has_free_lane()) return kNone;
  const auto ready = std::ranges::find_if(queue_, [](const auto& job) { return is_ready(*job); });
  if (ready != queue_.end()) return static_cast<std::size_t>(ready - queue_.begin());
  // What a job waits for that has a lane here will be told.
  const bool is_here = std::ranges::any_of(queue_.front()->depends, [&](const auto& event) {
    return !event->is_set() && std::ranges::any_of(busy_, [&](const Job* job) { return job->done == event; });
  });
  return waiting_ == 0 && !is_here ? 0 : kNone;
}

/// Wakes a worker, or starts one more, where there is a job to take and nobody who will.
void Stream::staff() {
  if (next_for_lane() == kNone) return;
  if (idle_ > 0) {
    takeable_.notify_one();
    return;
  }
  if (stopping_ || workers_.size() >= std::min(lanes_ - 1, kMostWorkers)) return;
  try {
    workers_.emplace_back([this] { work_in_lane(); });
  } catch (const std::exception&) {  // those there are do it
  }
}

void Stream::run_in_lane(std::unique_lock<std::mutex>& lock, std::size_t place) {
  const auto at = queue_.begin() + static_cast<std::ptrdiff_t>(place);
  std::shared_ptr<Job> job = std::move(*at);
  queue_.erase(at);
  const Job* const mine = job.get();
  busy_.push_back(mine);
  const std::shared_ptr<Job> kept = job;  // others may look at its event until it has left the lane
  std::exception_ptr error;
  const Input input = inputs(*job, error);
  const bool waits = input == Input::elsewhere;
  if (waits) ++waiting_;
  staff();
  lock.unlock();
  finish(submit(std::move(job), input, std::move(error)));
  lock.lock();
  if (waits) --waiting_;
  leave_lane(mine);
}

void Stream::leave_lane(const Job* job) {
  const auto lane = std::ranges::find(busy_, job);
  *lane = busy_.back();
  busy_.pop_back();
  if (!queue_.empty()) staff();
  if (stopping_) takeable_.notify_all();
  // Under the mutex: the stream may go once no lane is busy.
  if (watchers_ > 0) changed_.notify_all();
}

void Stream::work_in_lane() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::size_t next = next_for_lane();
    while (next == kNone && !(stopping_ && queue_.empty() && busy_.empty())) {
      ++idle_;
      takeable_.wait(lock);
      --idle_;
      next = next_for_lane();
    }
    if (next == kNone) return;
    run_in_lane(lock, next);
  }
}

/// Not for a moment at which nothing runs, which may never come while others evaluate.
void Stream::wait_for_lanes() {
  std::vector<std::shared_ptr<Event>> scheduled;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& job : queue_) scheduled.push_back(job->done);
    for (const Job* job : busy_) scheduled.push_back(job->done);
  }
  for (const auto& event : scheduled) {
    try {
      event->wait();
    } catch (...) {  // it stays in the event
    }
  }
}

}  // namespace caldera
