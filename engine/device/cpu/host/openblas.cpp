#include "engine/device/cpu/host/openblas.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "engine/device/cpu/host/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace caldera::cpu {
namespace {

/// Quirk: OpenBLAS 0.3.21 does not know newer cores and falls back to AVX2 kernels on them, at about half the
/// speed: where AVX-512 is there, ask for its AVX-512 kernels, unless the user has chosen.
void choose_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
}

void* open_library() {
  const char* const names[] = {
#ifdef CALDERA_OPENBLAS_PATH
      CALDERA_OPENBLAS_PATH,
#endif
      "libopenblas.so.0", "libopenblas.so"};
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

template <class F>
void find_in_openblas(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

OpenBlas load_openblas() {
  OpenBlas blas;
  const char* wanted = std::getenv("CALDERA_BLAS");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return blas;
  choose_core();
  void* library = open_library();
  if (library != nullptr) {
    find_in_openblas(library, "cblas_sgemm", blas.sgemm);
    find_in_openblas(library, "cblas_dgemm", blas.dgemm);
    find_in_openblas(library, "cblas_sgemv", blas.sgemv);
    find_in_openblas(library, "cblas_dgemv", blas.dgemv);
    find_in_openblas(library, "openblas_set_num_threads", blas.set_num_threads);
  }
  if (!blas.sgemm || !blas.dgemm || !blas.sgemv || !blas.dgemv) {
    std::fputs("caldera: warning: OpenBLAS was not found; matrix products will be slow\n", stderr);
    return {};
  }
  blas.library = library;
  char* (*config)() = nullptr;
  find_in_openblas(library, "openblas_get_config", config);
  if (config != nullptr) blas.config = config();
#ifndef _OPENMP
  // Built without OpenMP: one thread everywhere, in the library as well.
  if (blas.set_num_threads != nullptr) blas.set_num_threads(1);
#endif
  return blas;
}

}  // namespace

const OpenBlas& openblas() {
  static OpenBlas blas = load_openblas();
  return blas;
}

#ifdef _OPENMP
namespace {

/// The number of threads of a library that has one for the whole process.
struct SharedCount {
  std::mutex mutex;
  std::condition_variable left;
  int threads = 0;  // that the library was told
  int inside = 0;   // callers that count on it
};

SharedCount& shared_count() {
  static auto* count = new SharedCount;  // outlives every thread that evaluates
  return *count;
}
thread_local int shared_depth = 0;

void enter(int threads) {
  if (shared_depth++ > 0) return;  // the outer one decides
  SharedCount& count = shared_count();
  std::unique_lock lock(count.mutex);
  count.left.wait(lock, [&] { return count.inside == 0 || count.threads == threads; });
  if (count.threads != threads) openblas().set_num_threads(threads);
  count.threads = threads;
  ++count.inside;
}

void leave() {
  if (--shared_depth > 0) return;
  SharedCount& count = shared_count();
  const std::lock_guard lock(count.mutex);
  if (--count.inside == 0) count.left.notify_all();
}

/// The OpenMP build of OpenBLAS kFollows the calling thread's OpenMP setting; other builds have their own.
bool follows_openmp() {
  static const bool kFollows = openblas().config.find("USE_OPENMP") != std::string::npos;
  return kFollows;
}

}  // namespace

BlasThreads::BlasThreads(int threads) : team_(threads) {
  if (threads > 1) AwakeTeam::rest();
  if (!follows_openmp()) {
    if (openblas().set_num_threads != nullptr) enter(threads);
    return;
  }
  const int now = omp_get_max_threads();
  if (now == threads) return;
  before_ = now;
  omp_set_num_threads(threads);
}

BlasThreads::~BlasThreads() {
  if (before_ > 0) omp_set_num_threads(before_);
  if (!follows_openmp() && openblas().set_num_threads != nullptr) leave();
}
#else
BlasThreads::BlasThreads(int) : team_(1) {}
BlasThreads::~BlasThreads() = default;
#endif

}  // namespace caldera::cpu
