// From a region to its kernel: the program, and the operands that it reads.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/regions.h"
#include "engine/kernel/kernel.h"

namespace caldera {

struct RegionKernel {
  struct Input {
    std::uint32_t root;
    View view;  // over the iteration space
  };
  Kernel kernel;                      // finished
  std::vector<Input> inputs;          // one for each load
  std::vector<View> indices;          // one for each index operand
  std::vector<std::int32_t> scalars;  // plan scalars, one for each scalar argument
};

/// The kernel of a region (one without memory operands other than its inputs).
RegionKernel build_region_kernel(const Regions& regions, std::uint32_t region);

/// The kernel that copies one operand: load -> store, or a constant or coordinates -> store.
RegionKernel build_copy_kernel(const Regions& regions, const Source& source);

}  // namespace caldera
