// The plan verifier on plans that the compiler made: whole ones pass, damaged ones do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/compile/compile.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/named_programs.h"

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

/// For each buffer, by how many steps it is written.
std::vector<int> count_writers(const Plan& plan) {
  std::vector<int> writers(plan.buffers.size(), 0);
  for (const Step& step : plan.steps) {
    for (std::size_t k = step.operands.size() - static_cast<std::size_t>(step.output_count());
         k < step.operands.size(); ++k) {
      ++writers[static_cast<std::size_t>(step.operands[k].buffer)];
    }
  }
  return writers;
}

bool writes_one_of_several(const Step& step, const std::vector<int>& writers) {
  for (std::size_t k = step.operands.size() - static_cast<std::size_t>(step.output_count());
       k < step.operands.size(); ++k) {
    if (writers[static_cast<std::size_t>(step.operands[k].buffer)] > 1) return true;
  }
  return false;
}

/// Takes a step out. What was joined to it is joined to nothing else by accident.
void remove_step(Plan& plan, std::size_t i) {
  if (i + 1 < plan.steps.size() && plan.steps[i + 1].joined) {
    plan.steps[i + 1].joined = plan.steps[i].joined;
    plan.steps[i + 1].barrier_before = plan.steps[i].barrier_before;
  }
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
}

TEST(VerifyPrograms, NoBarrierIsIdle) {
  int barriers = 0;
  for_each_plan([&](const Plan& plan) {
    const std::vector<int> writers = count_writers(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (!plan.steps[i].barrier_before) continue;
      // The planner looks at the span between the first and the last element of an operand, the verifier
      // at each element: parts of one buffer (pad, concatenate) may be apart though their spans are not.
      if (writes_one_of_several(plan.steps[i], writers)) continue;
      Plan damaged = plan;
      damaged.steps[i].barrier_before = false;
      EXPECT_TRUE(is_rejected(damaged)) << "without the barrier before step " << i;
      ++barriers;
    }
  });
  EXPECT_GT(barriers, 40);
}

TEST(VerifyPrograms, EveryStepIsNeeded) {
  int removed = 0;
  for_each_plan([&](const Plan& plan) {
    const std::vector<int> writers = count_writers(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      // Of several writers of one buffer one may be redundant for all a verifier knows.
      if (writes_one_of_several(plan.steps[i], writers)) continue;
      Plan damaged = plan;
      remove_step(damaged, i);
      EXPECT_TRUE(is_rejected(damaged)) << "without step " << i;
      ++removed;
    }
  });
  EXPECT_GT(removed, 70);
}

TEST(VerifyPrograms, NoStepMayComeBeforeWhatItReads) {
  int swapped = 0;
  for_each_plan([&](const Plan& plan) {
    for (std::size_t i = 1; i < plan.steps.size(); ++i) {
      const std::int32_t made = plan.steps[i - 1].operands.back().buffer;
      const auto& operands = plan.steps[i].operands;
      const bool reads = std::any_of(operands.begin(), operands.end() - plan.steps[i].output_count(),
                                     [&](const Operand& operand) { return operand.buffer == made; });
      if (!reads) continue;
      Plan damaged = plan;
      std::swap(damaged.steps[i - 1], damaged.steps[i]);
      EXPECT_TRUE(is_rejected(damaged)) << "with step " << i << " before its operand";
      ++swapped;
    }
  });
  EXPECT_GT(swapped, 30);
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
