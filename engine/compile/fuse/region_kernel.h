// From a group of roots to its kernel: the code, and the operands that it reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/compile/fuse/grouping.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera {

struct RegionKernel {
  struct Input {
    std::uint32_t root;
    View view;  // over the iteration space
  };
  Kernel kernel;                      // finished
  std::vector<Input> inputs;          // one for each load from memory; not the product of an epilogue
  std::vector<View> indices;          // one for each index operand
  std::vector<std::int32_t> scalars;  // plan scalars, one for each scalar argument
};

/// The kernel of a group with members. With `other` (a contraction), input 0 is its product.
RegionKernel build_group_kernel(const Placement& placement, const Group& group);

/// The kernel that copies one operand over its own extents: load -> store, or a constant or coordinates ->
/// store. `type`: of what is stored, that of the source or of the same compute_type().
RegionKernel build_copy_kernel(const Placement& placement, const Source& source, DType type);

/// The kernel that stores its input 0, in memory a `from`, as a `to` of the same compute_type().
Kernel build_store_kernel(DType from, DType to);

/// The element-wise kernel that computes root `result` from roots `given` (its first inputs, in this order,
/// which are no operands) and whatever else the operations between them read. All of one shape. `between`
/// are those operations, ascending, ending with `result`; empty if `result` is one of `given`. What is given
/// and what is stored are of their compute_type().
RegionKernel build_expression_kernel(const Placement& placement, const std::vector<std::uint32_t>& given,
                                     const std::vector<std::uint32_t>& between, std::uint32_t result);

}  // namespace caldera
