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

/// Whether a step of the plan, or of a plan that it runs, may fail for what its inputs are, or may not end.
bool may_fail(const Plan& plan);
/// Whether a step of the plan runs others.
bool has_control(const Plan& plan);

}  // namespace caldera
