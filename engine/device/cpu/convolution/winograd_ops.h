// The transforms of Winograd's convolution F(4x4, 3x3), for the lanes of vectors. Private to
// engine/device/cpu/.
#pragma once

#include <cstdint>

namespace caldera::cpu {

/// Computes `vectors` vectors of transforms: element (i, j) of a transform is read at from + i * from_row + j
/// * from_column, and written to to + i * to_row + j * to_column, a vector of neighbours each; vector v is v
/// vectors further on.
using WinogradFn = void (*)(std::int64_t vectors, const float* from, std::int64_t from_row,
                            std::int64_t from_column, float* to, std::int64_t to_row, std::int64_t to_column);

/// Matrices of Lavin and Gray (2015): y = A^T ((G w G^T) * (B^T x B)) A.
struct WinogradOps {
  std::int64_t lanes;
  WinogradFn image;            // B^T x B: 6x6 to 6x6
  WinogradFn weight;           // G w G^T: 3x3 to 6x6
  WinogradFn result;           // A^T m A: 6x6 to 4x4
  WinogradFn result_gradient;  // A y A^T: 4x4 to 6x6
  WinogradFn weight_gradient;  // G^T u G: 6x6 to 3x3
};

const WinogradOps& winograd_ops();

}  // namespace caldera::cpu
