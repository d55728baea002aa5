// Accuracy of the CPU's elementary functions over their whole range, special values included, in units in the
// last place against the C library in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/cpu/simd/micro_ops.h"
#include "tests/support/instruction_sets.h"

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

void check_functions(const char* instruction_set) {
  // Every 4099th bit pattern: both signs, every binade, subnormal numbers, infinities' neighbours.
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float special : {0.0F, -0.0F, 1.0F, -1.0F, std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                        std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min()})
    x.push_back(special);
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

TEST(CpuInstructionSets, NoneIsAboveTheOneThatIsForced) {
  if (forced_targets() == 0) GTEST_SKIP() << "CALDERA_TEST_INSTRUCTION_SET is unset";
  with_each_instruction_set([](const char*) {});
  EXPECT_EQ(hwy::SupportedTargets() & ~forced_targets(), 0);
}

}  // namespace
}  // namespace caldera::testing
