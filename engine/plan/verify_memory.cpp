#include "engine/plan/verify_memory.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

namespace caldera::verify {
namespace {

struct Axis {
  std::int64_t stride = 0;  // positive
  std::int64_t extent = 0;  // above 1
};

/// Whether any run has elements of the one before it too. Ascending.
bool overlap(const std::vector<Run>& runs) {
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].begin < runs[i - 1].end) return true;
  }
  return false;
}

std::vector<Run> united(const std::vector<Run>& runs) {
  std::vector<Run> result;
  for (const Run& run : runs) {
    if (!result.empty() && run.begin <= result.back().end)
      result.back().end = std::max(result.back().end, run.end);
    else
      result.push_back(run);
  }
  return result;
}

}  // namespace

Memory::Memory(std::int64_t size) : size_(size) {
  if (size > 0) runs_.emplace(0, Bytes{.end = size});
}

void Memory::assign(Run range, Bytes state) {
  split(range.begin);
  split(range.end);
  runs_.erase(runs_.lower_bound(range.begin), runs_.lower_bound(range.end));
  state.end = range.end;
  runs_.emplace(range.begin, state);
  join(range);
}

void Memory::split(std::int64_t at) {
  auto run = runs_.upper_bound(at);
  if (run == runs_.begin()) return;
  --run;
  if (run->first == at || run->second.end <= at) return;
  Bytes right = run->second;
  run->second.end = at;
  runs_.emplace(at, right);
}

void Memory::join(Run range) {
  auto run = runs_.upper_bound(range.begin);
  if (run != runs_.begin()) --run;
  if (run != runs_.begin()) --run;
  while (run != runs_.end() && run->first < range.end) {
    const auto next = std::next(run);
    if (next == runs_.end()) return;
    if (next->first == run->second.end && next->second.same_state(run->second)) {
      run->second.end = next->second.end;
      runs_.erase(next);
    } else {
      run = next;
    }
  }
}

std::optional<Walk> walk_of(std::int64_t offset, const std::vector<std::int64_t>& extents,
                            const std::vector<std::int64_t>& strides) {
  Walk walk;
  std::vector<Axis> axes;
  std::int64_t low = offset;
  std::int64_t high = offset;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    std::int64_t far = 0;
    if (extents[d] == 1) continue;
    if (strides[d] == std::numeric_limits<std::int64_t>::min() ||
        __builtin_mul_overflow(strides[d], extents[d] - 1, &far)) {
      return std::nullopt;
    }
    std::int64_t& side = far < 0 ? low : high;
    if (__builtin_add_overflow(side, far, &side)) return std::nullopt;
    if (strides[d] == 0) walk.once = false;
    if (strides[d] != 0) axes.push_back({std::abs(strides[d]), extents[d]});
  }
  std::int64_t extent = 0;
  if (__builtin_sub_overflow(high, low, &extent) || __builtin_add_overflow(high, 1, &high))
    return std::nullopt;
  walk.hull = {low, high};

  // Axes by stride: the smallest ones make one run, as long as none leaves a gap.
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t length = 1;
  std::size_t first = 0;
  for (; first < axes.size() && axes[first].stride <= length; ++first) {
    if (axes[first].stride < length) walk.once = false;  // two steps along it share elements
    length += axes[first].stride * (axes[first].extent - 1);
  }
  std::int64_t count = 1;
  for (std::size_t i = first; i < axes.size(); ++i) {
    if (count > kMostRuns / axes[i].extent) {
      walk.exact = false;
      walk.runs = {walk.hull};
      return walk;
    }
    count *= axes[i].extent;
  }
  walk.runs = {{low, low + length}};
  for (std::size_t i = first; i < axes.size(); ++i) {
    const std::size_t before = walk.runs.size();
    for (std::int64_t step = 1; step < axes[i].extent; ++step) {
      for (std::size_t r = 0; r < before; ++r) {
        const Run run = walk.runs[r];
        walk.runs.push_back({run.begin + step * axes[i].stride, run.end + step * axes[i].stride});
      }
    }
  }
  const auto lower = [](const Run& a, const Run& b) { return a.begin < b.begin; };
  if (!std::is_sorted(walk.runs.begin(), walk.runs.end(), lower))
    std::sort(walk.runs.begin(), walk.runs.end(), lower);
  if (overlap(walk.runs)) walk.once = false;
  walk.runs = united(walk.runs);
  return walk;
}

bool meet(const std::vector<Run>& a, const std::vector<Run>& b) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() && right != b.end()) {
    if (left->begin < right->end && right->begin < left->end) return true;
    if (left->end <= right->end)
      ++left;
    else
      ++right;
  }
  return false;
}

}  // namespace caldera::verify
