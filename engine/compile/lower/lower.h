// Lowering: steps are split or merged to suit the device that the plan is for. What comes of it are steps as
// any others, with contracts of their own: the verifier checks them, and every device computes them.
#pragma once

#include "engine/plan/device_traits.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Splits the steps of a plan to suit the device. The steps stand in order, and no memory is planned yet.
/// Adds buffers at the end of those of the arena. Pure: the same plan and traits give the same plan.
void lower(Plan& plan, const DeviceTraits& traits);

}  // namespace caldera
