#include "engine/device/cpu/lapack/lapack.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/device/cpu/host/openblas.h"

namespace caldera::cpu {
namespace {

template <class T, class F>
void find_in_lapack(void* library, const char* name, F& function) {
  const std::string symbol = (std::is_same_v<T, float> ? "s" : "d") + std::string(name) + "_";
  function = library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, symbol.c_str()));
  if (function == nullptr) {
    throw Error(
        "linear algebra needs LAPACK's " + symbol +
        ", which was not found: install OpenBLAS with LAPACK (libopenblas0 on Debian), and do not set "
        "CALDERA_BLAS=0");
  }
}

template <class T>
Lapack<T> load_lapack() {
  // Integers of 64 bits would be another calling convention.
  if (openblas().config.find("USE64BITINT") != std::string::npos)
    throw Error("linear algebra needs an OpenBLAS with 32-bit integers, this is " + openblas().config);
  void* const library = openblas().library;
  Lapack<T> out;
  find_in_lapack<T>(library, "potrf", out.potrf);
  find_in_lapack<T>(library, "getrf", out.getrf);
  find_in_lapack<T>(library, "getrs", out.getrs);
  find_in_lapack<T>(library, "getri", out.getri);
  find_in_lapack<T>(library, "trtrs", out.trtrs);
  find_in_lapack<T>(library, "geqrf", out.geqrf);
  find_in_lapack<T>(library, "orgqr", out.orgqr);
  find_in_lapack<T>(library, "gesdd", out.gesdd);
  find_in_lapack<T>(library, "geev", out.geev);
  find_in_lapack<T>(library, "syevd", out.syevd);
  return out;
}

}  // namespace

template <class T>
const Lapack<T>& lapack() {
  static const Lapack<T> kFunctions = load_lapack<T>();
  return kFunctions;
}
template const Lapack<float>& lapack<float>();
template const Lapack<double>& lapack<double>();

}  // namespace caldera::cpu
