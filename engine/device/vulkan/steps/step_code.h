// The GLSL of a step, for people.
#pragma once

#include <vector>

#include "engine/device/backend.h"

namespace caldera::vulkan {

/// The whole shader of a region, the function that a contraction or attention calls; nothing for other steps.
/// It is the portable form: a device may get other workgroups and subgroup arithmetic. Throws DTypeError for
/// a type that GLSL lacks.
std::vector<GeneratedCode> code_of_step(const Step& step);

}  // namespace caldera::vulkan
