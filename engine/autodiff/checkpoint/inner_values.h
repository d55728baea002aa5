// The values between the arguments and the results of a checkpointed call, and what its backward pass reads
// of them. Internal to the transforms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/autodiff/checkpoint/keep.h"
#include "engine/autodiff/snapshot.h"

namespace caldera {

/// The values inside of one call.
struct InnerValues {
  std::vector<InnerValue> values;
  std::vector<std::uint32_t> entries;  ///< where each stands in the snapshot of the call
};

/// Takes the values of `s`, a snapshot from a call's arguments to its values whose `depends` are set.
/// `is_needed` says of each entry whether the backward pass reads it.
InnerValues inner_values(const Snapshot& s, const std::vector<bool>& is_needed);

}  // namespace caldera
