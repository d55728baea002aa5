// FixedTensor: a small dense tensor on the stack, whose extents are part of its type. Everything but the
// roots in norms is constexpr, and those are when the compiler evaluates them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/typed/fixed_lanes.h"

namespace caldera {

/// A type that FixedTensor holds: the compiler has vectors of it.
template <class T>
concept FixedElement = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t>;

namespace detail {
struct Unset {};
}  // namespace detail

/// FixedTensor<float, 3, 3>: nine floats, row-major. A value type, zero at first. Operators are element by
/// element, between equal extents or with a number; products and the like are functions below.
template <FixedElement T, std::size_t... E>
requires(sizeof...(E) > 0 && ((E > 0) && ...)) class FixedTensor {
 public:
  using Element = T;
  static constexpr std::size_t kRank = sizeof...(E);
  static constexpr std::array<std::size_t, kRank> kExtents{E...};
  static constexpr std::size_t kSize = (E * ...);
  /// Counts the elements of a vector of the compiler; behind the last element there is room for one.
  static constexpr std::size_t kLanes = 16 / sizeof(T);

  constexpr FixedTensor() : values_{} {}
  /// Leaves the elements as they are, for who writes all of them.
  explicit FixedTensor(detail::Unset) {  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (std::size_t i = kEnd; i < kRoom; ++i) values_[i] = 0;
  }
  /// Takes the elements in row-major order. Throws ShapeError for another number of them, which is an error
  /// of compilation where the compiler evaluates it.
  constexpr FixedTensor(std::initializer_list<T> values)
      : FixedTensor(std::span(values.begin(), values.size())) {}
  constexpr explicit FixedTensor(std::span<const T> values) : values_{} {
    if (values.size() != kSize) throw ShapeError("FixedTensor: give as many values as it has elements");
    std::copy(values.begin(), values.end(), values_.begin());
  }
  static constexpr FixedTensor filled(T value) {
    FixedTensor x;
    for (std::size_t i = 0; i < kSize; ++i) x.values_[i] = value;
    return x;
  }

  /// Reads or writes an element by one index an axis, unchecked when the program runs.
  template <std::integral... I>
  requires(sizeof...(I) == kRank) constexpr T& operator()(I... index) { return values_[at(index...)]; }
  template <std::integral... I>
  requires(sizeof...(I) == kRank) constexpr const T& operator()(I... index) const {
    return values_[at(index...)];
  }

  static constexpr std::size_t size() { return kSize; }
  constexpr T* data() { return values_.data(); }
  constexpr const T* data() const { return values_.data(); }
  constexpr const T* begin() const { return values_.data(); }
  constexpr const T* end() const { return values_.data() + kSize; }
  constexpr std::span<const T, kSize> span() const {
    return std::span<const T, kSize>(values_.data(), kSize);
  }

  constexpr bool operator==(const FixedTensor& other) const {
    return std::equal(begin(), end(), other.begin());
  }

  constexpr FixedTensor& operator+=(const FixedTensor& b) {
    return each(b, [](T x, T y) { return x + y; });
  }
  constexpr FixedTensor& operator-=(const FixedTensor& b) {
    return each(b, [](T x, T y) { return x - y; });
  }
  constexpr FixedTensor& operator*=(const FixedTensor& b) {
    return each(b, [](T x, T y) { return x * y; });
  }
  constexpr FixedTensor& operator/=(const FixedTensor& b) {
    return each(b, [](T x, T y) { return x / y; });
  }
  friend constexpr FixedTensor operator+(FixedTensor a, const FixedTensor& b) { return a += b; }
  friend constexpr FixedTensor operator-(FixedTensor a, const FixedTensor& b) { return a -= b; }
  friend constexpr FixedTensor operator*(FixedTensor a, const FixedTensor& b) { return a *= b; }
  friend constexpr FixedTensor operator/(FixedTensor a, const FixedTensor& b) { return a /= b; }
  friend constexpr FixedTensor operator*(FixedTensor a, T b) { return a *= filled(b); }
  friend constexpr FixedTensor operator*(T a, FixedTensor b) { return b *= filled(a); }
  friend constexpr FixedTensor operator/(FixedTensor a, T b) { return a /= filled(b); }
  friend constexpr FixedTensor operator+(FixedTensor a, T b) { return a += filled(b); }
  friend constexpr FixedTensor operator-(FixedTensor a, T b) { return a -= filled(b); }
  friend constexpr FixedTensor operator-(const FixedTensor& a) { return FixedTensor() - a; }

 private:
  template <std::integral... I>
  static constexpr std::size_t at(I... index) {
    std::size_t place = 0, axis = 0;
    ((place = place * kExtents[axis++] + static_cast<std::size_t>(index)), ...);
    return place;
  }
  template <class F>
  constexpr FixedTensor& each(const FixedTensor& b, F f) {
    for (std::size_t i = 0; i < kSize; ++i) values_[i] = static_cast<T>(f(values_[i], b.values_[i]));
    return *this;
  }

  /// A row's last vector may reach behind the row.
  static constexpr std::size_t kRow = kExtents[kRank - 1];
  static constexpr std::size_t kEnd = kSize - kRow + (kRow + kLanes - 1) / kLanes * kLanes;
  static constexpr std::size_t kRoom = (kEnd + kLanes - 1) / kLanes * kLanes;
  alignas(16) std::array<T, kRoom> values_;
};

template <FixedElement T, std::size_t R, std::size_t C>
using FixedMatrix = FixedTensor<T, R, C>;
template <FixedElement T, std::size_t N>
using FixedVector = FixedTensor<T, N>;

namespace detail {

template <class T>
constexpr T constant_root(T x) {
  if (!(x > 0)) return x;
  T root = x > 1 ? x : T(1);
  for (int i = 0; i < 200; ++i) {  // Newton's steps, from above, until they no longer fall
    const T next = (root + x / root) / 2;
    if (!(next < root)) break;
    root = next;
  }
  return root;
}

template <class T>
constexpr T magnitude(T x) {
  return x < 0 ? -x : x;
}

}  // namespace detail

namespace detail {

template <FixedElement T, std::size_t R, std::size_t K, std::size_t C>
constexpr FixedTensor<T, R, C> constant_product(const FixedTensor<T, R, K>& a,
                                                const FixedTensor<T, K, C>& b) {
  FixedTensor<T, R, C> out;
  for (std::size_t i = 0; i < R; ++i)
    for (std::size_t j = 0; j < C; ++j)
      for (std::size_t k = 0; k < K; ++k) out(i, j) += a(i, k) * b(k, j);
  return out;
}

/// Apart from the one above, so that each has one result, which is made where the caller wants it.
template <FixedElement T, std::size_t R, std::size_t K, std::size_t C>
inline FixedTensor<T, R, C> running_product(const FixedTensor<T, R, K>& a, const FixedTensor<T, K, C>& b) {
  FixedTensor<T, R, C> out{Unset()};
  constexpr bool kSquare = R == K && K == C && std::floating_point<T>;
  if constexpr (kSquare && R == 3)
    multiply_3x3(a.data(), b.data(), out.data());
  else if constexpr (kSquare && R == 4)
    multiply_4x4(a.data(), b.data(), out.data());
  else if constexpr (kSquare && R == 8)
    multiply_8x8(a.data(), b.data(), out.data());
  else
    multiply_lanes<R, K, C>(a.data(), b.data(), out.data());
  return out;
}

}  // namespace detail

/// Multiplies matrices (R, K) and (K, C).
template <FixedElement T, std::size_t R, std::size_t K, std::size_t C>
constexpr FixedTensor<T, R, C> matmul(const FixedTensor<T, R, K>& a, const FixedTensor<T, K, C>& b) {
  return std::is_constant_evaluated() ? detail::constant_product(a, b) : detail::running_product(a, b);
}
/// Multiplies a matrix and a column.
template <FixedElement T, std::size_t R, std::size_t K>
constexpr FixedTensor<T, R> matmul(const FixedTensor<T, R, K>& a, const FixedTensor<T, K>& x) {
  FixedTensor<T, R> out;
  for (std::size_t i = 0; i < R; ++i) {
    T sum = 0;
    for (std::size_t k = 0; k < K; ++k) sum += a(i, k) * x(k);
    out(i) = sum;
  }
  return out;
}

template <FixedElement T, std::size_t R, std::size_t C>
constexpr FixedTensor<T, C, R> transpose(const FixedTensor<T, R, C>& a) {
  FixedTensor<T, C, R> out;
  for (std::size_t i = 0; i < R; ++i)
    for (std::size_t j = 0; j < C; ++j) out(j, i) = a(i, j);
  return out;
}

template <FixedElement T, std::size_t N>
constexpr FixedTensor<T, N, N> fixed_identity() {
  FixedTensor<T, N, N> out;
  for (std::size_t i = 0; i < N; ++i) out(i, i) = 1;
  return out;
}

/// Adds up the products of elements.
template <FixedElement T, std::size_t... E>
constexpr T dot(const FixedTensor<T, E...>& a, const FixedTensor<T, E...>& b) {
  T sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}
template <FixedElement T, std::size_t... E>
constexpr T sum(const FixedTensor<T, E...>& a) {
  T total = 0;
  for (const T x : a) total += x;
  return total;
}
/// Returns the Euclidean norm of all elements, Frobenius' of a matrix.
template <std::floating_point T, std::size_t... E>
constexpr T norm(const FixedTensor<T, E...>& a) {
  const T squares = dot(a, a);
  return std::is_constant_evaluated() ? detail::constant_root(squares) : std::sqrt(squares);
}
/// Returns the sum of the magnitudes of all elements.
template <FixedElement T, std::size_t... E>
constexpr T norm_1(const FixedTensor<T, E...>& a) {
  T total = 0;
  for (const T x : a) total += detail::magnitude(x);
  return total;
}
/// Returns the largest magnitude.
template <FixedElement T, std::size_t... E>
constexpr T norm_max(const FixedTensor<T, E...>& a) {
  T most = 0;
  for (const T x : a) most = std::max(most, detail::magnitude(x));
  return most;
}
template <FixedElement T>
constexpr FixedTensor<T, 3> cross(const FixedTensor<T, 3>& a, const FixedTensor<T, 3>& b) {
  return {a(1) * b(2) - a(2) * b(1), a(2) * b(0) - a(0) * b(2), a(0) * b(1) - a(1) * b(0)};
}
template <FixedElement T, std::size_t N>
constexpr T trace(const FixedTensor<T, N, N>& a) {
  T total = 0;
  for (std::size_t i = 0; i < N; ++i) total += a(i, i);
  return total;
}

/// Returns the determinant: by its formula up to 3 rows, above by elimination with the largest pivots.
template <FixedElement T, std::size_t N>
constexpr T determinant(FixedTensor<T, N, N> a) {
  if constexpr (N == 1) return a(0, 0);
  if constexpr (N == 2) return a(0, 0) * a(1, 1) - a(0, 1) * a(1, 0);
  if constexpr (N == 3)
    return a(0, 0) * (a(1, 1) * a(2, 2) - a(1, 2) * a(2, 1)) -
           a(0, 1) * (a(1, 0) * a(2, 2) - a(1, 2) * a(2, 0)) +
           a(0, 2) * (a(1, 0) * a(2, 1) - a(1, 1) * a(2, 0));
  static_assert(N <= 3 || std::floating_point<T>, "determinant: integers have one up to 3 rows; use floats");
  T product = 1;
  for (std::size_t k = 0; k < N; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < N; ++i)
      if (detail::magnitude(a(i, k)) > detail::magnitude(a(pivot, k))) pivot = i;
    if (a(pivot, k) == 0) return 0;
    if (pivot != k) {
      product = -product;
      for (std::size_t j = k; j < N; ++j) std::swap(a(k, j), a(pivot, j));
    }
    product *= a(k, k);
    for (std::size_t i = k + 1; i < N; ++i) {
      const T factor = a(i, k) / a(k, k);
      for (std::size_t j = k + 1; j < N; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return product;
}

namespace detail {

/// Returns the adjugate over the determinant.
template <std::floating_point T, std::size_t N>
requires(N <= 3) constexpr FixedTensor<T, N, N> inverse_by_formula(const FixedTensor<T, N, N>& a, T det) {
  if constexpr (N == 1) return {1 / det};
  if constexpr (N == 2) return FixedTensor<T, 2, 2>{a(1, 1), -a(0, 1), -a(1, 0), a(0, 0)} / det;
  if constexpr (N == 3)
    return FixedTensor<T, 3, 3>{a(1, 1) * a(2, 2) - a(1, 2) * a(2, 1), a(0, 2) * a(2, 1) - a(0, 1) * a(2, 2),
                                a(0, 1) * a(1, 2) - a(0, 2) * a(1, 1), a(1, 2) * a(2, 0) - a(1, 0) * a(2, 2),
                                a(0, 0) * a(2, 2) - a(0, 2) * a(2, 0), a(0, 2) * a(1, 0) - a(0, 0) * a(1, 2),
                                a(1, 0) * a(2, 1) - a(1, 1) * a(2, 0), a(0, 1) * a(2, 0) - a(0, 0) * a(2, 1),
                                a(0, 0) * a(1, 1) - a(0, 1) * a(1, 0)} /
           det;
}

/// Takes a matrix whose determinant is beyond the numbers of its type, or 0: scaled, it has one, unless it is
/// singular.
template <std::floating_point T, std::size_t N>
constexpr FixedTensor<T, N, N> inverse_of_scaled(const FixedTensor<T, N, N>& a) {
  const T most = norm_max(a);
  T scale = 1;  // a power of two, which rounds nothing
  while (most * scale >= 2) scale /= 2;
  while (most * scale < 1 && scale < std::numeric_limits<T>::max() / 4) scale *= 2;
  const FixedTensor<T, N, N> scaled = a * scale;
  const T det = determinant(scaled);
  if (det == 0) throw ValueError("inverse: the matrix is singular");
  return inverse_by_formula(scaled, det) * scale;
}

}  // namespace detail

/// Returns the inverse: by its formula up to 3 rows, above by Gauss and Jordan's elimination with the largest
/// pivots. Throws ValueError for a singular matrix, which is an error of compilation where the compiler
/// evaluates it.
template <std::floating_point T, std::size_t N>
constexpr FixedTensor<T, N, N> inverse(FixedTensor<T, N, N> a) {
  if constexpr (N <= 3) {
    const T det = determinant(a), size = detail::magnitude(det);
    if (!(size >= std::numeric_limits<T>::min() && size <= std::numeric_limits<T>::max()))
      return detail::inverse_of_scaled(a);
    return detail::inverse_by_formula(a, det);
  } else {
    FixedTensor<T, N, N> out = fixed_identity<T, N>();
    for (std::size_t k = 0; k < N; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < N; ++i)
        if (detail::magnitude(a(i, k)) > detail::magnitude(a(pivot, k))) pivot = i;
      if (a(pivot, k) == 0) throw ValueError("inverse: the matrix is singular");
      for (std::size_t j = 0; pivot != k && j < N; ++j) {
        std::swap(a(k, j), a(pivot, j));
        std::swap(out(k, j), out(pivot, j));
      }
      const T divisor = a(k, k);  // of which there may be no reciprocal
      for (std::size_t j = 0; j < N; ++j) a(k, j) /= divisor, out(k, j) /= divisor;
      for (std::size_t i = 0; i < N; ++i) {
        if (i == k) continue;
        const T factor = a(i, k);
        for (std::size_t j = 0; j < N; ++j) a(i, j) -= factor * a(k, j), out(i, j) -= factor * out(k, j);
      }
    }
    return out;
  }
}

}  // namespace caldera
