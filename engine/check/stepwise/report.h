// The report on a step that was checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/check/reference/plan_memory.h"
#include "engine/check/stepwise/deviation.h"
#include "engine/device/generated_code.h"
#include "engine/plan/plan.h"

namespace caldera::check {

/// A step of an evaluation, for a report.
struct CheckedStep {
  std::uint64_t evaluation = 0;
  std::size_t number = 0;      ///< in the whole plan
  std::size_t step_count = 0;  ///< of the whole plan
  const Plan& plan;            ///< of its dispatch
  std::size_t step = 0;        ///< in that plan
  std::string within = {};     ///< where in the step of the whole plan, if that is a loop or branch
  CodeWriter code = nullptr;   ///< of the device
};

/// Returns one line on a deviation: which step, how many elements, the worst of them.
std::string summary(const CheckedStep& checked, const Deviation& deviation);

/// Returns the step's operands with their first values, its code, and the command that runs it alone. The
/// values are those of `memory`, a buffer of the dispatch's plan each.
std::string details(const CheckedStep& checked, const reference::PlanMemory& memory);

}  // namespace caldera::check
