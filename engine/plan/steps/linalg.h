// Matrix routines: LAPACK's, over a batch of matrices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/graph/matrix_routine.h"
#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = batch, M, N, K, P: `routine` of a[b,m,n] and, where it has a right side, of r[b,n,k]; else K is 0.
///
/// operands: a, r (whose rows are walked along M: a is square then), out[b,p]: the P elements of the results.
/// scalars: the routine's tolerance, if it has one. The type is f32 or f64.
struct LinalgStep {
  MatrixRoutine routine{};
  bool option = false;  // of the routine

  static std::string_view kind() { return "linalg"; }
  static std::string_view form() { return "linalg"; }
  static std::string name() { return "linalg"; }
  static int output_count() { return 1; }
  static int named_operands() { return 2; }
  std::int64_t flops(const StepHeader& step) const;
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
