// Says what each walk along a row of a row kernel computes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/kernel/kernel.h"

namespace caldera {

struct RowWalk {
  std::vector<std::uint16_t> reductions;  // values that are finished when it ends
  std::vector<int> outputs;               // that it stores; all in the last one
  std::vector<bool> computed;             // values of a point
  std::vector<bool> recalled;             // values of a point that an earlier walk computed and kept
};

struct RowWalks {
  std::vector<RowWalk> walks;
  std::vector<bool> kept;  // values that some walk recalls
  int kept_count() const;
};

/// The walks of a row kernel; row_phases(kernel).passes of them, though one may have nothing to do. With
/// `remember`, what a walk computed is recalled in later ones; without it is computed again. Values that
/// nothing needs are in none.
RowWalks row_walks(const Kernel& kernel, bool remember);

/// The values that outputs need.
std::vector<bool> live_values(const Kernel& kernel);

}  // namespace caldera
