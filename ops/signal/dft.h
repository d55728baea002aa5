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
/// (Bluestein 1970), of a product of 2, 3 and 5, or alone by one of a length that is 1 less (Rader 1968)
/// where that has no such prime. Tables are those of ops/signal/root_tables.h.
LazyTensor dft(const LazyTensor& x, int direction, double scale);

/// dft() of real numbers, (rows, n), in direction -1: the first n / 2 + 1 elements, (rows, 2, n / 2 + 1). Of
/// even n by a complex transform of half the length, whose elements are those of even and of odd places.
LazyTensor real_dft(const LazyTensor& x, double scale);

/// dft() in direction 1 of what real_dft() gives, (rows, 2, n / 2 + 1): n real numbers a row, (rows, n).
/// Imaginary parts of the first element and, of even n, of the last do not count.
LazyTensor real_inverse_dft(const LazyTensor& x, std::int64_t n, double scale);

}  // namespace caldera::ops
