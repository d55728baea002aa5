// Knows what the dispatches of one plan take, estimated at first, then measured; and how its commands are cut
// and packed into submits by that.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/device/vulkan/record/pace.h"
#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/replay/parts.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// One thread at a time. `recording` and `pace` outlive it.
class Schedule {
 public:
  Schedule(const Plan& plan, const Recording& recording, Pace& pace);

  /// Says how to cut commands that are recorded now; those of a first run are submitted one by one.
  std::vector<Part> parts(bool first_run) const;
  /// Says how many of the parts each submit gets.
  std::vector<std::size_t> submits(std::span<const Part> parts) const;
  /// Whether parts that were cut earlier ought to be cut again.
  bool is_stale(std::span<const Part> parts) const;
  /// Whether the plan may be so long that its replays are to be timed. Others stay one submit, whatever they
  /// turn out to take.
  bool is_timed() const;
  /// That the parts took so long in a replay; dispatches whose flag is set in `spared`, if it has one, were
  /// left out.
  void learn(std::span<const Part> parts, std::span<const double> took, const std::vector<bool>& spared);
  std::size_t bytes() const { return work_.size() * sizeof(Work) + seconds_.size() * sizeof(double); }

 private:
  const Recording& recording_;
  Pace& pace_;
  std::vector<Work> work_;       // a dispatch each
  std::vector<double> seconds_;  // a dispatch each
  double total_ = 0;
  bool is_measured_ = false;
};

}  // namespace caldera::vulkan
