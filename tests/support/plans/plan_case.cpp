#include "tests/support/plans/plan_case.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/device/backend.h"
#include "tests/support/devices.h"

namespace caldera::testing {

void PlanCase::check(Tolerance tolerance) const { check_on(shared_backend(device()), tolerance); }

void PlanCase::check_on(Backend& backend, Tolerance tolerance) const {
  for (const std::string& line : compare(run_on(backend), tolerance).complaints) ADD_FAILURE() << line;
}

std::vector<std::vector<std::byte>> PlanCase::run_on_device() const {
  DeviceRun run = run_on(shared_backend(device()));
  for (const std::string& line : run.damage) ADD_FAILURE() << line;
  return run.outputs;
}

}  // namespace caldera::testing
