// Grouping: which roots are computed by one kernel.
//
// A group is a set of roots over one iteration space. Its members are element-wise operations and reductions
// over the innermost dimensions, the row; each has one value a point, or one a row. It may follow a
// contraction, as its epilogue. Groups grow in three rounds:
//   1. what only one group reads joins that group;
//   2. in order of the program, each group joins those that it reads from;
//   3. groups over one space that read the same memory join side by side.
// Two groups join only if every value that passes between them is read where it is computed, at the same
// point or row, and if no third group depends on one and feeds the other.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/fuse/regions.h"

namespace caldera {

/// Most instructions that a group may have, most distinct operands (numbers are free) and most results:
/// bounds the time a device's compiler takes on one kernel.
inline constexpr std::size_t kMaxGroupNodes = 64;
inline constexpr std::size_t kMaxGroupInputs = 16;
inline constexpr std::size_t kMaxGroupOutputs = 8;

struct Group {
  std::vector<std::uint32_t> members;  // expression roots, ascending
  std::uint32_t other = kNoRoot;       // the contraction that the members follow, or any other single root
  Shape space;                         // extents over which the kernel runs
  std::int64_t reduced = 0;  // bit mask of the dimensions of space that are the row; 0: no reductions
  std::int64_t rows = 0, columns = 0;  // extents of the space outside and inside of the row, if reduced != 0
  std::vector<std::uint32_t> outputs;  // roots that need memory, ascending

  /// A reduction that nothing follows in its kernel: it may be run in any way and in stages.
  bool is_plain_reduction(const Regions& regions) const;
};

/// Whether a member has one value a row, given its extents.
bool is_per_row(const Group& group, const Shape& extents);

/// A member's operand, brought to the space of its group: `view` is over group.space.
/// Nothing when no strides do that.
std::optional<View> view_in_group(const Group& group, const Shape& member_extents, const View& view,
                                  const Shape& operand_extents);

/// All groups in an order in which they can run.
std::vector<Group> group(const Regions& regions, bool fusion);

}  // namespace caldera
