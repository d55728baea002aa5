#include "engine/device/vulkan/spirv/module.h"

#include <fmt/core.h>

#include "engine/base/error.h"

namespace caldera::vulkan::spirv {

void refuse_module(std::string_view kernel, std::size_t word) {
  throw DeviceError(fmt::format("kernel {}: its SPIR-V is damaged at word {}", kernel, word));
}

void append(std::vector<std::uint32_t>& out, Op op, std::initializer_list<std::uint32_t> operands) {
  out.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
  out.insert(out.end(), operands.begin(), operands.end());
}

}  // namespace caldera::vulkan::spirv
