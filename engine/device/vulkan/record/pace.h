// Estimates how long a device needs for work of a given size: from bytes and flops at rates that are learned
// from what it has done.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/device/vulkan/open/device_profile.h"
#include "engine/device/vulkan/record/recording.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Counts what a dispatch has to do.
struct Work {
  std::int64_t bytes = 0;
  std::int64_t flops = 0;
};

/// A dispatch each: the cost of the steps that it computes, by engine/plan/cost.h.
std::vector<Work> work_of(const Plan& plan, const Recording& recording);

/// The rates of one device. Any thread.
///
/// Nothing being known yet, they are those of a slow device of its type: work is then taken for longer than
/// it is, and cut into more submits than it needs, which costs a few microseconds each. To take work for
/// shorter than it is may cost the device: a watchdog ends submits of seconds.
class Pace {
 public:
  /// Throws ValueError where CALDERA_VULKAN_SUBMIT_MS is no number from 0 to 60000.
  explicit Pace(const DeviceProfile& profile);

  /// Returns how long one submit may take, in seconds: the profile's, or what CALDERA_VULKAN_SUBMIT_MS says
  /// (0: nothing is short enough, so everything is cut as finely as it can be).
  double budget() const { return budget_; }

  /// Seconds that the dispatch may take.
  double seconds(const Work& work, const Dispatch& dispatch) const;

  /// That so much work took so long. A rate falls at once to what was measured and rises slowly: kernels
  /// differ in what they make of a device, and the next one may be of the slow ones.
  void learn(const Work& work, double seconds);
  /// Whether the dispatch takes what its longest loop takes: its time says nothing of rates.
  bool waits(const Work& work, const Dispatch& dispatch) const;

 private:
  struct Rates {
    double per_byte, per_flop;  // seconds
  };
  Rates rates() const;

  const double budget_;
  const double per_iteration_;
  const Rates lowest_;
  mutable std::mutex mutex_;
  Rates rates_;
};

}  // namespace caldera::vulkan
