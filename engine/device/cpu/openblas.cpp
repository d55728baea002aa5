#include "engine/device/cpu/openblas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/device/cpu/threads.h"

namespace caldera::cpu {
namespace {

/// OpenBLAS 0.3.21 does not know newer cores and falls back to AVX2 kernels on them, at about half the speed:
/// where AVX-512 is there, ask for its AVX-512 kernels, unless the user has chosen.
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
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

OpenBlas load() {
  OpenBlas blas;
  const char* wanted = std::getenv("CALDERA_BLAS");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return blas;
  choose_core();
  void* library = open_library();
  if (library != nullptr) {
    find(library, "cblas_sgemm", blas.sgemm);
    find(library, "cblas_dgemm", blas.dgemm);
    find(library, "cblas_sgemv", blas.sgemv);
    find(library, "cblas_dgemv", blas.dgemv);
    find(library, "openblas_set_num_threads", blas.set_num_threads);
  }
  if (!blas.sgemm || !blas.dgemm || !blas.sgemv || !blas.dgemv) {
    std::fputs("caldera: warning: OpenBLAS was not found; matrix products will be slow\n", stderr);
    return {};
  }
  char* (*config)() = nullptr;
  find(library, "openblas_get_config", config);
  if (config != nullptr) blas.config = config();
  if (blas.set_num_threads != nullptr) blas.set_num_threads(cpu_threads());
  return blas;
}

}  // namespace

const OpenBlas& openblas() {
  static const OpenBlas blas = load();
  return blas;
}

}  // namespace caldera::cpu
