// The compiler: a graph becomes a plan.
#pragma once

#include <memory>

#include "engine/compile/program/program.h"
#include "engine/plan/plan.h"

namespace caldera {

struct CompileOptions {
  bool fusion = true;
};

/// simplify -> sum products -> find attention -> find regions -> group them -> emit steps -> schedule -> join
/// -> plan memory -> find hazards -> move side by side (without fusion: no sums, attention, groups, joins).
/// Near-linear in the size of the program: whatever is not, works on windows of bounded size. Pure: the same
/// program and options give the same plan.
std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options);

}  // namespace caldera
