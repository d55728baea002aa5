// The reference interpreter of plans, by the names that tests use.
#pragma once

#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/check/reference/scalar_reference.h"

namespace caldera::testing {

using namespace caldera::reference;

}  // namespace caldera::testing
