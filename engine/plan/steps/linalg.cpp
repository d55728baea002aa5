#include "engine/plan/steps/linalg.h"

#include <algorithm>

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {
namespace {

/// Of one matrix with m >= n: the leading terms of Golub and Van Loan's counts (Matrix Computations, 4th
/// edition). `k`: columns of the right side.
std::int64_t routine_flops(MatrixRoutine routine, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t lu = 2 * n * n * n / 3;
  switch (routine) {
    case MatrixRoutine::cholesky:
      return n * n * n / 3;
    case MatrixRoutine::solve:
      return lu + 2 * n * n * k;
    case MatrixRoutine::solve_triangular:
      return n * n * k;
    case MatrixRoutine::inv:
      return 2 * n * n * n;
    case MatrixRoutine::det:
    case MatrixRoutine::slogdet:
    case MatrixRoutine::lu:
      return lu;
    case MatrixRoutine::exchanges:
      return m;
    case MatrixRoutine::eig:
      return 25 * n * n * n;
    case MatrixRoutine::exp:
      return 40 * n * n * n;  // six products for the approximation, a system, and some squarings
    case MatrixRoutine::qr:
      return 4 * n * n * (m - n / 3);
    case MatrixRoutine::svdvals:
      return 4 * m * n * n - 4 * n * n * n / 3;
    case MatrixRoutine::eigvalsh:
      return 4 * n * n * n / 3;
    case MatrixRoutine::eigh:
      return 9 * n * n * n;
    case MatrixRoutine::svd:
    case MatrixRoutine::cofactor:
    case MatrixRoutine::pinv:
      return 6 * m * n * n + 20 * n * n * n;
  }
  return 0;
}

}  // namespace

std::int64_t LinalgStep::flops(const StepHeader& step) const {
  const auto [n, m] = std::minmax({step.dims[1], step.dims[2]});  // as values: dims[] gives no references
  return step.dims[0] * routine_flops(routine, m, n, step.dims[3]);
}

void LinalgStep::check(verify::StepForm& form) const {
  using verify::Fault;
  form.check_rank(3);
  if (form.rank() != 5) throw Fault{"not the dimensions batch, M, N, K, P"};
  const StepHeader& step = form.step();
  if (step.dtype != DType::f32 && step.dtype != DType::f64)
    throw Fault{"matrices of another type than float32 and float64"};
  const std::int64_t m = step.dims[1];
  const std::int64_t n = step.dims[2];
  const std::int64_t k = step.dims[3];
  if (needs_square(routine) && m != n) throw Fault{"a routine for square matrices over others"};
  if (!has_right_side(routine) && k != 0) throw Fault{"a right side that the routine has no use for"};
  if (result_size(routine, option, m, n, k) != step.dims[4])
    throw Fault{"results of another size than the routine's"};
  const verify::DimSet batch = form.inner(5);
  const verify::DimSet left = batch | form.inner(4) | form.inner(3);
  const verify::DimSet right = batch | form.inner(4) | form.inner(2);
  form.read(step.dtype, left, left);
  if (has_right_side(routine)) form.read(step.dtype, right, right);
  form.write(step.dtype, batch | form.inner(1));
  if (has_tolerance(routine)) form.add_scalar(step.dtype);
}

}  // namespace caldera
