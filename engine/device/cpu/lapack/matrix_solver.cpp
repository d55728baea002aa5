#include "engine/device/cpu/lapack/matrix_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/lapack/dense.h"

namespace caldera::cpu {
namespace {

template <class T>
void set_identity(std::vector<T>& a, int n) {
  a.assign(area(n, n), T(0));
  for (int i = 0; i < n; ++i) a[area(i, n + 1)] = T(1);
}

/// Whether a column's element largest in magnitude, the first of equals, is negative.
template <class T>
bool points_down(const T* column, int rows) {
  const T* largest =
      std::max_element(column, column + rows, [](T x, T y) { return std::abs(x) < std::abs(y); });
  return rows > 0 && *largest < 0;
}

template <class T>
void negate(T* first, int count, std::size_t stride) {
  for (int i = 0; i < count; ++i) first[static_cast<std::size_t>(i) * stride] *= T(-1);
}

std::string singular(int pivot) {
  return "is singular: pivot " + std::to_string(pivot) + " of its LU factorisation is 0";
}

}  // namespace

template <class T>
MatrixSolver<T>::MatrixSolver(const MatrixProblem& problem) : p_(problem), lapack_(lapack<T>()) {}

template <class T>
std::string MatrixSolver<T>::run(const StridedMatrix<T>& a, const StridedMatrix<T>& b, T* out) {
  const bool finite = load_dense(a, p_.m, p_.n, a_);
  if (!finite && p_.routine != MatrixRoutine::solve_triangular) {
    // Some routines of LAPACK would not end.
    std::fill_n(out, result_size(p_.routine, p_.option, p_.m, p_.n, p_.k),
                std::numeric_limits<T>::quiet_NaN());
    return {};
  }
  switch (p_.routine) {
    case MatrixRoutine::cholesky:
      return cholesky(out);
    case MatrixRoutine::solve:
      return solve(b, out);
    case MatrixRoutine::solve_triangular:
      return solve_triangular(b, out);
    case MatrixRoutine::inv:
      return inv(out);
    case MatrixRoutine::det:
    case MatrixRoutine::slogdet:
      return det(out);
    case MatrixRoutine::cofactor:
      return cofactor(out);
    case MatrixRoutine::qr:
      return qr(out);
    case MatrixRoutine::svd:
      return svd(out);
    case MatrixRoutine::svdvals:
      return svdvals(out);
    case MatrixRoutine::eigh:
    case MatrixRoutine::eigvalsh:
      return eigh(out);
    case MatrixRoutine::pinv:
      return pinv(out);
    case MatrixRoutine::lu:
      return lu(out);
    case MatrixRoutine::exchanges:
      return exchanges(out);
    case MatrixRoutine::eig:
      return eig(out);
    case MatrixRoutine::exp:
      return exp(out);
  }
  return {};
}

template <class T>
std::string MatrixSolver<T>::cholesky(T* out) {
  const int n = p_.n, stride = stride_of(n);
  int info = 0;
  lapack_.potrf("L", &n, a_.data(), &stride, &info, 1);
  if (info > 0)
    return "is not positive definite: its leading minor of order " + std::to_string(info) +
           " is not positive";
  for (int j = 1; j < n; ++j) std::fill_n(a_.begin() + static_cast<std::ptrdiff_t>(area(j, n)), j, T(0));
  store(a_, n, n, out);
  return {};
}

template <class T>
int MatrixSolver<T>::factorise(std::vector<T>& a) {
  const int n = p_.n, stride = stride_of(n);
  integers_.resize(static_cast<std::size_t>(n));
  int info = 0;
  lapack_.getrf(&n, &n, a.data(), &stride, integers_.data(), &info);
  return info;
}

template <class T>
std::string MatrixSolver<T>::solve(const StridedMatrix<T>& b, T* out) {
  const int n = p_.n, stride = stride_of(n);
  if (const int pivot = factorise(a_)) return singular(pivot);
  load_dense(b, n, p_.k, b_);
  int info = 0;
  lapack_.getrs("N", &n, &p_.k, a_.data(), &stride, integers_.data(), b_.data(), &stride, &info, 1);
  store(b_, n, p_.k, out);
  return {};
}

template <class T>
std::string MatrixSolver<T>::solve_triangular(const StridedMatrix<T>& b, T* out) {
  const int n = p_.n, stride = stride_of(n);
  load_dense(b, n, p_.k, b_);
  int info = 0;
  lapack_.trtrs(p_.option ? "U" : "L", "N", "N", &n, &p_.k, a_.data(), &stride, b_.data(), &stride, &info, 1,
                1, 1);
  if (info > 0) return "is singular: element " + std::to_string(info) + " of its diagonal, from 1, is 0";
  store(b_, n, p_.k, out);
  return {};
}

template <class T>
std::string MatrixSolver<T>::inv(T* out) {
  const int n = p_.n, stride = stride_of(n);
  if (const int pivot = factorise(a_)) return singular(pivot);
  const int info = with_work([&](T* work, const int* size, int* result) {
    lapack_.getri(&n, a_.data(), &stride, integers_.data(), work, size, result);
  });
  if (info > 0) return singular(info);
  store(a_, n, n, out);
  return {};
}

template <class T>
bool MatrixSolver<T>::is_odd_permutation() const {
  bool odd = false;
  for (int i = 0; i < p_.n; ++i) odd ^= integers_[static_cast<std::size_t>(i)] != i + 1;
  return odd;
}

template <class T>
std::string MatrixSolver<T>::det(T* out) {
  const bool is_singular = factorise(a_) > 0;
  const bool as_logarithm = p_.routine == MatrixRoutine::slogdet;
  T sign = is_odd_permutation() ? T(-1) : T(1);
  T product = sign, logarithm = 0;
  for (int i = 0; i < p_.n; ++i) {
    const T pivot = a_[area(i, p_.n + 1)];
    if (as_logarithm) logarithm += std::log(std::abs(pivot));
    product *= pivot;
    if (pivot < 0) sign = -sign;
  }
  if (as_logarithm) {
    out[0] = is_singular ? T(0) : sign;
    out[1] = is_singular ? -std::numeric_limits<T>::infinity() : logarithm;
  } else {
    out[0] = is_singular ? T(0) : product;
  }
  return {};
}

template <class T>
T MatrixSolver<T>::orientation(std::vector<T>& orthogonal) {
  factorise(orthogonal);
  bool negative = is_odd_permutation();
  for (int i = 0; i < p_.n; ++i) negative ^= orthogonal[area(i, p_.n + 1)] < 0;
  return negative ? T(-1) : T(1);
}

template <class T>
std::string MatrixSolver<T>::decompose(char job) {
  const int m = p_.m, n = p_.n, least = std::min(m, n);
  const int columns = job == 'A' ? m : least;  // of u
  const int rows = job == 'A' ? n : least;     // of vt
  s_.resize(static_cast<std::size_t>(least));
  if (job != 'N') {
    u_.resize(area(m, columns));
    vt_.resize(area(rows, n));
  }
  if (least == 0) {
    if (job == 'A') {
      set_identity(u_, m);
      set_identity(vt_, n);
    }
    return {};
  }
  integers_.resize(8 * static_cast<std::size_t>(least));
  const int m_stride = stride_of(m), vt_stride = stride_of(job == 'N' ? 1 : rows);
  const int info = with_work([&](T* work, const int* size, int* result) {
    lapack_.gesdd(&job, &m, &n, a_.data(), &m_stride, s_.data(), u_.data(), &m_stride, vt_.data(), &vt_stride,
                  work, size, integers_.data(), result, 1);
  });
  return info == 0 ? "" : "has singular values that do not converge";
}

template <class T>
std::string MatrixSolver<T>::svd(T* out) {
  const int m = p_.m, n = p_.n, least = std::min(m, n);
  if (std::string why = decompose(p_.option ? 'A' : 'S'); !why.empty()) return why;
  const int columns = p_.option ? m : least;
  const int rows = p_.option ? n : least;
  for (int i = 0; i < least; ++i) {
    T* column = u_.data() + area(i, m);
    if (!points_down(column, m)) continue;
    negate(column, m, 1);
    negate(vt_.data() + i, n, static_cast<std::size_t>(rows));
  }
  out = store(u_, m, columns, out);
  out = std::copy(s_.begin(), s_.end(), out);
  store(vt_, rows, n, out);
  return {};
}

template <class T>
std::string MatrixSolver<T>::svdvals(T* out) {
  std::string why = decompose('N');
  if (why.empty()) std::copy(s_.begin(), s_.end(), out);
  return why;
}

template <class T>
std::string MatrixSolver<T>::pinv(T* out) {
  const int m = p_.m, n = p_.n, least = std::min(m, n);
  if (std::string why = decompose('S'); !why.empty()) return why;
  if (least == 0) return {};
  const auto tolerance = static_cast<T>(p_.tolerance);
  const T cut = tolerance < 0 ? -tolerance : s_[0] * tolerance;
  for (int i = 0; i < least; ++i) {
    const T s = s_[static_cast<std::size_t>(i)];
    const T factor = s > cut ? 1 / s : T(0);
    T* column = u_.data() + area(i, m);
    for (int j = 0; j < m; ++j) column[j] *= factor;
  }
  // As row-major matrices vt_ is v (n, least) and u_ is u^T (least, m).
  multiply_dense(n, m, least, vt_.data(), false, least, u_.data(), false, m, out);
  return {};
}

/// d det(u diag(s) vt) / d a = det(u) det(vt) u diag(products of the other s) vt.
template <class T>
std::string MatrixSolver<T>::cofactor(T* out) {
  const int n = p_.n;
  if (std::string why = decompose('S'); !why.empty()) return why;
  b_ = u_;
  T after = orientation(b_);
  b_ = vt_;
  after *= orientation(b_);
  const auto scale = [&](int i, T factor) {
    T* column = u_.data() + area(i, n);
    for (int j = 0; j < n; ++j) column[j] *= factor;
  };
  T before = 1;
  for (int i = 0; i < n; ++i) {
    scale(i, before);
    before *= s_[static_cast<std::size_t>(i)];
  }
  for (int i = n; i-- > 0;) {
    scale(i, after);
    after *= s_[static_cast<std::size_t>(i)];
  }
  if (n > 0) multiply_dense(n, n, n, u_.data(), true, n, vt_.data(), true, n, out);
  return {};
}

template <class T>
std::string MatrixSolver<T>::qr(T* out) {
  const int m = p_.m, n = p_.n, least = std::min(m, n), stride = stride_of(m);
  const int columns = p_.option ? m : least;  // of q
  s_.resize(static_cast<std::size_t>(least));
  if (least > 0) {
    with_work([&](T* work, const int* size, int* result) {
      lapack_.geqrf(&m, &n, a_.data(), &stride, s_.data(), work, size, result);
    });
  }
  // r: what stands on and above the diagonal; q is made of the rest.
  b_.assign(area(columns, n), T(0));
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i <= std::min(j, least - 1); ++i)
      b_[area(j, columns) + static_cast<std::size_t>(i)] = a_[area(j, m) + static_cast<std::size_t>(i)];
  }
  if (least > 0) {
    u_.assign(area(m, columns), T(0));
    std::copy_n(a_.begin(), area(m, least), u_.begin());
    with_work([&](T* work, const int* size, int* result) {
      lapack_.orgqr(&m, &columns, &least, u_.data(), &stride, s_.data(), work, size, result);
    });
  } else {
    set_identity(u_, columns);
  }
  for (int i = 0; i < least; ++i) {
    if (!(b_[area(i, columns + 1)] < 0)) continue;
    negate(u_.data() + area(i, m), m, 1);
    negate(b_.data() + area(i, columns + 1), n - i, static_cast<std::size_t>(columns));
  }
  out = store(u_, m, columns, out);
  store(b_, columns, n, out);
  return {};
}

template <class T>
std::string MatrixSolver<T>::eigen(char job) {
  const int n = p_.n, stride = stride_of(n);
  s_.resize(static_cast<std::size_t>(n));
  if (n == 0) return {};
  int integers = -1, wanted = 0, info = 0;
  const int query = -1;
  T unused = 0;
  lapack_.syevd(&job, "L", &n, a_.data(), &stride, s_.data(), &unused, &query, &wanted, &integers, &info, 1,
                1);
  integers = std::max(1, wanted);
  integers_.resize(static_cast<std::size_t>(integers));
  info = with_work([&](T* work, const int* size, int* result) {
    lapack_.syevd(&job, "L", &n, a_.data(), &stride, s_.data(), work, size, integers_.data(), &integers,
                  result, 1, 1);
  });
  return info == 0 ? "" : "has eigenvalues that do not converge";
}

template <class T>
std::string MatrixSolver<T>::eigh(T* out) {
  const bool vectors = p_.routine == MatrixRoutine::eigh;
  if (std::string why = eigen(vectors ? 'V' : 'N'); !why.empty()) return why;
  out = std::copy(s_.begin(), s_.end(), out);
  if (!vectors) return {};
  for (int i = 0; i < p_.n; ++i) {
    T* column = a_.data() + area(i, p_.n);
    if (points_down(column, p_.n)) negate(column, p_.n, 1);
  }
  store(a_, p_.n, p_.n, out);
  return {};
}

// Its other members follow from run(), but for those of general_matrices.cpp, which needs one of these.
template MatrixSolver<float>::MatrixSolver(const MatrixProblem&);
template int MatrixSolver<float>::factorise(std::vector<float>&);
template std::string MatrixSolver<float>::run(const StridedMatrix<float>&, const StridedMatrix<float>&,
                                              float*);
template MatrixSolver<double>::MatrixSolver(const MatrixProblem&);
template int MatrixSolver<double>::factorise(std::vector<double>&);
template std::string MatrixSolver<double>::run(const StridedMatrix<double>&, const StridedMatrix<double>&,
                                               double*);

}  // namespace caldera::cpu
