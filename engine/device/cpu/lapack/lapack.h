// The functions of LAPACK that the CPU backend calls. OpenBLAS brings them: they are taken from where it was
// opened.
#pragma once

#include <cstddef>

namespace caldera::cpu {

/// In Fortran's calling convention: everything by address, and behind the arguments the length of every
/// character. T is float or double.
template <class T>
struct Lapack {
  using Length = std::size_t;
  using In = const int*;
  using Char = const char*;

  void (*potrf)(Char uplo, In n, T* a, In lda, int* info, Length);
  void (*getrf)(In m, In n, T* a, In lda, int* pivots, int* info);
  void (*getrs)(Char trans, In n, In nrhs, const T* a, In lda, In pivots, T* b, In ldb, int* info, Length);
  void (*getri)(In n, T* a, In lda, In pivots, T* work, In lwork, int* info);
  void (*trtrs)(Char uplo, Char trans, Char diag, In n, In nrhs, const T* a, In lda, T* b, In ldb, int* info,
                Length, Length, Length);
  void (*geqrf)(In m, In n, T* a, In lda, T* tau, T* work, In lwork, int* info);
  void (*orgqr)(In m, In n, In k, T* a, In lda, const T* tau, T* work, In lwork, int* info);
  void (*gesdd)(Char jobz, In m, In n, T* a, In lda, T* s, T* u, In ldu, T* vt, In ldvt, T* work, In lwork,
                int* iwork, int* info, Length);
  void (*geev)(Char jobvl, Char jobvr, In n, T* a, In lda, T* wr, T* wi, T* vl, In ldvl, T* vr, In ldvr,
               T* work, In lwork, int* info, Length, Length);
  void (*syevd)(Char jobz, Char uplo, In n, T* a, In lda, T* w, T* work, In lwork, int* iwork, In liwork,
                int* info, Length, Length);
};

/// Looked up at the first call, thread-safe. Throws Error, saying what to install, where the library or one
/// of the functions is missing.
template <class T>
const Lapack<T>& lapack();

}  // namespace caldera::cpu
