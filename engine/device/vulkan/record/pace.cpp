#include "engine/device/vulkan/record/pace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "engine/device/environment.h"
#include "engine/plan/cost.h"

namespace caldera::vulkan {
namespace {

constexpr double kStart = 5e-6;  // of a dispatch that does nothing

/// What is assumed of a device nothing has run on: what the slowest kernels make of the slowest devices of
/// its type. In bytes and flops a second.
struct Assumed {
  std::string_view type;
  double bandwidth, flops;
};
constexpr Assumed kAssumed[] = {
    {"discrete-gpu", 2e10, 1e12},
    {"integrated-gpu", 5e9, 1e11},
    {"software", 2e9, 1e10},
};
constexpr Assumed kUnknown{"", 5e9, 1e11};  // a GPU that is lent in part

/// Rates never rise above so many times what is assumed: no memory and no matrix unit is faster than that, so
/// a time that says so was not one of this work alone.
constexpr double kFastest = 1000;

/// One turn of a loop waits for memory about once; a processor has what it needs in its caches.
constexpr double kIteration = 5e-7, kSoftwareIteration = 2e-9;

/// A machine that slept in between has not become slower for good.
constexpr double kMostSlowing = 16;

/// What is shorter says more of the device's clock than of its rates.
constexpr double kShortest = 1e-3;

Assumed assumed_of(const PhysicalDevice& physical) {
  const auto* const found = std::ranges::find(kAssumed, physical.info.type, &Assumed::type);
  return found != std::end(kAssumed) ? *found : kUnknown;
}

}  // namespace

std::vector<Work> work_of(const Plan& plan, const Recording& recording) {
  std::vector<Work> work(recording.dispatches.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const DispatchRange& range = recording.steps[s];
    if (range.count == 0) continue;
    const StepCost cost = cost_of(plan, plan.steps[s]);
    for (std::uint32_t d = range.first; d < range.first + range.count; ++d) {
      work[d].bytes += cost.bytes() / range.count;
      work[d].flops += cost.flops / range.count;
    }
  }
  return work;
}

Pace::Pace(const PhysicalDevice& physical)
    : budget_(budget_from_environment()),
      per_iteration_(physical.capabilities.software ? kSoftwareIteration : kIteration),
      lowest_{1 / (assumed_of(physical).bandwidth * kFastest), 1 / (assumed_of(physical).flops * kFastest)},
      rates_{lowest_.per_byte * kFastest, lowest_.per_flop * kFastest} {}

double Pace::budget_from_environment() {
  return environment_number("CALDERA_VULKAN_SUBMIT_MS", 100, 0, 60000) * 1e-3;
}

Pace::Rates Pace::rates() const {
  const std::lock_guard lock(mutex_);
  return rates_;
}

double Pace::seconds(const Work& work, const Dispatch& dispatch) const {
  const Rates now = rates();
  return kStart + std::max({static_cast<double>(work.bytes) * now.per_byte,
                            static_cast<double>(work.flops) * now.per_flop,
                            static_cast<double>(dispatch.iterations) * per_iteration_});
}

bool Pace::waits(const Work& work, const Dispatch& dispatch) const {
  const Rates now = rates();
  return static_cast<double>(dispatch.iterations) * per_iteration_ >
         std::max(static_cast<double>(work.bytes) * now.per_byte,
                  static_cast<double>(work.flops) * now.per_flop);
}

void Pace::learn(const Work& work, double seconds) {
  if (seconds < kShortest) return;
  const auto towards = [](double& rate, double measured, double lowest) {
    const double slower = std::min(measured, kMostSlowing * rate);
    rate = std::max(measured > rate ? slower : 0.75 * rate + 0.25 * measured, lowest);
  };
  const std::lock_guard lock(mutex_);
  const double of_bytes = static_cast<double>(work.bytes) * rates_.per_byte;
  const double of_flops = static_cast<double>(work.flops) * rates_.per_flop;
  if (of_flops > of_bytes)
    towards(rates_.per_flop, seconds / static_cast<double>(work.flops), lowest_.per_flop);
  else if (work.bytes > 0)
    towards(rates_.per_byte, seconds / static_cast<double>(work.bytes), lowest_.per_byte);
}

}  // namespace caldera::vulkan
