// The iteration spaces of region steps, brought to as few dimensions as they need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/vulkan/glsl/variant.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// The iteration space of a step with its strides, after dimensions that every operand walks in one stride
/// were merged. What is reduced, or is the row, stays apart from the kept dimensions.
struct RegionSpace {
  Dims kept, reduced;
  std::vector<Dims> strides;  // of each operand, over kept then reduced
  std::int64_t kept_points = 1, reduced_points = 1;

  int rank() const { return kept.rank() + reduced.rank(); }
  std::int64_t extent(int d) const { return d < kept.rank() ? kept[d] : reduced[d - kept.rank()]; }
  Dims extents() const;
};

/// Rows up to this length are the work of one invocation, longer ones of a workgroup.
inline constexpr std::int64_t kShortRow = 16;

RegionSpace make_space(const Step& step);  // of a region

/// The spaces of steps of one kernel given the same ranks, by extents of 1. False, with the spaces as they
/// were, if that takes more than kMaxRank dimensions.
bool make_alike(std::span<RegionSpace> spaces);

/// Says how many neighbouring points along the innermost dimension a lane of one shader can take together in
/// all of the spaces (which are alike), at most `most`, and what those are of each operand: of an
/// element-wise kernel what it writes has to be together. Without a second point: no list.
struct Together {
  int width = 1;
  std::vector<Neighbours> neighbours;
};
Together common_neighbours(const Kernel& kernel, std::span<const RegionSpace> spaces,
                           std::span<const Access> access, std::int64_t most = 16);

/// Says how one shader addresses each operand in all of the spaces (which are alike).
std::vector<Access> common_access(const Kernel& kernel, std::span<const RegionSpace> spaces);

}  // namespace caldera::vulkan
