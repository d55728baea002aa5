// Checks what a module declares that it needs, against what a device has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/spirv/module.h"

namespace caldera::vulkan::spirv {

/// The features that the module's OpCapability instructions ask for and that are not enabled where the device
/// can do `can`: names as in `caldera devices`, or "SPIR-V capability N" for one that Caldera never enables.
/// Throws DeviceError naming the kernel where the words are no SPIR-V.
std::vector<std::string> missing_features(Words module, const Capabilities& can, std::string_view kernel);

}  // namespace caldera::vulkan::spirv
