#include "engine/check/reference/reference_plan.h"

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {

void run_reference(const Plan& plan, PlanMemory& memory) {
  for (const Step& step : plan.steps)
    step.visit([&](const auto& kind) { run_step(StepMemory(plan, memory, step), kind); });
}

}  // namespace caldera::reference
