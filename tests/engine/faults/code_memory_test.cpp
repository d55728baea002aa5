// Checks where machine code lies: in no memory that can be written to at the same address; and nowhere at all
// where the system forbids new code, which interpretation stands in for.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/check/reference/kernel_builder.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

/// Sums of x and itself, so many.
PlanCase repeated_sum(int sums) {
  KernelBuilder b("repeated sum");
  auto x = b.load(DType::f32);
  for (int i = 0; i < sums; ++i) x = b.op(ScalarOp::add, x, x);
  PlanCase c(Device::cpu());
  c.region(b.store(x).finish(), {65},
           {view(c.input(DType::f32, 65), {1}), view(c.output(DType::f32, 65), {1})});
  return c;
}

class CpuCodeMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cpu::machine_code_set().empty())
      GTEST_SKIP() << "built without AsmJit, or the processor has no AVX2: no machine code is made here";
    cpu::set_machine_code_use(cpu::MachineCodeUse::always);
  }
  void TearDown() override { cpu::set_machine_code_use(before_); }

 private:
  cpu::MachineCodeUse before_ = cpu::machine_code_use();
};

TEST_F(CpuCodeMemory, IsNeverWritableAndExecutable) {
  struct Found {
    int both = 0, executable = 0;
  };
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    Found found;
    for (std::string line; std::getline(maps, line);) {
      const std::string access = line.substr(line.find(' ') + 1, 3);
      if (access.back() != 'x') continue;
      ++found.executable;
      if (access[1] == 'w') ++found.both;
    }
    return found;
  };
  const std::uint64_t compiled = cpu::machine_code_stats().compiled;
  for (int sums = 1; sums < 40; ++sums) repeated_sum(sums).run_on_device();
  EXPECT_EQ(cpu::machine_code_stats().compiled, compiled + 39);
  const Found found = mappings();
  EXPECT_GT(found.executable, 1);
  EXPECT_EQ(found.both, 0);
}

/// Forbids this process every new mapping that may be executed, as a hardened system does.
bool forbid_new_code() {
  constexpr auto kAccess =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAccess),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Ends with 0 where kernels gave the right results without machine code.
[[noreturn]] void run_without_new_code() {
  shared_backend(Device::cpu());  // with what it opens
  if (!forbid_new_code()) std::exit(2);
  for (int sums = 1; sums < 4; ++sums) repeated_sum(sums).check({0, 0});
  const cpu::MachineCodeStats stats = cpu::machine_code_stats();
  std::exit(::testing::Test::HasFailure() || stats.compiled != 0 || stats.refused != 3 ? 1 : 0);
}

TEST_F(CpuCodeMemory, IsInterpretedWithOneWarningWhereTheSystemForbidsIt) {
  if (prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "this system cannot forbid a process new code";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_new_code(), ::testing::ExitedWithCode(0),
              "^caldera: warning: the system allows no new machine code[^\n]*\n$");
}

}  // namespace
}  // namespace caldera::testing
