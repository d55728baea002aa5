#include "engine/device/vulkan/replay/schedule.h"

#include <algorithm>
#include <numeric>

namespace caldera::vulkan {
namespace {

/// Plans that are this much shorter than a submit may be are not timed.
constexpr double kFarShorter = 16;

/// A part that took less than before counts by so much.
constexpr double kFaster = 0.5;

}  // namespace

Schedule::Schedule(const Plan& plan, const Recording& recording, Pace& pace)
    : recording_(recording), pace_(pace), work_(work_of(plan, recording)) {
  seconds_.reserve(work_.size());
  for (std::size_t i = 0; i < work_.size(); ++i)
    seconds_.push_back(pace.seconds(work_[i], recording.dispatches[i]));
  total_ = std::reduce(seconds_.begin(), seconds_.end());
}

std::vector<Part> Schedule::parts(bool first_run) const {
  const std::vector<std::size_t> ends = first_run ? first_run_parts(work_) : std::vector<std::size_t>();
  return cut(recording_.dispatches, seconds_, pace_.budget(), ends);
}

std::vector<std::size_t> Schedule::submits(std::span<const Part> parts) const {
  if (total_ <= pace_.budget()) return {parts.size()};
  return pack(parts, seconds_, pace_.budget());
}

bool Schedule::is_stale(std::span<const Part> parts) const {
  if (total_ <= pace_.budget())
    return std::ranges::any_of(parts, [](const Part& part) { return part.slices > 1; });
  return vulkan::is_stale(parts, recording_.dispatches, seconds_, pace_.budget());
}

bool Schedule::is_timed() const { return total_ * kFarShorter > pace_.budget(); }

void Schedule::learn(std::span<const Part> parts, std::span<const double> took,
                     const std::vector<bool>& spared) {
  double measured = 0;  // of a dispatch in slices, the slices together
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    measured += took[p];
    if (!part.ends_dispatch()) continue;
    Work work;
    double estimated = 0;
    bool waits = false;
    const auto has_run = [&](std::size_t i) { return i >= spared.size() || !spared[i]; };
    for (std::size_t i = part.first; i < part.last; ++i) {
      if (!has_run(i)) continue;
      work.bytes += work_[i].bytes;
      work.flops += work_[i].flops;
      estimated += seconds_[i];
      waits = waits || pace_.waits(work_[i], recording_.dispatches[i]);
    }
    if (estimated > 0) {
      if (!waits) pace_.learn(work, measured);
      double factor = measured / estimated;
      if (is_measured_ && factor < 1) factor = kFaster * factor + (1 - kFaster);
      for (std::size_t i = part.first; i < part.last; ++i) {
        if (has_run(i)) seconds_[i] *= factor;
      }
    }
    measured = 0;
  }
  total_ = std::reduce(seconds_.begin(), seconds_.end());
  is_measured_ = true;
}

}  // namespace caldera::vulkan
