// The compiler: a graph becomes a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile/program/program.h"
#include "engine/plan/device_traits.h"
#include "engine/plan/plan.h"

namespace caldera {

struct CompileOptions {
  /// Without it: no sums of products, attention, groups of several operations, joined steps.
  bool fusion = true;
  /// Plan::arena_segment: a multiple of kArenaAlignment, not 0.
  std::int64_t arena_segment = kArenaSegment;
  DeviceTraits traits;
  /// Called after each pass with its name. `text` says what there is by then: the program, where its values
  /// live, the groups or the plan.
  std::function<void(std::string_view pass, const std::function<std::string()>& text)> after_pass;
};

/// Runs the passes (see compile.cpp, and docs/internals/compiler.md). Near-linear in the size of the program:
/// whatever is not, works on windows of bounded size. Pure: the same program and options give the same plan.
std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options);

/// The names of the passes, in the order in which they run.
std::vector<std::string_view> pass_names();

}  // namespace caldera
