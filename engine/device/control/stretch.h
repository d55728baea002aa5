// Stretches: stretches of a plan between the steps that run plans of their own, as plans by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// A part of a plan whose buffers are all bound from outside, those of the arena too.
struct BoundStretch {
  std::shared_ptr<const Plan> plan;
  std::vector<std::int32_t> buffers;  // of the whole plan, by slot of this one
};

/// Steps [first, last) of `plan`. Its scalars stay as they are.
BoundStretch stretch_of(const Plan& plan, std::size_t first, std::size_t last);

}  // namespace caldera
