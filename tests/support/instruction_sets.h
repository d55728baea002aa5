// Runs a check with each instruction set that the build and this processor have, chosen in turn.
#pragma once

#include <cstdint>

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)  // as the kernels do
#endif
#include <hwy/highway.h>

namespace caldera::testing {

/// Those that CALDERA_TEST_INSTRUCTION_SET leaves to the whole program; 0: all.
std::int64_t forced_targets();

/// What is chosen from now on; 0: the best of all.
inline void choose_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// Calls body(name). What was chosen before, of tables of functions that are kept, stays.
template <class Body>
void with_each_instruction_set(const Body& body) {
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    choose_targets(rest & -rest);
    body(hwy::TargetName(rest & -rest));
  }
  choose_targets(forced_targets());
}

}  // namespace caldera::testing
