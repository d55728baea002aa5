// Sorts: where the elements of rows are in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = rows, N, K: out[r, k] is the position in row r of x, from 0 to N - 1, of the element that comes in
/// place first + k where the row is in order. operands: x, out (i32).
///
/// NaN is the largest number, -0 and +0 are equal, and of equal elements the one that stands first comes
/// first, in descending order too.
struct SortStep {
  DType of = DType::f32;  // x
  std::int64_t first = 0;
  bool descending = false;

  static std::string_view kind() { return "sort"; }
  static std::string_view form() { return "index"; }
  static std::string name() { return "sort"; }
  static int output_count() { return 1; }
  static int named_operands() { return 1; }
  static std::int64_t flops(const StepHeader& /*step*/) { return 0; }
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
