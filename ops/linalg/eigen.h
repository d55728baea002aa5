// Eigenvalues of general matrices, by LAPACK on the CPU. Operands, devices and errors as of
// ops/linalg/linalg.h. Part of ops/ops.h.
//
// They are complex, and real and imaginary parts are tensors of their own here. Eigenvalues are in order of
// their real, then of their imaginary parts; where some are equal there is no gradient.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct EigvalsResult {
  LazyTensor real, imag;
};
/// The eigenvalues of matrices (..., M, M): (..., M).
EigvalsResult eigvals(const LazyTensor& x);

struct EigResult {
  LazyTensor real, imag;                  // eigenvalues (..., M)
  LazyTensor vectors_real, vectors_imag;  // eigenvectors (..., M, M), a column each
};
/// Eigenvalues and eigenvectors, x v = v w. Vectors have length 1, and their element largest in magnitude
/// (the first of equals) is real and positive.
EigResult eig(const LazyTensor& x);

}  // namespace caldera
