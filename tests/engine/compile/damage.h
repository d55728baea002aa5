// Plans that are damaged on purpose, one kind of damage at a time.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "engine/base/error.h"
#include "engine/plan/verify.h"

namespace caldera::testing {

struct Damage {
  const char* what;
  const char* message;  // part of what the verifier says
  void (*inflict)(Plan&);
};

inline void expect_all_rejected(const Plan& sound, std::span<const Damage> damages) {
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.what);
    Plan plan = sound;
    damage.inflict(plan);
    try {
      verify_plan(plan);
      ADD_FAILURE() << "accepted";
    } catch (const PlanError& error) {
      EXPECT_NE(std::string(error.what()).find(damage.message), std::string::npos)
          << "  said:   " << error.what() << "\n  wanted: " << damage.message;
    }
  }
}

}  // namespace caldera::testing
