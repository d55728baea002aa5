#include "engine/runtime/inspect/memory_forecast.h"

#include <memory>
#include <set>

#include "engine/graph/data_leaf.h"
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

LazyTensor stand_in_for(const LazyTensor& x) {
  const std::size_t bytes = static_cast<std::size_t>(x.numel()) * size_of(x.dtype());
  return data_leaf(x.shape(), x.dtype(), x.device(),
                   {std::make_shared<Storage>(x.device(), bytes), 0, nullptr}, kComputedOp);
}

}  // namespace caldera
