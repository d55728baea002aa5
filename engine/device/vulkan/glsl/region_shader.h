// The lowering of the kernel IR of a region to a GLSL compute shader. Text only: no Vulkan here.
//
// A shader takes one push constant, the address of its argument blocks (see ArgumentLayout), one for every
// workgroup along y: steps that are joined in one dispatch. The workgroups along x share the points of its
// iteration space: any number of them is right, the caller picks it for speed.
#pragma once

#include <cstddef>
#include <string>

#include "engine/device/vulkan/glsl/needs.h"
#include "engine/device/vulkan/glsl/variant.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera {

/// Layout of an argument block. First 8-byte slots: the address of every memory operand (inputs, then
/// outputs), then the scalar arguments. Then 4-byte integers: the number of points (of the kept dimensions),
/// the number of reduced points (or points a row), `rank` extents, and per operand its bias (strided) and
/// `rank` strides (strided; of what has one element a row as many as there are kept dimensions). An index
/// operand has a bias whatever its access.
///
/// Last come magic_divisor() of every extent but the first, where operands have strides. A kernel without
/// rows that takes neighbours together (KernelVariant::width) has as its number of points that of its groups
/// of neighbours; the number of points stands in the place of those of a row.
struct ArgumentLayout {
  int slots = 0;
  int integers = 0;
  int divisors = 0;
  /// From one block to the next.
  int bytes() const { return (8 * slots + 4 * (integers + divisors) + 7) / 8 * 8; }
};
ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant);

/// Holds what another kernel's shader has in it to end with a region: every workgroup counts itself, and the
/// last one takes all points of all blocks.
struct GlslFinish {
  GlslNeeds needs;
  std::string functions;   // ahead of main(); below the extensions and library functions that `needs` lists
  std::string statements;  // at the end of main(), which all invocations reach together
  /// The push constants below the first two: see KernelPush.
  static constexpr const char* kPushMembers =
      "uint finish_turns; FinishArguments finish_arguments; FinishCounter finish_counter;";
};

/// Writes it for a variant that `finishes`, whose lanes are the other kernel's. Throws as to_glsl does.
GlslFinish finishing_glsl(const Kernel& kernel, const KernelVariant& variant, std::size_t blocks,
                          const GlslOptions& options);

/// The shader. Throws DTypeError naming the operation when the kernel asks for one that GLSL lacks
/// (transcendental functions of float64, 16-bit types).
std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options);

}  // namespace caldera
