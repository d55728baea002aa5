// MatrixSolver: LAPACK's routines for one matrix after another of one size, with the memory that they work
// in.
//
// LAPACK's matrices are column-major. What comes in is copied into such order, from whatever strides it has,
// since the routines destroy it; results are row-major.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/cpu/lapack/dense.h"
#include "engine/device/cpu/lapack/lapack.h"
#include "engine/graph/matrix_routine.h"

namespace caldera::cpu {

struct MatrixProblem {
  MatrixRoutine routine = MatrixRoutine::det;
  bool option = false;
  double tolerance = 0;
  int m = 0, n = 0, k = 0;
};

template <class T>
class MatrixSolver {
 public:
  explicit MatrixSolver(const MatrixProblem& problem);

  /// Writes the results to `out`. Gives why there are none, as the end of a sentence that begins with the
  /// matrix; or nothing, if all is well.
  std::string run(const StridedMatrix<T>& a, const StridedMatrix<T>& b, T* out);

 private:
  std::string cholesky(T* out);
  std::string solve(const StridedMatrix<T>& b, T* out);
  std::string solve_triangular(const StridedMatrix<T>& b, T* out);
  std::string inv(T* out);
  std::string det(T* out);
  std::string cofactor(T* out);
  std::string qr(T* out);
  std::string svd(T* out);
  std::string svdvals(T* out);
  std::string eigh(T* out);
  std::string pinv(T* out);
  std::string lu(T* out);
  std::string exchanges(T* out);
  std::string eig(T* out);
  std::string exp(T* out);

  /// a_ = P L U. Gives the number, from 1, of the first pivot that is 0, or 0.
  int factorise(std::vector<T>& a);
  bool is_odd_permutation() const;
  /// The sign of the determinant of an orthogonal matrix, which is destroyed.
  T orientation(std::vector<T>& orthogonal);
  /// a_ = u_ diag(s_) vt_.
  std::string decompose(char job);
  std::string eigen(char job);
  /// Calls routine(work, lwork, info) with the room that it asks for. Gives info.
  template <class Routine>
  int with_work(const Routine& routine);

  MatrixProblem p_;
  const Lapack<T>& lapack_;
  std::vector<T> a_, b_, u_, s_, vt_, work_;
  std::vector<int> integers_;  // pivots, or what a routine works in
};

template <class T>
template <class Routine>
int MatrixSolver<T>::with_work(const Routine& routine) {
  int info = 0;
  T wanted = 0;
  int size = -1;
  routine(&wanted, &size, &info);
  if (info != 0) return info;
  // The count comes back as a T, which rounds large ones.
  size = std::max(1, static_cast<int>(std::ceil(wanted * (1 + std::numeric_limits<T>::epsilon()))));
  if (work_.size() < static_cast<std::size_t>(size)) work_.resize(static_cast<std::size_t>(size));
  routine(work_.data(), &size, &info);
  return info;
}

}  // namespace caldera::cpu
