// The routines of MatrixSolver for general matrices: LU factors, eigenvalues, the exponential.
#include <array>
#include <complex>
#include <numeric>

#include "engine/device/cpu/lapack/dense.h"
#include "engine/device/cpu/lapack/matrix_solver.h"

namespace caldera::cpu {

template <class T>
std::string MatrixSolver<T>::lu(T* out) {
  const int m = p_.m, n = p_.n, least = std::min(m, n), stride = stride_of(m);
  integers_.resize(static_cast<std::size_t>(least));
  int info = 0;  // a pivot that is 0 leaves factors all the same
  if (least > 0) lapack_.getrf(&m, &n, a_.data(), &stride, integers_.data(), &info);
  out = store(a_, m, n, out);
  std::iota(out, out + m, T(0));
  for (int i = 0; i < least; ++i) std::swap(out[i], out[integers_[static_cast<std::size_t>(i)] - 1]);
  std::copy_n(integers_.begin(), least, out + m);
  return {};
}

template <class T>
std::string MatrixSolver<T>::exchanges(T* out) {
  const int n = p_.m;
  std::iota(out, out + n, T(0));
  for (int i = 0; i < n; ++i) {
    const T to = a_[static_cast<std::size_t>(i)];
    if (!(to >= 1 && to <= static_cast<T>(n)))
      return "has pivot " + std::to_string(to) + " for its row " + std::to_string(i) + ", want 1 to " +
             std::to_string(n);
    std::swap(out[i], out[static_cast<int>(to) - 1]);
  }
  return {};
}

template <class T>
std::string MatrixSolver<T>::eig(T* out) {
  const int n = p_.n, stride = stride_of(n);
  if (n == 0) return {};
  const auto extent = static_cast<std::size_t>(n);
  s_.resize(2 * extent);  // real and imaginary parts
  vt_.resize(p_.option ? area(n, n) : 1);
  const char job = p_.option ? 'V' : 'N';
  const int unused = 1;
  T* const imaginary = s_.data() + n;
  const int info = with_work([&](T* work, const int* size, int* result) {
    lapack_.geev("N", &job, &n, a_.data(), &stride, s_.data(), imaginary, nullptr, &unused, vt_.data(),
                 p_.option ? &stride : &unused, work, size, result, 1, 1);
  });
  if (info != 0) return "has eigenvalues that do not converge";
  std::vector<int> order(extent);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return s_[static_cast<std::size_t>(i)] != s_[static_cast<std::size_t>(j)]
               ? s_[static_cast<std::size_t>(i)] < s_[static_cast<std::size_t>(j)]
               : imaginary[i] < imaginary[j];
  });
  for (int k = 0; k < n; ++k) {
    const int from = order[static_cast<std::size_t>(k)];
    out[k] = s_[static_cast<std::size_t>(from)];
    out[n + k] = imaginary[from];
  }
  if (!p_.option) return {};
  T* const real_parts = out + 2 * n;
  T* const imaginary_parts = real_parts + area(n, n);
  std::vector<std::complex<T>> vector(extent);
  for (int k = 0; k < n; ++k) {
    // Of a conjugate pair the columns are the real and the imaginary part of the vector of the first, which
    // has the positive imaginary part.
    const int from = order[static_cast<std::size_t>(k)];
    const T side = imaginary[from];
    const T* const re = vt_.data() + area(n, side < 0 ? from - 1 : from);
    for (int i = 0; i < n; ++i)
      vector[static_cast<std::size_t>(i)] = {re[i], side == 0 ? T(0) : side > 0 ? re[n + i] : -re[n + i]};
    const auto largest = std::max_element(vector.begin(), vector.end(), [](const auto& x, const auto& y) {
      return std::norm(x) < std::norm(y);
    });
    const std::complex<T> phase = std::conj(*largest) / std::abs(*largest);
    T square = 0;
    for (std::complex<T>& x : vector) square += std::norm(x);
    const T scale = 1 / std::sqrt(square);
    for (int i = 0; i < n; ++i) {
      const std::complex<T> x = vector[static_cast<std::size_t>(i)] * phase * scale;
      const std::size_t place = area(i, n) + static_cast<std::size_t>(k);
      real_parts[place] = x.real();
      imaginary_parts[place] = side == 0 || i == largest - vector.begin() ? T(0) : x.imag();
    }
  }
  return {};
}

/// Pade's approximation of order 13 of what 2^-k brings to a norm for which it is exact, squared k times
/// (Higham 2005, algorithm 2.3; the coefficients are those of its table).
template <class T>
std::string MatrixSolver<T>::exp(T* out) {
  const int n = p_.n, stride = stride_of(n);
  if (n == 0) return {};
  static constexpr std::array<double, 14> kPade{64764752532480000.0,
                                                32382376266240000.0,
                                                7771770303897600.0,
                                                1187353796428800.0,
                                                129060195264000.0,
                                                10559470521600.0,
                                                670442572800.0,
                                                33522128640.0,
                                                1323241920.0,
                                                40840800.0,
                                                960960.0,
                                                16380.0,
                                                182.0,
                                                1.0};
  constexpr double kNorm = 5.371920351148152;
  const std::size_t size = area(n, n);
  T norm = 0;  // the largest sum over a column
  for (int j = 0; j < n; ++j) {
    T column = 0;
    for (int i = 0; i < n; ++i) column += std::abs(a_[area(j, n) + static_cast<std::size_t>(i)]);
    norm = std::max(norm, column);
  }
  int squarings = 0;
  if (norm > static_cast<T>(kNorm))
    squarings = std::max(0, std::ilogb(static_cast<double>(norm) / kNorm) + 1);
  for (T& x : a_) x = std::ldexp(x, -squarings);
  // Column-major matrices are the transposes of row-major ones; so are their products, in reverse order.
  const auto product = [&](const std::vector<T>& x, const std::vector<T>& y, std::vector<T>& to) {
    to.resize(size);
    multiply_dense(n, n, n, y.data(), false, n, x.data(), false, n, to.data());
  };
  std::vector<T> a2, a4, a6, odd(size), even(size);
  product(a_, a_, a2);
  product(a2, a2, a4);
  product(a4, a2, a6);
  const auto combined = [&](std::size_t first, std::vector<T>& to, bool with_unit) {
    for (std::size_t i = 0; i < size; ++i)
      to[i] = static_cast<T>(kPade.at(first + 6)) * a6[i] + static_cast<T>(kPade.at(first + 4)) * a4[i] +
              static_cast<T>(kPade.at(first + 2)) * a2[i];
    for (int i = 0; with_unit && i < n; ++i) to[area(i, n + 1)] += static_cast<T>(kPade.at(first));
  };
  const auto high = [&](std::size_t first, std::vector<T>& to) {  // a6 (b[first + 4] a6 + ... a2)
    for (std::size_t i = 0; i < size; ++i)
      to[i] = static_cast<T>(kPade.at(first + 4)) * a6[i] + static_cast<T>(kPade.at(first + 2)) * a4[i] +
              static_cast<T>(kPade.at(first)) * a2[i];
  };
  const auto add = [&](std::vector<T>& to, const std::vector<T>& x) {
    for (std::size_t i = 0; i < size; ++i) to[i] += x[i];
  };
  u_.resize(size);
  b_.resize(size);
  high(9, u_);
  product(a6, u_, b_);
  combined(1, odd, true);
  add(odd, b_);
  product(a_, odd, u_);  // u_: the odd powers
  high(8, odd);
  product(a6, odd, b_);
  combined(0, even, true);
  add(even, b_);
  // (even - odd) x = even + odd.
  for (std::size_t i = 0; i < size; ++i) {
    a_[i] = even[i] - u_[i];
    b_[i] = even[i] + u_[i];
  }
  if (const int pivot = factorise(a_))
    return "has an exponential that is out of reach: pivot " + std::to_string(pivot) + " is 0";
  int info = 0;
  lapack_.getrs("N", &n, &n, a_.data(), &stride, integers_.data(), b_.data(), &stride, &info, 1);
  for (int i = 0; i < squarings; ++i) {
    product(b_, b_, a_);
    b_.swap(a_);
  }
  store(b_, n, n, out);
  return {};
}

#define CALDERA_GENERAL_MATRICES(T)                    \
  template std::string MatrixSolver<T>::lu(T*);        \
  template std::string MatrixSolver<T>::exchanges(T*); \
  template std::string MatrixSolver<T>::eig(T*);       \
  template std::string MatrixSolver<T>::exp(T*);
CALDERA_GENERAL_MATRICES(float)
CALDERA_GENERAL_MATRICES(double)
#undef CALDERA_GENERAL_MATRICES

}  // namespace caldera::cpu
