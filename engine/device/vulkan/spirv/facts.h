// Reads what a module says of its kernel, so that no driver is asked for it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/device/vulkan/spirv/module.h"

namespace caldera::vulkan::spirv {

struct ModuleFacts {
  bool uses_matrices = false;       // cooperative matrices
  std::int64_t workgroup_size = 0;  // invocations; 0: by a computation that is not followed
  std::int64_t shared_bytes = 0;    // of a workgroup, without what alignment adds
};

/// Reads the facts of a module whose specialisation constants 0, 1, … get `constants`. Throws DeviceError
/// naming the kernel where the words are no SPIR-V.
ModuleFacts facts_of(Words module, std::span<const std::int32_t> constants, std::string_view kernel);

}  // namespace caldera::vulkan::spirv
