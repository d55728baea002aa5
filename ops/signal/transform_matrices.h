// Matrices of short Fourier transforms, of which ops/signal/dft.cpp makes long ones: leaves that are kept
// (ops/signal/root_tables.h), of the type and on the device of `like`.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Returns the real matrix (2 count, parts n) of the first `count` elements of a transform of n, times
/// `scale`; parts is 1 for real elements.
LazyTensor transform_matrix(std::int64_t n, std::int64_t parts, int direction, double scale,
                            const LazyTensor& like, std::int64_t count);

/// Says where the sums of s terms are which go with stage_matrices().
enum class StageSums : std::uint8_t { ahead, behind };

/// Returns the real matrices (s, 2 count, 2 n / s) of a transform in s parts. With sums ahead matrix m gives
/// elements s k + m, k below `count`, of sum m; with sums behind it gives term m of them of elements s j + m.
LazyTensor stage_matrices(std::int64_t n, std::int64_t s, int direction, double scale, const LazyTensor& like,
                          std::int64_t count, StageSums sums);

/// Returns the matrix (n, 2 (n / 2 + 1)) that gives real numbers of the first half of a spectrum: of the
/// other half, which is conjugate, too.
LazyTensor real_of_half_matrix(std::int64_t n, double scale, const LazyTensor& like);

}  // namespace caldera::ops
