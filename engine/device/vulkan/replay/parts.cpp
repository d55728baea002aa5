#include "engine/device/vulkan/replay/parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace caldera::vulkan {
namespace {

/// What the first part of a first run may hold. Recording takes about a microsecond a dispatch and a submit
/// some ten, so by the time that such a part is done the next is there.
constexpr std::size_t kFirstDispatches = 16;
constexpr std::int64_t kFirstBytes = std::int64_t{16} << 20;
constexpr std::int64_t kFirstFlops = std::int64_t{1} << 30;
/// Parts stop growing at the first times this.
constexpr std::int64_t kMostGrowth = 64;

/// More would cost more than they save: half a minute in slices of 100 ms.
constexpr std::uint32_t kMostSlices = 256;

std::uint32_t most_slices(const Dispatch& dispatch) {
  return std::min(std::max(dispatch.groups, dispatch.instances), kMostSlices);
}

std::uint32_t slices_of(const Dispatch& dispatch, double seconds, double budget) {
  if (seconds <= 2 * budget) return 1;
  const auto most = static_cast<double>(most_slices(dispatch));
  return static_cast<std::uint32_t>(budget > 0 ? std::clamp(std::ceil(seconds / budget), 1.0, most) : most);
}

}  // namespace

GroupRange groups_of(const Dispatch& dispatch, std::uint32_t slice, std::uint32_t slices) {
  const auto at = [&](std::uint32_t all, std::uint32_t s) {
    return static_cast<std::uint32_t>(std::uint64_t{all} * s / slices);
  };
  const auto range = [&](std::uint32_t all, std::uint32_t& first, std::uint32_t& count) {
    first = at(all, slice);
    count = at(all, slice + 1) - first;
  };
  GroupRange groups{0, dispatch.groups, 0, dispatch.instances};
  if (dispatch.groups >= dispatch.instances)
    range(dispatch.groups, groups.first_x, groups.x);
  else
    range(dispatch.instances, groups.first_y, groups.y);
  return groups;
}

std::vector<std::size_t> first_run_parts(std::span<const Work> work) {
  const std::size_t count = work.size();
  if (count <= kFirstDispatches) return {count};
  std::vector<std::size_t> ends;
  std::size_t held = 0;
  Work sum;
  std::int64_t growth = 1;
  for (std::size_t i = 0; i < count; ++i) {
    ++held;
    sum.bytes += work[i].bytes;
    sum.flops += work[i].flops;
    const bool is_full = held >= kFirstDispatches * static_cast<std::size_t>(growth) ||
                         sum.bytes >= kFirstBytes * growth || sum.flops >= kFirstFlops * growth;
    if (!is_full && i + 1 < count) continue;
    ends.push_back(i + 1);
    held = 0;
    sum = {};
    if (growth < kMostGrowth) growth *= 2;
  }
  return ends;
}

std::vector<Part> cut(std::span<const Dispatch> dispatches, std::span<const double> seconds, double budget,
                      std::span<const std::size_t> ends) {
  std::vector<Part> parts;
  const double most = std::reduce(seconds.begin(), seconds.end()) <= budget ? budget : budget / 4;
  std::size_t first = 0;
  double sum = 0;
  const auto close = [&](std::size_t last) {
    if (last > first) parts.push_back({first, last});
    first = last;
    sum = 0;
  };
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    if (!ends.empty() && ends.front() == i) {
      close(i);
      ends = ends.subspan(1);
    }
    const std::uint32_t slices = slices_of(dispatches[i], seconds[i], budget);
    if (slices > 1 || sum + seconds[i] > most) close(i);
    sum += seconds[i];
    if (slices == 1) continue;
    for (std::uint32_t s = 0; s < slices; ++s) parts.push_back({i, i + 1, s, slices});
    first = i + 1;
    sum = 0;
  }
  close(dispatches.size());
  return parts;
}

double seconds_of(const Part& part, std::span<const double> seconds) {
  double sum = 0;
  for (std::size_t i = part.first; i < part.last; ++i) sum += seconds[i];
  return sum / part.slices;
}

bool is_stale(std::span<const Part> parts, std::span<const Dispatch> dispatches,
              std::span<const double> seconds, double budget) {
  return std::ranges::any_of(parts, [&](const Part& part) {
    const double time = seconds_of(part, seconds);
    if (part.last - part.first > 1) return time > 2 * budget;
    const std::uint32_t wanted = slices_of(dispatches[part.first], seconds[part.first], budget);
    return wanted > part.slices ? time > 2 * budget : part.slices > 1 && time * part.slices <= budget;
  });
}

std::vector<std::size_t> pack(std::span<const Part> parts, std::span<const double> seconds, double budget) {
  std::vector<std::size_t> counts;
  double sum = 0;
  for (const Part& part : parts) {
    const double time = seconds_of(part, seconds);
    if (counts.empty() || sum + time > budget) {
      counts.push_back(0);
      sum = 0;
    }
    ++counts.back();
    sum += time;
  }
  return counts;
}

}  // namespace caldera::vulkan
