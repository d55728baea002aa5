// The reference interpreter of plans, by the names that tests use.
#pragma once

#include "engine/device/reference/kernel_builder.h"
#include "engine/device/reference/reference_plan.h"
#include "engine/device/reference/scalar_reference.h"

namespace caldera::testing {

using namespace caldera::reference;

}  // namespace caldera::testing
