// The inner loops of convolutions. Private to engine/device/cpu/.
#pragma once

#include <cstdint>

namespace caldera::cpu {

/// Holds them for f32 or f64, for the instruction set of this processor.
template <class T>
struct ConvolutionOps {
  std::int64_t rows;     // of a tile at most
  std::int64_t columns;  // of a tile: two vectors
  /// c[r, j] = sum over k of a[r, k] b[k, j], or that added, for `rows` rows and all columns of a tile. Rows
  /// are `a_row`, `b_row` (aligned to vectors) and `c_row` elements apart.
  void (*tile)(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, const T* b,
               std::int64_t b_row, T* c, std::int64_t c_row, bool add);
  /// Computes the same of a whose columns are `a_row` elements apart, and rows one: a[r + k * a_row].
  void (*tile_across)(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, const T* b,
                      std::int64_t b_row, T* c, std::int64_t c_row, bool add);
  /// c[r, j] = sum over k of a[r, k] b[offsets[k] + j], of any alignment.
  void (*tile_at)(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, const T* b,
                  const std::int64_t* offsets, T* c, std::int64_t c_row);
  /// out[r * out_row + j] += sum over n < images and i < count (a multiple of a vector) of a[n * a_image + r
  /// * a_row + i] b[n * b_image + offsets[j] + i], for r < rows <= dot_rows and j < 4.
  void (*dots)(std::int64_t rows, std::int64_t images, std::int64_t count, const T* a, std::int64_t a_image,
               std::int64_t a_row, const T* b, std::int64_t b_image, const std::int64_t* offsets, T* out,
               std::int64_t out_row);
  std::int64_t dot_rows;
  /// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns.
  void (*transpose)(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t from_row, T* to,
                    std::int64_t to_row);
  /// y[i] = sum over k of factors[k] x[offsets[k] + i] for i < count, a multiple of `columns`.
  void (*weighted_sum)(std::int64_t count, std::int64_t k, const T* factors, const T* x,
                       const std::int64_t* offsets, T* y);
  /// y[i] += factor * x[i * step].
  void (*add_scaled)(std::int64_t count, T factor, const T* x, std::int64_t step, T* y);
  /// The sum of x[i * step] * y[i].
  T (*dot)(std::int64_t count, const T* x, std::int64_t step, const T* y);
};

template <class T>
const ConvolutionOps<T>& convolution_ops();

/// Rows of `count` that a tile takes, so that all tiles have nearly the same number.
inline std::int64_t even_rows(std::int64_t count, std::int64_t most) {
  const std::int64_t tiles = (count + most - 1) / most;
  return tiles == 0 ? 1 : (count + tiles - 1) / tiles;
}

}  // namespace caldera::cpu
