// Attention steps with their operands, whose plan is checked as PlanCase checks.
#pragma once

#include "engine/check/reference/attention_case.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {

/// The plan, made before what adds to it.
struct AttentionPlan {
  PlanCase made;
};

class AttentionCase : private AttentionPlan, public reference::AttentionCase {
 public:
  AttentionCase(Device device, const AttentionSetting& setting)
      : AttentionPlan{PlanCase(device)}, reference::AttentionCase(made, setting) {}
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  PlanCase& plan() { return made; }
};

}  // namespace caldera::testing
