#include "engine/device/cpu/machine_code/machine_code.h"

#include <hwy/targets.h>

#include <chrono>

#include "engine/device/cpu/machine_code/code_memory.h"
#include "engine/device/environment.h"

namespace caldera::cpu {
namespace {

/// Interpretation that is worth compiling: what compiling takes, about.
constexpr std::int64_t kHotNanoseconds = 200'000;

std::atomic<std::uint8_t>& use_setting() {
  static std::atomic<std::uint8_t> use{
      static_cast<std::uint8_t>(environment_number("CALDERA_MACHINE_CODE", 1, 0, 2))};
  return use;
}

std::atomic<std::uint64_t> compiled_count{0}, refused_count{0}, byte_count{0}, nanosecond_count{0};

#if CALDERA_HAS_ASMJIT
/// The best of Highway's targets, whose bits are lower the better they are.
bool is_avx512(std::int64_t targets) { return (targets & -targets) < HWY_AVX2; }
bool is_avx2(std::int64_t targets) { return (targets & -targets) <= HWY_AVX2; }
#else
bool is_avx512(std::int64_t) { return false; }
bool is_avx2(std::int64_t) { return false; }
#endif

}  // namespace

MachineCodeUse machine_code_use() {
  return static_cast<MachineCodeUse>(use_setting().load(std::memory_order_relaxed));
}
void set_machine_code_use(MachineCodeUse use) { use_setting() = static_cast<std::uint8_t>(use); }

std::string machine_code_set() {
  const std::int64_t targets = hwy::SupportedTargets();
  return !is_avx2(targets) ? "" : is_avx512(targets) ? "avx512" : "avx2";
}

MachineCodeStats machine_code_stats() {
  return {compiled_count.load(), refused_count.load(), byte_count.load(), nanosecond_count.load()};
}

MachineCode::MachineCode() : targets_(hwy::SupportedTargets()) {
  if (!is_avx2(targets_))
    for (Version& version : versions_) version.is_refused = true;
}

MachineCode::~MachineCode() {
  byte_count -= bytes();
  for (Version& version : versions_) {
    if (RowFunction function = version.function.load()) release_rows(function);
  }
}

bool MachineCode::is_due(MachineCodeUse use, double nanoseconds) {
  if (use == MachineCodeUse::always) return true;
  // Each run costs something whatever it computes.
  const auto cost = static_cast<std::int64_t>(nanoseconds) + 500;
  return heat_.fetch_add(cost, std::memory_order_relaxed) + cost >= kHotNanoseconds;
}

void MachineCode::compile(Version& version, const RowRoutine& routine) {
  const auto start = std::chrono::steady_clock::now();
  const CompiledRows made = compile_rows(routine, is_avx512(targets_));
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
  nanosecond_count += static_cast<std::uint64_t>(taken.count());
  if (made.function == nullptr) {
    version.is_refused = true;
    ++refused_count;
    return;
  }
  ++compiled_count;
  byte_count += made.bytes;
  bytes_ += made.bytes;
  version.function.store(made.function, std::memory_order_release);
}

}  // namespace caldera::cpu
