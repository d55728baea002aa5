// Steps of a plan to dispatches: chooses the shader and its variant, writes the argument block.
#pragma once

#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// The dispatches of a plan. Makes the pipelines that are missing. Throws Error naming the step.
Recording encode(const Plan& plan, Context& context);

}  // namespace caldera::vulkan
