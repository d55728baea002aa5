#include "engine/check/reference/reference_plan.h"

#include <type_traits>

#include "engine/check/reference/reference_control.h"
#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {

void run_reference(const Plan& plan, PlanMemory& memory) {
  for (const Step& step : plan.steps) {
    const StepMemory of_step(plan, memory, step);
    step.visit([&](const auto& kind) {
      if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, ControlStep>)
        run_control(of_step, kind, run_reference);
      else
        run_step(of_step, kind);
    });
  }
}

}  // namespace caldera::reference
