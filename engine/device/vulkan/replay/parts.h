// Where the first run of a plan is cut into submits, so that the device starts while the rest is recorded.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/device/vulkan/record/recording.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// The end of each part, in dispatches; the last is all of them. The first part is small; each further one
/// may have twice as much, in dispatches, in bytes touched and in flops, whichever is reached first: a device
/// that is slow for what one part holds is not kept waiting, and one that is fast is not fed in crumbs.
std::vector<std::size_t> first_run_parts(const Plan& plan, const Recording& recording);

}  // namespace caldera::vulkan
