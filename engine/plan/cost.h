// Says what a step costs by its shape alone: the work a perfect device would do for it.
#pragma once

#include <cstdint>

#include "engine/plan/plan.h"

namespace caldera {

struct StepCost {
  /// Operations of the graph that the step computes; where the plan does not say, the arithmetic instructions
  /// of its kernel.
  std::int64_t ops = 0;
  /// Floating-point operations, a multiply-add as two and a function such as exp as one; comparisons,
  /// selections, casts and random bits as none. Attention counts the scores that its causal mask leaves, and
  /// in gradients the scores that are computed again.
  std::int64_t flops = 0;
  /// Each element that is touched, once: broadcast operands by what they hold, one operand read twice once.
  /// The copy of a tensor that is then written at a position, which donation spares, touches nothing.
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  /// Counts the bytes written to the arena: results that are no outputs of the plan.
  std::int64_t scratch_bytes = 0;

  std::int64_t bytes() const { return read_bytes + written_bytes; }
  StepCost& operator+=(const StepCost& other) {
    ops += other.ops;
    flops += other.flops;
    read_bytes += other.read_bytes;
    written_bytes += other.written_bytes;
    scratch_bytes += other.scratch_bytes;
    return *this;
  }
};

StepCost cost_of(const Plan& plan, const Step& step);

}  // namespace caldera
