#include "engine/device/vulkan/record/measurements.h"

#include <chrono>

namespace caldera::vulkan {

void Measurements::add(std::uint64_t ticket, std::shared_ptr<const Stamps> stamps,
                       std::vector<DispatchRange> steps, std::vector<StepTime>* times) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({ticket, std::move(stamps), std::move(steps), times});
  count_.store(pending_.size(), std::memory_order_release);
}

void Measurements::forget(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  std::erase_if(pending_, [&](const Pending& replay) { return replay.ticket <= ticket; });
  count_.store(pending_.size(), std::memory_order_release);
}

void Measurements::collect(std::uint64_t ticket) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  // The device's clock counts from some moment of its own. What has just been seen to be done is taken to
  // have ended now; everything else is before it as the device's clock says.
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::deque<Pending> done;
  while (!pending_.empty() && pending_.front().ticket <= ticket) {
    done.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  count_.store(pending_.size(), std::memory_order_release);
  if (done.empty()) return;
  const PhysicalDevice& physical = device_->physical();
  const std::uint64_t end = done.back().stamps->read().back();
  for (const Pending& replay : done) {
    const std::vector<std::uint64_t> ticks = replay.stamps->read();
    const auto time = [&](std::size_t stamp) {
      return now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       elapsed(physical, ticks[stamp], end));
    };
    replay.times->reserve(replay.steps.size());
    for (const DispatchRange& step : replay.steps)
      replay.times->push_back({time(step.first), time(step.first + step.count)});
  }
}

}  // namespace caldera::vulkan
