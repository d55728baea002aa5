// Grouping: which roots are computed by one kernel.
//
// A group is a set of roots over one iteration space. Its members are element-wise operations and reductions
// over the innermost dimensions, the row; each has one value a point, or one a row. It may follow a
// contraction, as its epilogue. Groups grow in four rounds:
//   1. what only one group reads joins that group;
//   2. in order of the program, each group joins those that it reads from;
//   3. groups over one space that read the same memory join side by side;
//   4. rows join those that they read far ahead of them in the program.
// Two groups join only if every value that passes between them is read where it is computed, at the same
// point or row, and if no third group depends on one and feeds the other.
#pragma once

#include <vector>

#include "engine/compile/fuse/group.h"
#include "engine/compile/fuse/placement.h"

namespace caldera {

/// All groups in an order in which they can run.
std::vector<Group> group(const Placement& placement, bool fusion);

}  // namespace caldera
