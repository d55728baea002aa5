// Finds one of the convex answers of a KeepProblem without all the others.
#pragma once

#include <cstdint>
#include <span>

#include "engine/autodiff/checkpoint/keep_problem.h"

namespace caldera {

/// Finds, of convex_answers(), that which keeps the most of those that keep at most `bytes` (0 or more): it
/// halves the hull, and so solves a few minimum cuts instead of one for each answer. Throws as
/// convex_answers() does.
KeepAnswer convex_answer_within(std::span<const KeepCost> values, std::int64_t bytes);

}  // namespace caldera
