// Sums of zero paddings, as the gradients of slices are: ((x + pad a) + pad b) + pad c.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/compile/program/program.h"

namespace caldera {

/// The contents of a padding, [begin, end) along the one axis that it pads.
struct PaddedPart {
  std::uint32_t pad = kNoRoot;
  std::int64_t begin = 0, end = 0;
};

/// A sum of paddings along one axis, in the order in which they are added, to `rest` if there is one. Parts
/// of one layer do not touch the same elements, and where two do, that of the lower layer is added first: the
/// sum of the layers adds every element's parts in the order that the program has. (Where no element has more
/// than two summands the order is all one.)
struct PadSum {
  int axis = 0;
  std::uint32_t rest = kNoRoot;
  std::vector<std::vector<PaddedPart>> layers;  // each by `begin`
};

/// Holds such sums of a program, where they have fewer layers than parts.
struct PadSums {
  std::unordered_map<std::uint32_t, PadSum> of;  // by the node of the last addition
  std::vector<bool> inside;  // additions that nothing else needs: of a sum, but its last. Empty: none
};

/// `uses`: those of count_uses().
PadSums find_pad_sums(const Program& program, const std::vector<std::uint32_t>& uses);

}  // namespace caldera
