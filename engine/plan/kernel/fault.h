// Defines what the plan verifier throws inside of itself.
#pragma once

#include <string>

namespace caldera::verify {

/// Why a plan is no good. verify_plan adds where, and throws PlanError.
struct Fault {
  std::string why;
};

}  // namespace caldera::verify
