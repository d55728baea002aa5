#include "lm/generate/batch/request_book.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace caldera {

RequestId RequestBook::add(const std::function<RequestPtr(RequestId)>& make) {
  const std::lock_guard lock(mutex_);
  if (closed_)
    throw DeviceError(
        fmt::format("generate: the device has failed, and takes no more requests: {}", *closed_));
  if (static_cast<std::int64_t>(alive_.size()) - limits_.max_batch >= limits_.max_queue)
    throw QueueFull(fmt::format("{} requests are running or wait; try again later", alive_.size()));
  const RequestId id = next_;
  queue_.push_back(make(id));
  ++next_;
  alive_.insert(id);
  changed_.notify_all();
  return id;
}

bool RequestBook::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(id) || ending_.contains(id)) return false;
  cancelled_.insert(id);
  changed_.notify_all();
  return true;
}

bool RequestBook::begin_end(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (cancelled_.contains(id)) return false;
  ending_.insert(id);
  return true;
}

void RequestBook::ended(RequestId id) {
  const std::lock_guard lock(mutex_);
  alive_.erase(id);
  cancelled_.erase(id);
  ending_.erase(id);
  ++status_.finished;
}

std::optional<std::string> RequestBook::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void RequestBook::close(std::string why) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = std::move(why);
}

bool RequestBook::has_work() const {
  const std::lock_guard lock(mutex_);
  return !alive_.empty();
}

bool RequestBook::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !alive_.empty(); });
}

RequestPtr RequestBook::next() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return nullptr;
  RequestPtr request = std::move(queue_.front());
  queue_.pop_front();
  return request;
}

void RequestBook::put_back(RequestPtr request) {
  const std::lock_guard lock(mutex_);
  queue_.push_front(std::move(request));
}

std::vector<RequestPtr> RequestBook::take_cancelled() {
  const std::lock_guard lock(mutex_);
  std::vector<RequestPtr> taken;
  for (auto request = queue_.begin(); request != queue_.end();) {
    const bool ends = cancelled_.contains((*request)->id());
    if (ends) taken.push_back(std::move(*request));
    request = ends ? queue_.erase(request) : request + 1;
  }
  return taken;
}

bool RequestBook::is_cancelled(RequestId id) const {
  const std::lock_guard lock(mutex_);
  return cancelled_.contains(id);
}

std::vector<RequestPtr> RequestBook::take_waiting() {
  const std::lock_guard lock(mutex_);
  std::vector<RequestPtr> taken;
  for (RequestPtr& request : queue_) taken.push_back(std::move(request));
  queue_.clear();
  return taken;
}

void RequestBook::count(const std::function<void(BatchStatus&)>& change) {
  const std::lock_guard lock(mutex_);
  change(status_);
}

BatchStatus RequestBook::status() const {
  const std::lock_guard lock(mutex_);
  BatchStatus status = status_;
  status.waiting = static_cast<std::int64_t>(queue_.size());
  // Also those that are between the two.
  status.running = static_cast<std::int64_t>(alive_.size()) - status.waiting;
  return status;
}

}  // namespace caldera
