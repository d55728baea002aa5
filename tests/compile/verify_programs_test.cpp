// The plan verifier on plans that the compiler made: whole ones pass, damaged ones do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "engine/compile/compile.h"
#include "tests/support/engine_setup.h"
#include "tests/support/named_programs.h"

namespace caldera::testing {
namespace {

/// Calls check(name, plan) for every named program, fused and not.
template <class Check>
void for_each_plan(Check check) {
  for (const NamedProgram& program : named_programs()) {
    for (bool fusion : {true, false}) {
      const ScopedSettings scope(fusion);
      settings().verify = false;  // the tests here do it themselves
      const auto plan = plan_for(program.build(Device::null()));
      SCOPED_TRACE(std::string(program.name) + (fusion ? ", fused\n" : ", plain\n") + plan->to_string());
      check(*plan);
    }
  }
}

bool is_rejected(const Plan& plan) {
  try {
    verify_plan(plan);
    return false;
  } catch (const PlanError&) {
    return true;
  }
}

TEST(VerifyPrograms, EveryPlanIsProved) {
  for_each_plan([](const Plan& plan) { EXPECT_NO_THROW(verify_plan(plan)); });
}

TEST(VerifyPrograms, NoBarrierIsIdle) {
  int barriers = 0;
  for_each_plan([&](const Plan& plan) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (!plan.steps[i].barrier_before) continue;
      Plan damaged = plan;
      damaged.steps[i].barrier_before = false;
      EXPECT_TRUE(is_rejected(damaged)) << "without the barrier before step " << i;
      ++barriers;
    }
  });
  EXPECT_GT(barriers, 50);
}

TEST(VerifyPrograms, EveryStepIsNeeded) {
  int removed = 0;
  for_each_plan([&](const Plan& plan) {
    std::vector<int> writers(plan.buffers.size(), 0);
    for (const Step& step : plan.steps) ++writers[static_cast<std::size_t>(step.operands.back().buffer)];
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      // Of several writers of one buffer (pad, concatenate) one may be redundant for all a verifier knows.
      if (writers[static_cast<std::size_t>(plan.steps[i].operands.back().buffer)] > 1) continue;
      Plan damaged = plan;
      damaged.steps.erase(damaged.steps.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(is_rejected(damaged)) << "without step " << i;
      ++removed;
    }
  });
  EXPECT_GT(removed, 100);
}

TEST(VerifyPrograms, NoStepMayComeBeforeWhatItReads) {
  int swapped = 0;
  for_each_plan([&](const Plan& plan) {
    for (std::size_t i = 1; i < plan.steps.size(); ++i) {
      const std::int32_t made = plan.steps[i - 1].operands.back().buffer;
      const auto& operands = plan.steps[i].operands;
      const bool reads = std::any_of(operands.begin(), operands.end() - 1,
                                     [&](const Operand& operand) { return operand.buffer == made; });
      if (!reads) continue;
      Plan damaged = plan;
      std::swap(damaged.steps[i - 1], damaged.steps[i]);
      EXPECT_TRUE(is_rejected(damaged)) << "with step " << i << " before its operand";
      ++swapped;
    }
  });
  EXPECT_GT(swapped, 50);
}

TEST(VerifyPrograms, TheArenaIsNoLargerThanNeeded) {
  for_each_plan([](const Plan& plan) {
    if (plan.arena_bytes == 0) return;
    Plan damaged = plan;
    damaged.arena_bytes -= kArenaAlignment;
    EXPECT_TRUE(is_rejected(damaged));
  });
}

TEST(VerifyPrograms, RunWithTheSettingOn) {
  for (const NamedProgram& program : named_programs()) {
    for (bool fusion : {true, false}) {
      const ScopedSettings scope(fusion);
      EXPECT_NO_THROW(eval(program.build(Device::cpu()))) << program.name;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
