// Control steps: loops and branches, which run plans of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/control_layout.h"
#include "engine/plan/steps/step_kind.h"

namespace caldera {

class HostExchange;
struct Plan;

/// A tensor in memory, dense.
struct ControlValue {
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::int64_t bytes() const { return elements * static_cast<std::int64_t>(size_of(dtype)); }
};

/// A plan that a control step runs (engine/plan/inner_plan.h makes it of a plan). Its outputs are the part's
/// results.
struct ControlPlan {
  std::shared_ptr<const Plan> plan;
  std::vector<std::uint32_t> parameters;  // of the layout, by input of the plan
  std::vector<std::uint32_t> numbers;     // of the step, by scalar of the plan that is no constant

  // Copies of what the plan says, which the step needs to know.
  std::vector<ControlValue> inputs, results;
  std::vector<DType> scalars;  // without constants
  std::int64_t arena_bytes = 0;
  std::int64_t flops = 0;
  std::size_t heap_bytes = 0;
};

/// Says where a step has what it needs besides its operands, in bytes of its scratch operand. A set holds
/// one value of each carry, or of each state, one behind the other.
struct ControlScratch {
  std::vector<std::int64_t> carry_sets;  // of a loop one; of a reversal two to compute with, then snapshots
  std::vector<std::int64_t> state_sets;  // of a reversal one
  std::int64_t flag = -1;                // of a loop with a test: its result
  std::int64_t arena = 0;                // of the parts, one at a time
  std::int64_t bytes = 0;
};

/// operands: the tensors of `layout`, its results, and scratch (u8), if it takes any: each dense, over one
/// dimension. dims is (1). scalars: the numbers. What the parts compute stands in
/// engine/graph/control_layout.h.
struct ControlStep {
  ControlLayout layout;
  std::vector<ControlValue> inputs;   // the tensors of the layout
  std::vector<ControlValue> results;  // of the layout: stacked ones whole
  std::vector<DType> numbers;
  std::vector<ControlPlan> parts;
  ControlScratch scratch;
  std::shared_ptr<const HostExchange> exchange;  // of that kind

  std::string_view kind() const;
  static std::string_view form() { return "control"; }
  std::string name() const { return std::string(kind()); }
  int output_count() const { return static_cast<int>(results.size()) + (scratch.bytes > 0 ? 1 : 0); }
  int named_operands() const { return static_cast<int>(inputs.size()); }
  Shape operand_dims(const StepHeader& step, std::size_t k) const;
  std::int64_t flops(const StepHeader& step) const;
  std::size_t heap_bytes() const;
  void check(verify::StepForm& form) const;

  /// Says in which operand something is, and how many bytes behind its begin.
  struct Place {
    std::size_t operand = 0;
    std::int64_t bytes = 0;
  };
  /// Returns where the turn at `place` along the slices gets parameter `p` (a slice, a tensor of a list, or
  /// what is the same in all turns), and where it gives result `k` of the part (a slice or a listed one).
  Place parameter_at(std::uint32_t p, std::int64_t place) const;
  Place result_at(std::uint32_t k, std::int64_t place) const;
  /// Lays out scratch for these parts.
  void plan_scratch();
};

}  // namespace caldera
