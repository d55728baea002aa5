#include "ops/analysis/covariance.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/diagonals.h"

namespace caldera {
namespace {

void check_variables(const char* op, const LazyTensor& x) {
  if (x.rank() > 2)
    throw ShapeError(fmt::format("{}: needs variables by observations, (M, N) or (N,), got {}", op,
                                 x.shape().to_string()));
}

/// (observations,), in the type of the rows.
LazyTensor checked_weights(const char* what, const LazyTensor& weights, const LazyTensor& rows,
                           bool integral) {
  if (integral ? !is_integral(weights.dtype()) : !is_floating(weights.dtype()))
    throw DTypeError(fmt::format("cov: {} are {}, want {}", what, name(weights.dtype()),
                                 integral ? "integers" : "a floating type"));
  if (weights.shape() != Shape{rows.shape(1)})
    throw ShapeError(
        fmt::format("cov: {} of {} for {} observations", what, weights.shape().to_string(), rows.shape(1)));
  return astype(weights, rows.dtype());
}

/// x as rows, in the type that is computed with.
LazyTensor as_rows_of_variables(const LazyTensor& x) {
  const LazyTensor real = astype(x, compute_type(ops::real_type(x.dtype())));
  return x.rank() == 2 ? real : reshape(real, Shape{1, x.numel()});
}

LazyTensor covariances(const LazyTensor& rows, double correction, const LazyTensor& frequency,
                       const LazyTensor& importance) {
  LazyTensor weights;
  for (const LazyTensor& part : {frequency, importance}) {
    if (part.defined()) weights = weights.defined() ? weights * part : part;
  }
  if (!weights.defined()) {
    const auto n = static_cast<double>(rows.shape(1));
    const LazyTensor off = rows - sum(rows, 1, true) / n;
    return matmul(off, transpose(off)) / std::max(0.0, n - correction);
  }
  const LazyTensor total = sum(weights);
  const LazyTensor off = rows - sum(rows * weights, 1, true) / total;
  const LazyTensor divisor =
      importance.defined() ? total - correction * sum(weights * importance) / total : total - correction;
  return matmul(off * weights, transpose(off)) / maximum(divisor, 0.0);
}

LazyTensor shaped(const LazyTensor& matrix, const LazyTensor& x) {
  return astype(x.rank() == 2 ? matrix : reshape(matrix, Shape{}), ops::real_type(x.dtype()));
}

}  // namespace

LazyTensor cov(const LazyTensor& x, double correction, const LazyTensor& fweights,
               const LazyTensor& aweights) {
  check_variables("cov", x);
  const LazyTensor rows = as_rows_of_variables(x);
  const LazyTensor frequency =
      fweights.defined() ? checked_weights("fweights", fweights, rows, true) : LazyTensor();
  const LazyTensor importance =
      aweights.defined() ? checked_weights("aweights", aweights, rows, false) : LazyTensor();
  return shaped(covariances(rows, correction, frequency, importance), x);
}

LazyTensor corrcoef(const LazyTensor& x) {
  check_variables("corrcoef", x);
  const LazyTensor c = covariances(as_rows_of_variables(x), 1, {}, {});
  const LazyTensor deviation = sqrt(diagonal(c));
  const LazyTensor scaled = c / expand_dims(deviation, 1) / expand_dims(deviation, 0);
  return shaped(clip(scaled, LazyTensor(-1.0), LazyTensor(1.0)), x);
}

}  // namespace caldera
