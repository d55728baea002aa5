// Regions to dispatches.
#pragma once

#include <span>

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// A region with the steps that are joined to it: all run `kernel`.
void encode_region(Encoder& encoder, const Kernel& kernel, std::span<const Step> joined);

}  // namespace caldera::vulkan
