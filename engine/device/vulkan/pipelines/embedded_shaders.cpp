#include "engine/device/vulkan/pipelines/embedded_shaders.h"

#include <fmt/core.h>

#include "engine/base/error.h"

namespace caldera::vulkan {

std::string whole_shader_text(std::string_view name, const ShaderStandIn& stand_in) {
  if (!stand_in.name.empty() && name == stand_in.name) name = stand_in.text;
  constexpr std::string_view kInclude = "#include \"", kEnd = ".glsl\"\n";
  std::string_view rest = shader_text(name);
  if (rest.empty()) throw DeviceError(fmt::format("no text of shader {} was built into this program", name));
  std::string whole;
  for (std::size_t at = rest.find(kInclude); at != std::string_view::npos; at = rest.find(kInclude)) {
    whole += rest.substr(0, at);
    rest.remove_prefix(at + kInclude.size());
    const std::size_t end = rest.find(kEnd);
    const std::string_view path = rest.substr(0, end);
    whole +=
        whole_shader_text(path.substr(path.rfind('/') + 1), stand_in);  // unique names: folders say nothing
    rest.remove_prefix(end + kEnd.size());
  }
  return whole.append(rest);
}

}  // namespace caldera::vulkan
