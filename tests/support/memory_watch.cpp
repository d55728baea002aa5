#include "tests/support/memory_watch.h"

#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"

namespace caldera::testing {
namespace {

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  if (!(file >> total >> resident)) throw std::runtime_error("/proc/self/statm cannot be read");
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

struct Quantity {
  const char* name;
  std::uint64_t MemorySample::*member;
};
constexpr Quantity kQuantities[] = {
    {"rss", &MemorySample::rss},
    {"heap", &MemorySample::heap},
    {"device_live", &MemorySample::device_live},
    {"device_held", &MemorySample::device_held},
};

}  // namespace

std::string MemorySample::to_json() const {
  return fmt::format(
      R"({{"seconds": {:.1f}, "steps": {}, "rss": {}, "heap": {}, "device_live": {}, "device_held": {}, )"
      R"("plans": {}, "plan_bytes": {}, "evictions": {}, "kernels": {}}})",
      seconds, steps, rss, heap, device_live, device_held, plans, plan_bytes, evictions, kernels);
}

MemorySample take_sample(Device device, double seconds, std::uint64_t steps) {
  const struct mallinfo2 heap = ::mallinfo2();
  const DeviceCounters counters = backend(device).counters();
  const PlanCacheStats plans = plan_cache_stats();
  return {.seconds = seconds,
          .steps = steps,
          .rss = resident_bytes(),
          .heap = heap.uordblks + heap.hblkhd,
          .device_live = counters.live_bytes,
          .device_held = counters.reserved_bytes,
          .plans = plans.entries,
          .plan_bytes = plans.bytes,
          .evictions = plans.evictions,
          .kernels = counters.kernels_compiled};
}

double Growth::percent() const {
  if (most <= settled) return 0;
  return 100 * (static_cast<double>(most) / static_cast<double>(std::max<std::uint64_t>(settled, 1)) - 1);
}

std::vector<Growth> growth_after(const std::vector<MemorySample>& samples, double settle, double window) {
  std::vector<Growth> found;
  for (const Quantity& quantity : kQuantities) {
    Growth growth{.name = quantity.name};
    std::size_t before = 0, after = 0;
    for (const MemorySample& sample : samples) {
      const std::uint64_t bytes = sample.*quantity.member;
      if (sample.seconds > settle) {
        ++after;
        growth.most = std::max(growth.most, bytes);
      } else if (sample.seconds >= settle - window) {
        ++before;
        growth.settled = std::max(growth.settled, bytes);
      }
      growth.last = bytes;
    }
    if (before == 0 || after == 0)
      throw std::invalid_argument(
          fmt::format("memory watch: {} samples in the {} s before {} s and {} after it: run longer", before,
                      window, settle, after));
    found.push_back(growth);
  }
  return found;
}

}  // namespace caldera::testing
