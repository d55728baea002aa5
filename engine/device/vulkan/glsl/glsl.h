// The lowering of the kernel IR to GLSL compute shaders. Text only: no Vulkan here, so it also builds and is
// tested without it.
//
// A shader takes one push constant, the address of its argument blocks (see ArgumentLayout), one for every
// workgroup along y: steps that are joined in one dispatch. The workgroups along x share the points of its
// iteration space: any number of them is right, the caller picks it for speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/kernel/kernel.h"

namespace caldera {

/// How one operand's address follows from the point.
enum class Access : std::uint8_t {
  scalar,   // the same element at every point
  linear,   // element number = number of the point, row-major
  strided,  // bias + sum(coordinate * stride)
};

/// How the points are shared among invocations.
enum class RegionForm : std::uint8_t {
  elementwise,        // an invocation a point
  reduce_per_thread,  // an invocation an output, looping over the reduced points
  reduce_per_group,   // a workgroup an output: its invocations take every lanes-th reduced point
  rows_per_thread,    // row kernels: an invocation a row
  rows_per_group,     // a workgroup a row: its invocations take every lanes-th point
};

/// Everything but the kernel that the text of a shader depends on. Extents and strides are arguments, so that
/// a program with changing shapes keeps its shaders.
struct KernelVariant {
  RegionForm form = RegionForm::elementwise;
  std::uint8_t rank = 0;         // dimensions left after adjacent ones were merged
  std::uint8_t reduce_rank = 0;  // of these, the innermost ones that are combined away, or are the row
  std::uint16_t lanes = 64;      // invocations a workgroup
  // rows_per_group: points of a row for which a lane keeps values between walks, no row being longer than
  // kept * lanes; 0: rows of any length, values are computed anew.
  std::uint8_t kept = 0;
  // In the order of Step::operands: inputs, index operands, outputs. What has one element a row (see
  // row_operands) counts over the kept dimensions only. An index operand is `scalar` or `strided`.
  std::vector<Access> access;

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
  Hash128 hash() const;
};

/// What the device offers to the shaders.
struct GlslOptions {
  std::uint32_t subgroup_size = 0;   // 0: no subgroup arithmetic in compute shaders
  bool exact_subgroup_size = false;  // every subgroup of a full workgroup has this size
  bool preserve_nan_inf = false;  // SPV_KHR_float_controls SignedZeroInfNanPreserve for f32 (and f64 if used)
};

/// Layout of an argument block. First 8-byte slots: the address of every memory operand (inputs, then
/// outputs), then the scalar arguments. Then 4-byte integers: the number of points (of the kept dimensions),
/// the number of reduced points (or points a row), `rank` extents, and per operand its bias (strided) and
/// `rank` strides (strided; of what has one element a row as many as there are kept dimensions). An index
/// operand has a bias whatever its access.
struct ArgumentLayout {
  int slots = 0;
  int integers = 0;
  /// From one block to the next.
  int bytes() const { return (8 * slots + 4 * integers + 7) / 8 * 8; }
};
/// For every operand of a step (inputs, index operands, outputs) whether it has one element a row, that is
/// strides over the kept dimensions only: the output of a reduction; of a row kernel outputs that are one a
/// row and inputs that only load_row reads.
std::vector<bool> row_operands(const Kernel& kernel);

ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant);

/// The shader. Throws DTypeError naming the operation when the kernel asks for one that GLSL lacks
/// (transcendental functions of float64, 16-bit types).
std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options);

}  // namespace caldera
