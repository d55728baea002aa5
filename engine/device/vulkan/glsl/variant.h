// Says what the text of a shader depends on besides its kernel: how operands are addressed, how points are
// shared among invocations, and what the device offers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/hash.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera {

/// Says how one operand's address follows from the point.
enum class Access : std::uint8_t {
  scalar,   // the same element at every point
  linear,   // element number = number of the point, row-major
  strided,  // bias + sum(coordinate * stride)
};

/// Says how the points are shared among invocations.
enum class RegionForm : std::uint8_t {
  elementwise,        // an invocation a point
  reduce_per_thread,  // an invocation an output, looping over the reduced points
  reduce_per_group,   // a workgroup an output: its invocations take every lanes-th reduced point
  rows_per_thread,    // row kernels: an invocation a row
  rows_per_group,     // a workgroup a row: its invocations take every lanes-th point
};

/// Says what a lane that takes neighbours along the innermost dimension reads or writes of an operand.
enum class Neighbours : std::uint8_t {
  one,       // the same element for all of them
  each,      // an element each, at a stride: index operands, and inputs that are otherwise
  together,  // as many elements that are one after the other
};

/// Everything but the kernel that the text of a shader depends on. Extents and strides are arguments, so that
/// a program with changing shapes keeps its shaders.
struct KernelVariant {
  RegionForm form = RegionForm::elementwise;
  std::uint8_t rank = 0;         // dimensions left after adjacent ones were merged
  std::uint8_t reduce_rank = 0;  // of these, the innermost ones that are combined away, or are the row
  std::uint16_t lanes = 64;      // invocations a workgroup
  // rows_per_group: points of a row for which a lane keeps values between walks, no row being longer than
  // kept * lanes; 0: rows of any length, values are computed again.
  std::uint8_t kept = 0;
  // Rows that are walked: sums that follow from a maximum are added up in its walk (see online.h).
  bool online = false;
  // Neighbouring points along the innermost dimension that a lane takes together, a power of two: their
  // operands come and go in words of up to 16 bytes where addresses allow that. With more than one dimension
  // (of a row, with rows) it divides the innermost extent, and the other strides of what is together.
  std::uint8_t width = 1;
  // One workgroup takes all of the points, at the end of another kernel: see region_shader.h.
  bool finishes = false;
  // In the order of Step::operands: inputs, index operands, outputs. What has one element a row (see
  // row_operands) counts over the kept dimensions only. An index operand is `scalar` or `strided`.
  std::vector<Access> access;
  std::vector<Neighbours> neighbours;  // the same operands, where width > 1

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
  Hash128 hash() const;
};

/// Lists what the device offers to the shaders.
struct GlslOptions {
  std::uint32_t subgroup_size = 0;   // 0: no subgroup arithmetic in compute shaders
  bool exact_subgroup_size = false;  // every subgroup of a full workgroup has this size
  bool preserve_nan_inf = false;  // SPV_KHR_float_controls SignedZeroInfNanPreserve for f32 (and f64 if used)
  // No storage of 8 or of 16 bits: such elements are parts of 32-bit words.
  bool bytes_in_words = false, halves_in_words = false;

  bool in_words(DType type) const {
    return (size_of(type) == 1 && bytes_in_words) || (size_of(type) == 2 && halves_in_words);
  }
};

/// Says for every operand of a step (inputs, index operands, outputs) whether it has one element a row, that
/// is strides over the kept dimensions only: the output of a reduction; of a row kernel outputs that are one
/// a row and inputs that only load_row reads.
std::vector<bool> row_operands(const Kernel& kernel);

}  // namespace caldera
