// The kernels of plans, compiled and looked at, never run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/device/vulkan/steps/context.h"
#include "engine/survey/kernel_report.h"

namespace caldera::vulkan {

/// Makes all pipelines of the plans, side by side, and reports a kernel a pipeline, in the order of their
/// first use. What cannot be made is a report with an error; the others go on. Throws DeviceError only where
/// the device is lost.
std::vector<KernelReport> survey(std::span<const std::shared_ptr<const Plan>> plans, Context& context);

}  // namespace caldera::vulkan
