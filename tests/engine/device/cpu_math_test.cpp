// Accuracy of the CPU's elementary functions over their whole range, special values included, in units in the
// last place against the C library in f64; and machine code beside the interpreter, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/row_kernels.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu/simd/micro_ops.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/machine_code.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

struct Function {
  ScalarOp op;
  double (*reference)(double);
  double ulp;  // allowed
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {ScalarOp::exp, [](double x) { return std::exp(x); }, 2},
    {ScalarOp::expm1, [](double x) { return std::expm1(x); }, 2},
    {ScalarOp::log, [](double x) { return std::log(x); }, 2},
    {ScalarOp::log1p, [](double x) { return std::log1p(x); }, 2},
    {ScalarOp::sin, [](double x) { return std::sin(x); }, 2},
    {ScalarOp::cos, [](double x) { return std::cos(x); }, 2},
    {ScalarOp::tan, [](double x) { return std::tan(x); }, 2},
    {ScalarOp::asin, [](double x) { return std::asin(x); }, 1.5},
    {ScalarOp::acos, [](double x) { return std::acos(x); }, 1.5},
    {ScalarOp::atan, [](double x) { return std::atan(x); }, 1.5},
    {ScalarOp::tanh, [](double x) { return std::tanh(x); }, 2},
    {ScalarOp::erf, [](double x) { return std::erf(x); }, 2},
    {ScalarOp::exp2, [](double x) { return std::exp2(x); }, 2},
    {ScalarOp::log2, [](double x) { return std::log2(x); }, 2},
    {ScalarOp::log10, [](double x) { return std::log10(x); }, 2},
    {ScalarOp::sigmoid, sigmoid, 2.5},  // the roundings of exp, of 1 + e and of the quotient
};

/// Distance in floats of the result's binade; subnormal results in steps of the smallest float.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : std::numeric_limits<double>::infinity();
  const int exponent = std::max(std::ilogb(std::fabs(want) == 0 ? 0x1p-126 : want), -126);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 23);
}

/// Where exponentials begin to be 0, subnormal, 1 or infinite, and where they are bounded.
constexpr float kEdges[] = {-151,     -150,    -149, -126,    -104,    -103.972F, -103.28F, -87.3365F,
                            -20,      -0.625F, 0,    44.014F, 88.376F, 89,        128,      129,
                            -88.723F, 88.723F, 104,  151,     1,       1e30F};

/// Every `step`th bit pattern: both signs, every binade, subnormal numbers, infinities' neighbours; and what
/// is unlike its neighbours, with those.
std::vector<float> numbers_to_try(std::uint64_t step) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += step)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float special : {0.0F, -0.0F, 1.0F, -1.0F, std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                        std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min()})
    x.push_back(special);
  for (const float edge : kEdges)
    for (const float direction : {-1e38F, 1e38F}) {
      float at = edge;
      for (int i = 0; i < 64; ++i, at = std::nextafter(at, direction)) x.insert(x.end(), {at, -at});
    }
  return x;
}

void check_functions(const char* instruction_set) {
  const std::vector<float> x = numbers_to_try(4099);
  std::vector<float> y(x.size());
  for (const Function& f : kFunctions) {
    const auto fn = cpu::find_micro_op(f.op, DType::f32, DType::f32);
    ASSERT_NE(fn, nullptr);
    fn(y.data(), x.data(), x.data(), x.data(), static_cast<std::int64_t>(x.size()));
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], f.reference(static_cast<double>(x[i])));
      if (!(error <= worst)) {
        worst = error;
        at = x[i];
      }
    }
    EXPECT_LE(worst, f.ulp) << info(f.op).name << " at " << at << " with " << instruction_set;
  }
}

TEST(CpuMath, FloatFunctionsAreAccurateEverywhere) { with_each_instruction_set(check_functions); }

TEST(CpuMath, AResultDoesNotDependOnItsPlaceInTheTile) {
  // Whole vectors and the padded rest must agree bit by bit.
  std::vector<float> x(67);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.37F * static_cast<float>(i) - 11.0F;
  for (const Function& f : kFunctions) {
    const auto fn = cpu::find_micro_op(f.op, DType::f32, DType::f32);
    std::vector<float> whole(x.size());
    fn(whole.data(), x.data(), x.data(), x.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      float one = 0;
      fn(&one, &x[i], &x[i], &x[i], 1);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(one), std::bit_cast<std::uint32_t>(whole[i]))
          << info(f.op).name << " of " << x[i];
    }
  }
}

/// Outputs of a plan that the interpreter runs, or machine code.
std::vector<std::vector<std::byte>> run_with(cpu::MachineCodeUse who, const PlanCase& c) {
  const UseMachineCode use(who);
  return c.run_on_device();
}
float float_at(const std::vector<std::byte>& bytes, std::size_t i) {
  float x = 0;
  std::memcpy(&x, &bytes[i * sizeof(float)], sizeof(float));
  return x;
}

TEST(CpuMath, MachineCodeGivesTheInterpretersBits) {
  if (cpu::machine_code_set().empty())
    GTEST_SKIP() << "built without AsmJit, or the processor has no AVX2: no machine code is made here";
  const std::vector<float> x = numbers_to_try(65521);
  const auto n = static_cast<std::int64_t>(x.size());
  with_each_machine([&](const char* instruction_set) {
    std::uint64_t refused = 0;
    for (const Function& f : kFunctions) {
      PlanCase c(Device::cpu());
      KernelBuilder b("function");
      const auto operand = b.load(DType::f32);
      const int input = c.input(DType::f32, n);
      for (std::int64_t i = 0; i < n; ++i) c.set(input, i, floating(x[static_cast<std::size_t>(i)]));
      c.region(b.store(b.op(f.op, operand)).finish(), {n},
               {view(input, {1}), view(c.output(DType::f32, n), {1})});
      const std::uint64_t before = cpu::machine_code_stats().refused;
      const auto interpreted = run_with(cpu::MachineCodeUse::never, c);
      const auto compiled = run_with(cpu::MachineCodeUse::always, c);
      refused += cpu::machine_code_stats().refused - before;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float want = float_at(interpreted[0], i), got = float_at(compiled[0], i);
        if (std::isnan(want) && std::isnan(got)) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want))
            << info(f.op).name << " of " << x[i] << " with " << instruction_set << ": " << got << " and "
            << want;
      }
    }
    EXPECT_EQ(refused, 3U) << "sin, cos and tan";
  });
}

/// Rows whose exponentials vanish, are subnormal, or are of what a mask puts there; with and without NaN.
TEST(CpuMath, SoftmaxOfScoresThatVanish) {
  constexpr std::int64_t kRows = 7, kLength = 83;
  const double infinite = std::numeric_limits<double>::infinity();
  const double scores[] = {0,     -103.97, -103.98, -104,   -104.01, -87.3, -87.4, -1e30,
                           -1e38, -0.0,    -95,     -88.72, -3,      1e-40, -149,  -infinite};
  PlanCase c(Device::cpu());
  const int input = c.input(DType::f32, kRows * kLength);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t i = 0; i < kLength; ++i) {
      double score = scores[static_cast<std::size_t>((i * (row + 1) + row) % 16)] + (row == 2 ? 88.9 : 0);
      if (row == 4) score = i == 40 ? 0 : -1e30;
      if (row == 5) score = i == 80 ? std::numeric_limits<double>::quiet_NaN() : score;
      if (row == 6) score = -infinite;
      c.set(input, row * kLength + i, floating(score));
    }
  c.region(reference::softmax_kernel(DType::f32), {kRows, kLength},
           {view(input, {kLength, 1}), view(c.output(DType::f32, kRows * kLength), {kLength, 1})}, 1);
  Tolerance tolerance = reference::row_tolerance(Device::cpu(), kLength);
  tolerance.absolute = 3 * 0x1p-149;  // of what is subnormal
  const auto check = [&](const char* instruction_set) {
    SCOPED_TRACE(instruction_set);
    std::vector<std::vector<std::byte>> outputs[2];
    for (const auto who : {cpu::MachineCodeUse::never, cpu::MachineCodeUse::always}) {
      outputs[who == cpu::MachineCodeUse::always ? 1 : 0] = run_with(who, c);
      const UseMachineCode use(who);
      c.check(tolerance);
    }
    for (std::size_t i = 0; i < kRows * kLength; ++i) {
      const float want = float_at(outputs[0][0], i), got = float_at(outputs[1][0], i);
      EXPECT_EQ(std::isnan(want), i >= 5 * kLength) << i;
      if (!std::isnan(want)) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want)) << i;
      }
    }
  };
  check("the instruction set that is chosen");
  with_each_machine(check);
}

TEST(CpuInstructionSets, NoneIsAboveTheOneThatIsForced) {
  if (forced_targets() == 0) GTEST_SKIP() << "CALDERA_TEST_INSTRUCTION_SET is unset";
  with_each_instruction_set([](const char*) {});
  EXPECT_EQ(hwy::SupportedTargets() & ~forced_targets(), 0);
}

}  // namespace
}  // namespace caldera::testing
