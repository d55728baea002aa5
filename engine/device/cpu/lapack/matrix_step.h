// A step of LAPACK's routines: one for each matrix of a batch.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/device/cpu/lapack/matrix_solver.h"
#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedRoutine {
 public:
  /// Throws Error where LAPACK is missing, ShapeError where it cannot count that far.
  PreparedRoutine(const Step& step, const LinalgStep& linalg);
  /// Throws ValueError naming the operation, and the first matrix of the batch for which it has no result.
  void run(const RunContext& context) const;

 private:
  struct Place {
    std::int32_t buffer = -1;
    std::int64_t offset = 0;
    Dims strides;
  };
  template <class T>
  void run_typed(const RunContext& context) const;

  MatrixProblem problem_;
  DType type_ = DType::f32;
  std::string name_;
  std::int64_t count_ = 0;
  double nanoseconds_ = 0;       // rough, of one matrix on one thread
  std::int32_t tolerance_ = -1;  // scalar argument
  Place a_, b_, out_;
};

}  // namespace caldera::cpu
