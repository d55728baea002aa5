// Regions: one kernel over an iteration space.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// Runs `kernel` (kernel.h) over dims. operands: the kernel's inputs, then index operands, then outputs.
struct RegionStep {
  std::shared_ptr<const Kernel> kernel;
  std::int8_t reduce_rank = 0;  // innermost dims that are combined away, or are the row

  static std::string_view kind() { return "region"; }
  std::string_view form() const;  // "map" (element-wise), "copy", "reduce" or "row"
  std::string name() const;
  int output_count() const;
  static int named_operands() { return 0; }
  bool reads_in_place(std::size_t k) const;
  std::vector<StepKernel> kernels() const;
  std::int64_t own_operations() const;
  std::int64_t flops(const StepHeader& step) const;
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
