// The normal distribution function, its inverse and logarithm, and the scaled complementary error function.
// Types as of ops/special/bessel.h. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// exp(x^2) erfc(x), which neither vanishes nor overflows for positive x.
LazyTensor erfcx(const LazyTensor& x);
/// The probability that a standard normal variable is below x, accurate in both tails.
LazyTensor ndtr(const LazyTensor& x);
/// The x of which p is ndtr; infinite at 0 and 1, NaN beyond.
LazyTensor ndtri(const LazyTensor& p);
/// log(ndtr(x)), where that is next to 0 or to 1, too.
LazyTensor log_ndtr(const LazyTensor& x);

}  // namespace caldera
