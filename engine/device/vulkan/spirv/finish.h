// The last pass over a module before the driver gets it. It mends what compilers write and current drivers
// refuse or crash on:
//
// - Alignment. glslang (12 to 16) gives a load of a buffer reference out of a buffer the alignment of
//   what the reference points at, 1 to 4 bytes. Vulkan asks for that of the largest scalar, here the
//   address's 8 bytes (VUID-StandaloneSpirv-PhysicalStorageBuffer64-06314). Caldera puts addresses at
//   multiples of eight, so the truth is written in.
// - Integer constants of 8 or 16 bits in a module that may only load and store such types. They become
//   32-bit constants that are converted where they are stored. (The validator's words: "Cannot form
//   constants of 8- or 16-bit types".)
// - Arrays of variables that share their type with an array in a buffer, and so have a stride, which
//   variables may not have (VUID-StandaloneSpirv-None-10684). They get a type of their own, unless the
//   module handles such arrays as a whole.
// - Sums keep their order (NoContraction): Mesa 26 computes (a + b) + a as 2 a + b, which may overflow.
//   GLSL's `precise` would say so, but the optimiser (SPIRV-Tools 2023) loses it where it unrolls a loop.
//   Sums with a product are left out: a multiplication and addition in one is wanted there.
// - Cooperative matrices: see cooperative.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/spirv/module.h"

namespace caldera::vulkan::spirv {

/// The module, mended. Throws DeviceError naming the kernel where the words are no SPIR-V.
std::vector<std::uint32_t> finish(Words module, std::string_view kernel);

}  // namespace caldera::vulkan::spirv
