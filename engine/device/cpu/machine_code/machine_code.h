// Machine code of programs over rows: made once they are hot, kept as long as they are.
//
// The same operations in the same order as the interpreter's, so that it does not matter for results which of
// the two ran, nor when one took over from the other. Where a program has something that machine code lacks,
// or the machine lacks AVX2, forbids new code or was built without AsmJit, the interpreter goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/device/cpu/machine_code/row_routine.h"

namespace caldera::cpu {

enum class MachineCodeUse : std::uint8_t { never, when_hot, always };

/// From CALDERA_MACHINE_CODE (0, 1, 2; 1 where it is unset) until it is set. Any thread.
MachineCodeUse machine_code_use();
void set_machine_code_use(MachineCodeUse use);

/// Names what machine code is made for: "avx512" or "avx2", or empty where none can be made.
std::string machine_code_set();

/// Counts since the process started.
struct MachineCodeStats {
  std::uint64_t compiled = 0;
  std::uint64_t refused = 0;      // programs that the interpreter keeps
  std::uint64_t bytes = 0;        // of code, now
  std::uint64_t nanoseconds = 0;  // that compiling took
};
MachineCodeStats machine_code_stats();

/// Says which function of a program is meant.
enum class CodeVersion : std::uint8_t {
  plain,
  far,        // of several walks: operands' next rows are asked for
  streaming,  // results go past the caches
  part,       // reductions end as partial results (RowRoutine::stores_wide)
};

/// The machine code of one program, which is compiled for the instruction set that the interpreter's
/// functions had been chosen for when it was constructed. Thread-safe.
class MachineCode {
 public:
  MachineCode();
  ~MachineCode();
  MachineCode(const MachineCode&) = delete;
  MachineCode& operator=(const MachineCode&) = delete;

  /// Counts the code that there is by now.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  /// The function, if there is one by now. `nanoseconds`: what interpreting takes this time; once enough of
  /// it has come together, `describe` is called for the program.
  template <class Describe>
  RowFunction find(double nanoseconds, const Describe& describe, CodeVersion which = CodeVersion::plain) {
    const MachineCodeUse use = machine_code_use();
    if (use == MachineCodeUse::never) return nullptr;
    Version& version = versions_[static_cast<std::size_t>(which)];
    if (RowFunction function = version.function.load(std::memory_order_acquire)) return function;
    if (version.is_refused.load(std::memory_order_relaxed) || !is_due(use, nanoseconds)) return nullptr;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (use == MachineCodeUse::always)
      lock.lock();
    else if (!lock.try_lock())
      return nullptr;
    if (version.function.load(std::memory_order_relaxed) == nullptr && !version.is_refused)
      compile(version, describe());
    return version.function.load(std::memory_order_relaxed);
  }

 private:
  struct Version {
    std::atomic<RowFunction> function{nullptr};
    std::atomic<bool> is_refused{false};
  };
  bool is_due(MachineCodeUse use, double nanoseconds);
  void compile(Version& version, const RowRoutine& routine);

  std::int64_t targets_;  // Highway's
  std::atomic<std::int64_t> heat_{0};
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  Version versions_[4];
};

}  // namespace caldera::cpu
