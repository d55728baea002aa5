// Tells what a device is, and what it has done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensor/device.h"

namespace caldera {

/// Holds what `caldera devices` prints of a device.
struct DeviceInfo {
  Device device;
  std::string name;
  std::string type;  // "cpu", "discrete-gpu", "integrated-gpu", "virtual-gpu", "software"
  std::string driver;
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> features;
  std::vector<std::string> missing;  // optional features that it lacks
  std::string profile;               // maker, generation, width, in words; empty: nothing to say
};

/// Counts what a device has done since it was opened. Monotonic, but for what says "now" or "since".
struct DeviceCounters {
  std::uint64_t dispatches = 0;  // steps executed
  std::uint64_t barriers = 0;
  std::uint64_t submits = 0;        // plans executed
  std::uint64_t queue_submits = 0;  // hand-overs of commands to a queue, also for copies; 0: it has no queue
  std::uint64_t allocations = 0;    // blocks taken from the system or driver (not served from a cache)
  std::uint64_t downloads = 0;
  std::uint64_t kernels_compiled = 0;
  std::uint64_t live_bytes = 0;  // in use now
  std::uint64_t peak_bytes = 0;
  std::uint64_t reserved_bytes = 0;       // taken from the system or driver now: what a limit counts
  std::uint64_t reserved_peak_bytes = 0;  // the most since the limit was set, or since the start
  std::uint64_t limit_bytes = 0;          // 0: none
  std::uint64_t trims = 0;                // times that unused memory was given back to make room
};

}  // namespace caldera
