// Subgroups that reconverge. A kernel's sums over a subgroup come behind loops that its invocations leave at
// different turns; that all of them meet again behind the loop is what drivers do, but only
// SPV_KHR_subgroup_uniform_control_flow promises it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/spirv/module.h"

namespace caldera::vulkan::spirv {

/// The module with SubgroupUniformControlFlowKHR on its entry points, where it works with subgroups; else as
/// it is. The device has the feature of VK_KHR_shader_subgroup_uniform_control_flow enabled. Throws
/// DeviceError naming the kernel where the words are no SPIR-V.
std::vector<std::uint32_t> reconverging(Words module, std::string_view kernel);

}  // namespace caldera::vulkan::spirv
