#include "engine/runtime/stream.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/base/error.h"
#include "engine/runtime/device_copy.h"
#include "engine/runtime/profile_hooks.h"
#include "engine/runtime/settings.h"

namespace caldera {

Stream::~Stream() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    stopping_ = true;
    ++watchers_;
    changed_.wait(lock, [this] { return busy_.empty(); });
  }
  takeable_.notify_all();
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Stream::end_threads() {
  std::vector<std::thread> workers;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    has_ended_ = true;
    workers.swap(workers_);
  }
  takeable_.notify_all();
  changed_.notify_all();
  for (std::thread& worker : workers) worker.join();
}

bool Stream::enqueue(std::shared_ptr<Job> job, bool inline_if_idle) {
  const std::scoped_lock lock(mutex_);
  if (has_lanes()) {
    if (has_ended_ || (inline_if_idle && may_run_in_lane(*job))) {
      busy_.push_back(job.get());
      return true;
    }
    if (workers_.empty()) workers_.emplace_back([this] { work_in_lane(); });
    queue_.push_back(std::move(job));
    staff();
    return false;
  } else {
    if (has_ended_ || (inline_if_idle && is_idle())) {
      submitting_ = true;
      return true;
    }
    queue_.push_back(std::move(job));
    if (workers_.empty()) workers_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
  return false;
}

void Stream::run_inline(const std::shared_ptr<Job>& job) {
  // What kernels keep for a thread may be gone already where static objects go.
  if (has_ended_)
    std::thread([&] { run_here(job); }).join();
  else
    run_here(job);
}

void Stream::run_here(const std::shared_ptr<Job>& job) {
  std::exception_ptr error;
  Input input = Input::ready;
  if (!job->depends.empty()) {
    const std::scoped_lock lock(mutex_);
    input = inputs(*job, error);
  }
  Running running = submit(job, input, std::move(error));
  if (has_lanes()) {
    finish(std::move(running));
    const std::scoped_lock lock(mutex_);
    leave_lane(job.get());
    return;
  } else if (depth() == 1) {
    finish(std::move(running));
    const std::scoped_lock lock(mutex_);
    submitting_ = false;
  } else {
    std::unique_lock<std::mutex> lock(mutex_);
    submitting_ = false;
    running_.push_back(std::move(running));
    changed_.notify_all();  // others may submit behind it
    finish_oldest(lock);
  }
  changed_.notify_all();
}

/// What is known of the job's inputs. `elsewhere`: one is still being computed by another device.
Stream::Input Stream::inputs(const Job& job, std::exception_ptr& error) const {
  Input found = Input::ready;
  for (const auto& event : job.depends) {
    if (event->is_set()) {
      error = event->error();
    } else {
      const auto mine = std::ranges::find_if(running_, [&](const Running& r) { return r.job->sets(event); });
      if (mine == running_.end())
        found = Input::elsewhere;
      else
        error = mine->error;
    }
    if (error) return Input::failed;
  }
  return found;
}

/// Where each step is compared with the interpreter, a job finds the device idle.
std::size_t Stream::depth() const { return settings().check.on ? 1 : depth_; }

bool Stream::may_submit(bool may_wait) const {
  if (submitting_ || queue_.empty() || running_.size() >= depth()) return false;
  if (may_wait && running_.empty()) return true;
  if (!queue_.front()->copies.empty() && !may_wait) return false;
  // Loops and branches wait for what the device computes.
  const auto& executable = queue_.front()->executable;
  if (executable != nullptr && executable->runs_plans() && !may_wait) return false;
  // What another device computes may in turn wait for what runs here: that is finished first.
  std::exception_ptr error;
  return inputs(*queue_.front(), error) != Input::elsewhere;
}

Stream::Running Stream::submit(std::shared_ptr<Job> job, Input input, std::exception_ptr error) {
  Running running{std::move(job), 0, std::move(error), false};
  Job& j = *running.job;
  try {
    if (input == Input::elsewhere) {
      for (const auto& event : j.depends) event->wait();
    }
    if (!running.error) {
      for (const DeviceCopy& copy : j.copies) run_copy(copy);
      running.has_begun = true;
      if (j.executable) running.ticket = j.record ? submit_recorded(backend_, j) : submit_job(backend_, j);
    }
  } catch (const OutOfMemoryError&) {
    running.error = std::current_exception();
    running.has_begun = false;  // Backend::submit: nothing was queued
  } catch (...) {
    running.error = std::current_exception();
  }
  return running;
}

void Stream::submit_next(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Job> job = std::move(queue_.front());
  queue_.pop_front();
  submitting_ = true;
  std::exception_ptr error;
  const Input input = inputs(*job, error);
  lock.unlock();
  Running running = submit(std::move(job), input, std::move(error));
  lock.lock();
  running_.push_back(std::move(running));
  submitting_ = false;
  changed_.notify_all();
}

void Stream::finish_oldest(std::unique_lock<std::mutex>& lock) {
  finishing_ = true;
  Running oldest = running_.front();  // where it stands it may still be looked up
  lock.unlock();
  finish(std::move(oldest));
  lock.lock();
  running_.pop_front();
  finishing_ = false;
  changed_.notify_all();
}

void Stream::finish(Running running) {
  Job& job = *running.job;
  if (!running.error) {
    try {
      if (job.record)
        wait_recorded(backend_, job, running.ticket);
      else if (job.executable)
        backend_.wait(running.ticket);
    } catch (...) {
      running.error = std::current_exception();
    }
  }
  // Jobs that it was submitted behind are done by now, so all events are set.
  for (const auto& event : job.depends) {
    if (event->is_set() && event->error()) running.error = event->error();
  }
  job.end(std::move(running.error), running.has_begun);
}

void Stream::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return may_submit(true) || may_finish() || (stopping_ && is_idle()); });
    if (may_submit(true))
      submit_next(lock);
    else if (may_finish())
      finish_oldest(lock);
    else
      return;
  }
}

void Stream::advance(std::size_t own) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (depth() > 1 && may_submit(false)) submit_next(lock);
  ++watchers_;
  changed_.wait(lock, [&] { return queue_.size() < kMaxQueued - 1 + own; });
  --watchers_;
}

void Stream::synchronize() {
  if (has_lanes()) {
    wait_for_lanes();
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return is_idle(); });
}

}  // namespace caldera
