// The hand-written shaders of shaders/, compiled and optimised when Caldera was built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace caldera::vulkan {

/// SPIR-V of shaders/<name>.comp; empty where there is no such shader. The words live as long as the program.
std::span<const std::uint32_t> embedded_shader(std::string_view name);

}  // namespace caldera::vulkan
