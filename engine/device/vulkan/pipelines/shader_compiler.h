// GLSL text to optimised SPIR-V, in the process and kept on disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caldera::vulkan {

/// Compiles a compute shader for Vulkan 1.2 and runs the optimiser's performance passes. Any
/// number of threads at once. Throws Error with `name` and the compiler's message.
std::vector<std::uint32_t> compile_glsl(const std::string& text, const std::string& name);

}  // namespace caldera::vulkan
