// A softmax written out, found in a snapshot: its derivative has a short form. Internal to the transforms.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/autodiff/snapshot.h"

namespace caldera {

/// e / sum(e) with e = exp(x - max(x)) or exp(x): position of x, and the axis that is summed over. Its value
/// does not depend on the maximum, so its own rule is both shorter and more accurate than the chain rule
/// through all of it.
struct WrittenSoftmax {
  std::uint32_t x;
  int axis;
};

/// The softmax that entry `i` is the result of. None where a value on the way is itself a target of the
/// transform, which the short form would pass by.
std::optional<WrittenSoftmax> read_softmax(const Snapshot& s, std::uint32_t i);

}  // namespace caldera
