// Cooperative matrices of SPV_KHR_cooperative_matrix out of those of SPV_NV_cooperative_matrix.
//
// glslang of Debian 12 knows only GL_NV_cooperative_matrix, and drivers today have the KHR extension. The two
// differ in how a module spells them, and in one fact: a KHR matrix type says whether it is A, B or C of a
// product. Shaders give the three different types, by sizes that are specialisation constants of their own,
// so the products of the module tell which is which.
//
// NV's matrices have no bf16. Shaders write A and B of f32 for it, of which Caldera uses no matrices, and the
// rewriting makes their elements BFloat16KHR of SPV_KHR_bfloat16.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/spirv/module.h"

namespace caldera::vulkan::spirv {

/// The module with KHR's matrices in the place of NV's; a module without any as it is. Throws DeviceError
/// naming the kernel where a type is used as two of A, B and C, or as none.
std::vector<std::uint32_t> to_khr_matrices(std::vector<std::uint32_t> module, std::string_view kernel);

}  // namespace caldera::vulkan::spirv
