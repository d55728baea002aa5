// Inner plans: those that control steps run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// Makes a part of a control step of `plan`, with what is bound to it.
ControlPlan inner_plan(std::shared_ptr<const Plan> plan, std::vector<std::uint32_t> parameters,
                       std::vector<std::uint32_t> numbers);

/// Whether a replay may end midway: by a step that may fail for what its inputs are, or in a loop, which may
/// be cancelled, or lack memory for what it makes on the way. It must be possible to run it again then.
bool may_fail(const Plan& plan);
/// Whether a step of the plan runs others.
bool has_control(const Plan& plan);

}  // namespace caldera
