// Multiplies small matrices by the compiler's vectors: what FixedTensor's products are made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__clang__)
#define CALDERA_UNROLLED _Pragma("unroll")
#elif defined(__GNUC__)
#define CALDERA_UNROLLED _Pragma("GCC unroll 16")
#else
#define CALDERA_UNROLLED
#endif

namespace caldera::detail {

/// Multiply matrices of 4 or 8 rows and columns with the instruction set of the processor.
void multiply_4x4(const float* a, const float* b, float* out);
void multiply_4x4(const double* a, const double* b, double* out);
void multiply_8x8(const float* a, const float* b, float* out);
void multiply_8x8(const double* a, const double* b, double* out);

template <class T>
struct FixedLanes {
  typedef T Type __attribute__((vector_size(16)));  // NOLINT(modernize-use-using): attributes
};

/// Fills a vector with element `k` of a row of K elements: of rows of four by a shuffle of the row, which is
/// loaded once.
template <class T, std::size_t K>
inline typename FixedLanes<T>::Type everywhere(const T* row, std::size_t k) {
  using Lanes = typename FixedLanes<T>::Type;
  if constexpr (sizeof(T) == 4 && K == 4) {
    typename FixedLanes<std::int32_t>::Type bits;
    __builtin_memcpy(&bits, row, sizeof(bits));
    switch (k) {
      case 0:
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bits, bits, 0, 0, 0, 0));
      case 1:
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bits, bits, 1, 1, 1, 1));
      case 2:
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bits, bits, 2, 2, 2, 2));
      default:
        return reinterpret_cast<Lanes>(__builtin_shufflevector(bits, bits, 3, 3, 3, 3));
    }
  } else {
    return Lanes{} + row[k];
  }
}

/// Computes rows of the product by vectors: each element of a row of `a` times a row of `b`. A row's last
/// vector reaches into the next row, which is written after it, or into the room behind the last.
template <std::size_t R, std::size_t K, std::size_t C, class T>
inline void multiply_lanes(const T* a, const T* b, T* out) {
  using Lanes = typename FixedLanes<T>::Type;
  constexpr std::size_t kLanes = 16 / sizeof(T), kVectors = (C + kLanes - 1) / kLanes;
  CALDERA_UNROLLED
  for (std::size_t i = 0; i < R; ++i) {
    std::array<Lanes, kVectors> sums;
    CALDERA_UNROLLED
    for (std::size_t k = 0; k < K; ++k) {
      const Lanes element = everywhere<T, K>(a + i * K, k);
      CALDERA_UNROLLED
      for (std::size_t v = 0; v < kVectors; ++v) {
        Lanes row;
        __builtin_memcpy(&row, b + k * C + v * kLanes, sizeof(row));
        sums[v] = k == 0 ? row * element : sums[v] + row * element;
      }
    }
    CALDERA_UNROLLED
    for (std::size_t v = 0; v < kVectors; ++v)
      __builtin_memcpy(out + i * C + v * kLanes, &sums[v], sizeof(Lanes));
  }
}

/// Multiply matrices of 3 rows and columns. Vectors are read and written where the ones of other operations
/// lie, not at the rows' beginnings: a processor waits for what is read across two writes.
[[gnu::always_inline]] inline void multiply_3x3(const float* a, const float* b, float* out) {
  using Lanes = FixedLanes<float>::Type;
  std::array<Lanes, 3> r;
  __builtin_memcpy(r.data(), b, sizeof(r));
  const Lanes split = __builtin_shufflevector(r[0], r[1], 3, 3, 4, 5);
  const Lanes rows[] = {r[0], __builtin_shufflevector(split, split, 0, 2, 3, 3),
                        __builtin_shufflevector(r[1], r[2], 2, 3, 4, 4)};
  std::array<Lanes, 3> x;
  CALDERA_UNROLLED
  for (std::size_t i = 0; i < 3; ++i) {
    const auto element = [&](std::size_t k) {
      return everywhere<float, 4>(a + (3 * i + k) / 4 * 4, (3 * i + k) % 4);
    };
    x[i] = element(0) * rows[0] + element(1) * rows[1] + element(2) * rows[2];
  }
  const Lanes turn = __builtin_shufflevector(x[0], x[1], 2, 2, 4, 4);
  const std::array<Lanes, 3> packed{__builtin_shufflevector(x[0], turn, 0, 1, 4, 6),
                                    __builtin_shufflevector(x[1], x[2], 1, 2, 4, 5),
                                    __builtin_shufflevector(x[2], x[2], 2, 2, 2, 2)};
  __builtin_memcpy(out, packed.data(), sizeof(packed));
}
[[gnu::always_inline]] inline void multiply_3x3(const double* a, const double* b, double* out) {
  using Lanes = FixedLanes<double>::Type;
  std::array<Lanes, 5> r;
  __builtin_memcpy(r.data(), b, sizeof(r));
  const Lanes left[] = {r[0], __builtin_shufflevector(r[1], r[2], 1, 2), r[3]},
              right[] = {r[1], __builtin_shufflevector(r[2], r[2], 1, 1), r[4]};
  std::array<Lanes, 3> x, y;  // the first two columns, and the third
  CALDERA_UNROLLED
  for (std::size_t i = 0; i < 3; ++i) {
    const Lanes row[] = {Lanes{} + a[3 * i], Lanes{} + a[3 * i + 1], Lanes{} + a[3 * i + 2]};
    x[i] = row[0] * left[0] + row[1] * left[1] + row[2] * left[2];
    y[i] = row[0] * right[0] + row[1] * right[1] + row[2] * right[2];
  }
  const std::array<Lanes, 5> packed{x[0], __builtin_shufflevector(y[0], x[1], 0, 2),
                                    __builtin_shufflevector(x[1], y[1], 1, 2), x[2],
                                    __builtin_shufflevector(y[2], Lanes{}, 0, 2)};
  __builtin_memcpy(out, packed.data(), sizeof(packed));
}

}  // namespace caldera::detail
