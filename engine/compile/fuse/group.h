// Group: roots that are computed by one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compile/fuse/placement.h"

namespace caldera {

struct Group {
  std::vector<std::uint32_t> members;  // expression roots, ascending
  std::uint32_t other = kNoRoot;       // the contraction that the members follow, or any other single root
  Shape space;                         // extents over which the kernel runs
  std::int64_t reduced = 0;  // bit mask of the dimensions of space that are the row; 0: no reductions
  std::int64_t rows = 0, columns = 0;  // extents of the space outside and inside of the row, if reduced != 0
  std::vector<std::uint32_t> outputs;  // roots that need memory, ascending

  /// A reduction that nothing follows in its kernel: it may be run in any order and in stages.
  bool is_plain_reduction(const Placement& placement) const;
};

/// Whether a member has one value a row, given its extents.
bool is_per_row(const Group& group, const Shape& extents);

/// A member's operand, brought to the space of its group: `view` is over group.space.
/// Nothing when no strides do that.
std::optional<View> view_in_group(const Group& group, const Shape& member_extents, const View& view,
                                  const Shape& operand_extents);

}  // namespace caldera
