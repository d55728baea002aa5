// Machine code in tests of the CPU device: who runs kernels, and each instruction set in turn.
#pragma once

#include "engine/check/reference/kernel_builder.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "tests/support/devices.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {

/// Chooses for a test who runs kernels.
class UseMachineCode {
 public:
  explicit UseMachineCode(cpu::MachineCodeUse use) { cpu::set_machine_code_use(use); }
  ~UseMachineCode() { cpu::set_machine_code_use(before_); }
  UseMachineCode(const UseMachineCode&) = delete;
  UseMachineCode& operator=(const UseMachineCode&) = delete;

 private:
  cpu::MachineCodeUse before_ = cpu::machine_code_use();
};

/// Calls body(name) for each instruction set that machine code is made for, with kernels decoded again.
template <class Body>
void with_each_machine(const Body& body) {
  Backend& backend = shared_backend(Device::cpu());
  const std::uint64_t limit = backend.cache_stats(CacheKind::kernels).limit;
  backend.set_cache_limit(CacheKind::kernels, 0);
  with_each_instruction_set([&](const char* name) {
    // The newest kernel stays in the cache: it must be none that the body asks for.
    KernelBuilder b("between");
    PlanCase between(Device::cpu());
    between.region(b.store(b.op(ScalarOp::tan, b.load(DType::f64))).finish(), {1},
                   {view(between.input(DType::f64, 1), {1}), view(between.output(DType::f64, 1), {1})});
    between.run_on_device();
    if (!cpu::machine_code_set().empty()) body(name);
  });
  backend.set_cache_limit(CacheKind::kernels, limit);
}

}  // namespace caldera::testing
