// The hand-written shaders of shaders/: compiled and optimised when Caldera was built, and the text that
// shaders are put together from at run time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace caldera::vulkan {

/// SPIR-V of shaders/*/<name>.comp; empty where there is no such shader. The words live as long as the
/// program.
std::span<const std::uint32_t> embedded_shader(std::string_view name);

/// Text of shaders/*/<name>.glsl; empty where there is no such file. It lives as long as the program.
std::string_view shader_text(std::string_view name);

/// Lets the text of a shader stand where another name is included.
struct ShaderStandIn {
  std::string_view name;
  std::string_view text;  // the name of the shader whose text it is
};

/// Returns shader_text with the files that it includes in their places. Throws DeviceError where one is
/// missing.
std::string whole_shader_text(std::string_view name, const ShaderStandIn& stand_in = {});

}  // namespace caldera::vulkan
