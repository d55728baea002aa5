// The discrete Fourier transform along the last axis. Private to ops/.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Rows of complex numbers, (rows, 1 or 2, n): real parts, and imaginary ones where there are any, of f32 or
/// f64. The result is `scale` times the sums of x[j] exp(direction 2 pi i j k / n), (rows, 2, n); direction
/// is -1 or 1.
///
/// Mixed radix (Cooley and Tukey 1965): n is a product of factors of at most 64 where its primes allow, each
/// of which is a product with the matrix of a short transform, real and imaginary parts as one; between them
/// stand products with powers of a root of unity. Primes above 256 go together by convolution with a chirp
/// (Bluestein 1970), of a product of 2, 3 and 5. Tables are made in double, of angles reduced to an eighth of
/// a turn.
LazyTensor dft(const LazyTensor& x, int direction, double scale);

}  // namespace caldera::ops
