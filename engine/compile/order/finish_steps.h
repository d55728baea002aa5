// Small regions that run at the end of a product's dispatch.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Marks regions that are small enough for a single workgroup and wait for one dispatch of products alone
/// (StepHeader::finishes): the norm of a token after the product that it reads. Barriers are planned already.
void finish_steps(Plan& plan);

}  // namespace caldera
