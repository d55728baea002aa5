#include "engine/runtime/inspect/memory_forecast.h"

#include <set>

#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"

namespace caldera {

MemoryForecast forecast_memory(std::span<const LazyTensor> outputs) {
  MemoryForecast forecast;
  if (outputs.empty()) return forecast;
  forecast.held_bytes = device_counters(outputs.front().device()).live_bytes;
  const auto plan = plan_for(outputs);
  if (plan == nullptr) return forecast;
  forecast.arena_bytes = static_cast<std::uint64_t>(plan->arena_bytes);
  forecast.output_bytes = static_cast<std::uint64_t>(plan->peak_bytes - plan->arena_bytes);
  std::set<std::int32_t> taking, given;
  for (const Donation& donation : plan->donations) {
    if (taking.contains(donation.output) || given.contains(donation.input)) continue;
    taking.insert(donation.output);
    given.insert(donation.input);
    forecast.donated_bytes +=
        static_cast<std::uint64_t>(plan->buffers[static_cast<std::size_t>(donation.output)].bytes);
  }
  return forecast;
}

}  // namespace caldera
