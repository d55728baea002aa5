// Checks kernels for the plan verifier, from the contract in kernel.h alone.
#pragma once

#include <vector>

#include "engine/plan/kernel/fault.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::verify {

/// Checks a kernel by itself. Only regions may have reductions of either kind. Throws Fault.
void check_kernel(const Kernel& kernel, bool of_region);

/// Says for each value of a kernel of the row form whether it is one for the whole row.
std::vector<bool> row_values(const Kernel& kernel);

}  // namespace caldera::verify
