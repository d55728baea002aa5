// What a process and a device hold while a program runs for long, and whether it grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensor/device.h"

namespace caldera::testing {

/// One look at the memory of the process. Bytes.
struct MemorySample {
  double seconds = 0;             // since the start
  std::uint64_t steps = 0;        // training steps done
  std::uint64_t rss = 0;          // resident set: /proc/self/statm
  std::uint64_t heap = 0;         // handed out by malloc, its own mappings included
  std::uint64_t device_live = 0;  // in use by tensors and arenas
  std::uint64_t device_held = 0;  // taken from the driver
  std::uint64_t plans = 0;        // plan cache: entries
  std::uint64_t plan_bytes = 0;   // and their bytes
  std::uint64_t evictions = 0;    // plans dropped so far
  std::uint64_t kernels = 0;      // compiled so far

  /// One JSON object.
  std::string to_json() const;
};

MemorySample take_sample(Device device, double seconds, std::uint64_t steps);

/// How one quantity went after things had settled.
struct Growth {
  const char* name;
  std::uint64_t settled = 0;  // the most within the window that ends when things count as settled
  std::uint64_t most = 0;     // the most after that
  std::uint64_t last = 0;

  /// In per cent of `settled`, of the most; not below 0.
  double percent() const;
};

/// The quantities that must not grow: rss, heap, device_live, device_held. Samples are in order of time; work
/// goes in rounds of changing size, so what counts as settled is the most of the window [settle - window,
/// settle], and it is compared with the most after it. Throws std::invalid_argument when no sample is in
/// the window or none after it.
std::vector<Growth> growth_after(const std::vector<MemorySample>& samples, double settle, double window);

}  // namespace caldera::testing
