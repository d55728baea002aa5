// Levels: how far the dispatches of a plan depend on one another, and an order of them with few barriers.
//
// A dispatch's level is the number of dispatches on the longest way of dependencies that ends at it.
// Dispatches of one level run side by side, so a plan needs no more barriers than its depth (the highest
// level) less one, and no order of it can do with fewer.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// For a plan with its memory and barriers planned: if there are more barriers than depth_of() less one,
/// moves dispatches side by side and plans memory anew so that what is reused adds no barrier, and then
/// barriers. That takes more memory, as what runs together is alive together; where it would take more than
/// kMostForFewerBarriers of the arena, or kAlwaysForFewerBarriers if that is more, the plan stays as it is.
void plan_levels(Plan& plan);

inline constexpr double kMostForFewerBarriers = 1.0 / 8;
inline constexpr std::int64_t kAlwaysForFewerBarriers = std::int64_t{1} << 20;

}  // namespace caldera
