// An interpreter of plans, one element at a time in f64 and i64, written from the contracts in
// engine/plan/kernel/kernel.h and engine/plan/steps. It shares no code with any device. The steps run one
// after another, each as if alone, so barriers and joined dispatches mean nothing to it.
#pragma once

#include "engine/check/reference/plan_memory.h"
#include "engine/plan/plan.h"

namespace caldera::reference {

void run_reference(const Plan& plan, PlanMemory& memory);

}  // namespace caldera::reference
