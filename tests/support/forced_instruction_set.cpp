// Forbids a whole test program the instruction sets above the one that CALDERA_TEST_INSTRUCTION_SET names,
// before anything has chosen its functions: "scalar", "sse4", "avx2" or "avx512".
//
// Tests that go through the instruction sets themselves (tests/support/instruction_sets.h) then go through
// those that are left. A name that is unknown, and a set that this processor lacks, end the program: a run
// that was not what it says would prove nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

struct NamedTarget {
  std::string_view name;
  std::int64_t target;
};
constexpr NamedTarget kNamedTargets[] = {
    {"scalar", HWY_SCALAR}, {"sse4", HWY_SSE4}, {"avx2", HWY_AVX2}, {"avx512", HWY_AVX3}};

constexpr int kWrong = 2, kSkipped = 77;  // the codes that the program ends with

[[noreturn]] void end(const char* name, const char* why, int code) {
  std::fprintf(stderr, "CALDERA_TEST_INSTRUCTION_SET: '%s' is %s\n", name, why);
  std::exit(code);
}

/// Bits of Highway's targets are lower the better a target is.
std::int64_t targets_up_to(const char* name) {
  for (const NamedTarget& known : kNamedTargets) {
    if (known.name != name) continue;
    const std::int64_t there = hwy::SupportedTargets() | HWY_SCALAR;
    if ((there & known.target) == 0) end(name, "an instruction set that this processor lacks", kSkipped);
    return there & ~(known.target - 1);
  }
  end(name, "none of scalar, sse4, avx2, avx512", kWrong);
}

/// Highway looks at the processor again whenever it is asked what is there, but where a test has said so.
[[maybe_unused]] const bool kForced = [] {
  const std::int64_t targets = forced_targets();
  if (targets != 0) choose_targets(targets);
  return true;
}();

}  // namespace

std::int64_t forced_targets() {
  static const std::int64_t kTargets = [] {
    const char* const name = std::getenv("CALDERA_TEST_INSTRUCTION_SET");
    return name == nullptr || *name == '\0' ? std::int64_t{0} : targets_up_to(name);
  }();
  return kTargets;
}

}  // namespace caldera::testing
