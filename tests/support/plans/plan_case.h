// A plan built by hand, run on the shared backend of its device, and what it gives beside the reference as
// failures of the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/check/reference/plan_case.h"
#include "engine/device/backend.h"
#include "tests/support/reference.h"

namespace caldera::testing {

class PlanCase : public reference::PlanCase {
 public:
  using reference::PlanCase::PlanCase;

  /// Runs the plan on the device and on the reference; reports the first elements that differ.
  void check(Tolerance tolerance = {}) const;
  /// The same on a device that the test has opened itself.
  void check_on(Backend& backend, Tolerance tolerance = {}) const;
  /// Outputs as the device computes them.
  std::vector<std::vector<std::byte>> run_on_device() const;
};

}  // namespace caldera::testing
