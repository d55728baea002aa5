// Replays that somebody measures, from their submit until their times are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/record/timestamps.h"

namespace caldera::vulkan {

/// Any thread.
class Measurements {
 public:
  explicit Measurements(DevicePtr device) : device_(std::move(device)) {}

  /// `times` gets a time a step when the replay with that ticket is done. The newest ticket yet.
  /// `stamps`: one before the first dispatch and one after each; kept alive until they are read.
  void add(std::uint64_t ticket, std::shared_ptr<const Stamps> stamps, std::vector<DispatchRange> steps,
           std::vector<StepTime>* times);
  /// Reads the times of all replays up to the ticket, which has just been seen to be done. Costs nothing
  /// where nobody measures. Throws DeviceError.
  void collect(std::uint64_t ticket);
  /// Leaves out the replays up to `ticket`: nobody waits for their times any more, and the lists may go.
  void forget(std::uint64_t ticket);

 private:
  struct Pending {
    std::uint64_t ticket;
    std::shared_ptr<const Stamps> stamps;
    std::vector<DispatchRange> steps;
    std::vector<StepTime>* times;
  };

  DevicePtr device_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::deque<Pending> pending_;
};

}  // namespace caldera::vulkan
