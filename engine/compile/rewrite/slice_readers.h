// Which operations are worth computing slice by slice.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "engine/compile/program/program.h"

namespace caldera {

/// The element-wise operations that nothing reads but a few slices, each along one axis, which have no more
/// elements together than the whole: computing them apart costs no element twice, and none that nobody reads.
/// Slices that overlap more than they leave out (differences, stencils, moving windows) are cheaper read from
/// the whole. `uses`: those of count_uses().
std::unordered_set<std::uint32_t> computed_in_slices(const Program& program,
                                                     const std::vector<std::uint32_t>& uses);

/// The axis along which a slice with unit steps leaves something out, if that is one axis; -1 otherwise.
int sliced_axis(const Program& program, std::uint32_t slice);

}  // namespace caldera
