// Limits of what elements near each other, or slices, come to together. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct ResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};
/// x (N, C, ...) over (k + alpha mean(x^2))^beta, the mean being over the `size` channels around each, those
/// that are not there counting as 0 (Krizhevsky, Sutskever and Hinton 2012; torch's local_response_norm).
/// ShapeError for fewer than 3 axes, ValueError unless size > 0.
LazyTensor local_response_norm(const LazyTensor& x, std::int64_t size,
                               const ResponseNormOptions& options = {});

/// x with each slice along the axis whose p-norm exceeds `maxnorm` scaled down to it (torch.renorm: maxnorm
/// over the norm + 1e-7). ShapeError for fewer than 2 axes; ValueError unless p > 0 and maxnorm >= 0.
LazyTensor renorm(const LazyTensor& x, double p, AxisIndex axis, double maxnorm);

}  // namespace caldera
