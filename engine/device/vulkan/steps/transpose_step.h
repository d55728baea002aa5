// Copies that swap which dimension is contiguous, through shared memory.
#pragma once

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/device/vulkan/steps/region_space.h"

namespace caldera::vulkan {

/// Encodes a region whose kernel only copies, whose input is contiguous along one dimension and whose output
/// along another one, both of some length, where the device gains by it. Otherwise does nothing and returns
/// false.
bool encode_transpose(Encoder& encoder, const Kernel& kernel, const Step& step, const RegionSpace& space);

}  // namespace caldera::vulkan
