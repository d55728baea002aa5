// Steps of a plan to dispatches: chooses the shader and its variant, writes the argument block.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/base/error.h"
#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// Told of a step that cannot be encoded: its number in the plan, and why.
using FailedStep = std::function<void(std::size_t step, const Error& error)>;

/// The dispatches of a plan, whose pipelines are yet to be made. A step that cannot be encoded has none, if
/// `failed` is given; otherwise throws Error naming the step.
Recording encode_steps(const Plan& plan, Context& context, const FailedStep& failed = {});

/// The dispatches of a plan. Makes the pipelines that are missing. Throws Error naming the step.
Recording encode(const Plan& plan, Context& context);

}  // namespace caldera::vulkan
