// OpenBLAS, opened at run time: its kernel family can then be chosen before it looks at the CPU, and a
// machine without it still works.
#pragma once

#include <string>

#include "engine/device/cpu/host/parallel.h"

namespace caldera::cpu {

/// The functions used, with the C interface's integer constants.
struct OpenBlas {
  static constexpr int kRowMajor = 101;
  static constexpr int kNoTrans = 111;
  static constexpr int kTrans = 112;

  template <class T>
  using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T* a,
                        int lda, const T* b, int ldb, T beta, T* c, int ldc);
  template <class T>
  using Gemv = void (*)(int order, int trans, int m, int n, T alpha, const T* a, int lda, const T* x,
                        int incx, T beta, T* y, int incy);

  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  Gemv<float> sgemv = nullptr;
  Gemv<double> dgemv = nullptr;
  void (*set_num_threads)(int) = nullptr;
  void* library = nullptr;  // its handle, LAPACK included; null when there is none
  std::string config;       // what the library says of itself; empty when there is none

  bool available() const { return sgemm != nullptr; }
};

/// While it lives, products called from this thread use `threads` threads, as a Team where they are several.
/// OpenBLAS itself wakes its team for a few microseconds of work. OpenBLAS may be called from any number of
/// threads under it: its OpenMP build takes the number from the calling thread; other builds have one number
/// for the process, so callers that want another wait until those inside have left.
class BlasThreads {
 public:
  explicit BlasThreads(int threads);
  ~BlasThreads();  // NOLINT(performance-trivially-destructible): it is not, with OpenMP
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  [[maybe_unused]] int before_ = 0;  // 0: nothing to restore; unused without OpenMP
  Team team_;
};

/// Opened at the first call, thread-safe; warns once on stderr when no library is found. CALDERA_BLAS=0 in
/// the environment asks for Caldera's own kernels.
const OpenBlas& openblas();

}  // namespace caldera::cpu
