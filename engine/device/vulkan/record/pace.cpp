#include "engine/device/vulkan/record/pace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/device/environment.h"
#include "engine/plan/cost.h"

namespace caldera::vulkan {
namespace {

constexpr double kStart = 5e-6;  // of a dispatch that does nothing

/// Rates never rise above so many times what is assumed: no memory and no matrix unit is faster than that, so
/// a time that says so was not one of this work alone.
constexpr double kFastest = 1000;

/// A machine that slept in between has not become slower for good.
constexpr double kMostSlowing = 16;

/// What is shorter says more of the device's clock than of its rates.
constexpr double kShortest = 1e-3;

}  // namespace

std::vector<Work> work_of(const Plan& plan, const Recording& recording) {
  std::vector<Work> work(recording.dispatches.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const DispatchRange& range = recording.steps[s];
    if (range.count == 0) continue;
    const StepCost cost = cost_of(plan, plan.steps[s]);
    Work& own = work[range.own_dispatch()];
    own.bytes += cost.bytes();
    own.flops += cost.flops;
  }
  return work;
}

Pace::Pace(const DeviceProfile& profile)
    : budget_(environment_number("CALDERA_VULKAN_SUBMIT_MS",
                                 static_cast<int>(std::lround(profile.submit * 1e3)), 0, 60000) *
              1e-3),
      per_iteration_(profile.turn),
      lowest_{1 / (profile.bandwidth * kFastest), 1 / (profile.flops * kFastest)},
      rates_{lowest_.per_byte * kFastest, lowest_.per_flop * kFastest} {}

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
