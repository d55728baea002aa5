#include "engine/device/cpu/machine_code/code_memory.h"

#if CALDERA_HAS_ASMJIT

#include <asmjit/x86.h>

#include <atomic>
#include <cstdio>

#include "engine/device/cpu/machine_code/row_emitter.h"

namespace caldera::cpu {
namespace {

/// Maps each block of code twice: to write, and to execute.
asmjit::JitRuntime& runtime() {
  static auto* made = [] {
    asmjit::JitAllocator::CreateParams parameters{};
    parameters.options = asmjit::JitAllocatorOptions::kUseDualMapping;
    return new asmjit::JitRuntime(&parameters);  // outlives every static tensor
  }();
  return *made;
}

/// Keeps the first error of an emitter, which goes on.
class FirstError final : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char*, asmjit::BaseEmitter*) override {
    if (error_ == asmjit::kErrorOk) error_ = error;
  }
  bool is_set() const { return error_ != asmjit::kErrorOk; }

 private:
  asmjit::Error error_ = asmjit::kErrorOk;
};

/// Whether the system has refused memory for code. It will again, so nothing more is compiled.
std::atomic<bool> is_forbidden{false};

void forbid() {
  if (is_forbidden.exchange(true)) return;
  std::fputs(
      "caldera: warning: the system allows no new machine code; fused kernels are interpreted "
      "(CALDERA_MACHINE_CODE=0 asks for that)\n",
      stderr);
}

}  // namespace

CompiledRows compile_rows(const RowRoutine& routine, bool is_wide) {
  if (is_forbidden.load(std::memory_order_relaxed)) return {};
  asmjit::CodeHolder code;
  FirstError error;
  if (code.init(runtime().environment()) != asmjit::kErrorOk) return {};
  code.setErrorHandler(&error);
  asmjit::x86::Compiler compiler(&code);
  RowEmitter emitter(compiler, is_wide ? VectorSet::avx512 : VectorSet::avx2, routine);
  if (!emitter.run() || error.is_set()) return {};
  if (compiler.finalize() != asmjit::kErrorOk || error.is_set()) return {};
  CompiledRows made;
  if (runtime().add(&made.function, &code) != asmjit::kErrorOk) {
    forbid();
    return {};
  }
  made.bytes = code.codeSize();
  return made;
}

void release_rows(RowFunction function) { runtime().release(function); }

}  // namespace caldera::cpu

#else

namespace caldera::cpu {

CompiledRows compile_rows(const RowRoutine&, bool) { return {}; }
void release_rows(RowFunction) {}

}  // namespace caldera::cpu

#endif
