// The compiler: a graph becomes a plan.
#pragma once

#include <memory>

#include "engine/compile/fuse/regions.h"
#include "engine/compile/program/program.h"
#include "engine/plan/plan.h"

namespace caldera {

/// simplify -> sum products -> find attention -> find regions -> group them -> emit steps -> schedule -> join
/// -> plan memory -> find hazards -> move side by side (without fusion: no sums, attention, groups, joins).
/// Near-linear in the size of the program: whatever is not, works on windows of bounded size. Pure: the same
/// program and options give the same plan.
std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options);

/// Places the arena buffers of a plan whose steps are final: a buffer lives from its first to its last step.
void plan_memory(Plan& plan);

/// Sets Step::barrier_before where a step touches bytes that an earlier one, since the last barrier, has
/// touched in conflict.
void plan_barriers(Plan& plan);

/// Proves a plan from scratch: operands within their buffers, everything read was written and not overwritten
/// since, no two conflicting accesses without a barrier between. Throws PlanError that names the step.
void verify_plan(const Plan& plan);

}  // namespace caldera
