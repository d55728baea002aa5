// Machine code of the CPU device where it goes another way than operation by operation: quotients by one
// number a row, and the largest and least of numbers of which one is NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/machine_code.h"

namespace caldera::testing {
namespace {

std::vector<float> run_compiled(const PlanCase& c) {
  const UseMachineCode use(cpu::MachineCodeUse::always);
  const std::vector<std::byte> bytes = c.run_on_device()[0];
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// Random digits, exponents from -most to most, either sign.
float any_number(std::mt19937& random, int most) {
  const float digits = 1 + static_cast<float>(random() % (1U << 23U)) * 0x1p-23F;
  const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most;
  return std::ldexp(random() % 2 == 0 ? digits : -digits, exponent);
}

TEST(CpuRowNumbers, QuotientsAreRoundedAsDivisionsAre) {
  with_each_machine([](const char* name) {
    SCOPED_TRACE(name);
    constexpr std::int64_t kRows = 400, kLength = 1500;
    PlanCase c(Device::cpu());
    KernelBuilder b("quotient");
    const auto x = b.load(DType::f32), y = b.load(DType::f32);
    b.store(b.op(ScalarOp::div, x, b.op(ScalarOp::row_maximum, y)));
    const int numbers = c.input(DType::f32, kRows * kLength), divisors = c.input(DType::f32, kRows);
    std::mt19937 random(7);
    // Mostly what is divided without a division, and what is at the limits of that and beyond.
    std::vector<float> dividends, rows;
    for (std::int64_t row = 0; row < kRows; ++row) {
      rows.push_back(any_number(random, row % 4 == 3 ? 126 : row % 4 == 2 ? 21 : 12));
      c.set(divisors, row, floating(rows.back()));
      for (std::int64_t i = 0; i < kLength; ++i) {
        const bool is_zero = random() % 3000 == 0;
        dividends.push_back(is_zero           ? (i % 2 == 0 ? 0.0F : -0.0F)
                            : i / 64 % 4 == 3 ? any_number(random, 126)
                            : i / 64 % 4 == 2 ? any_number(random, 101)
                                              : any_number(random, 30));
        c.set(numbers, row * kLength + i, floating(dividends.back()));
      }
    }
    c.region(b.finish(), {kRows, kLength},
             {view(numbers, {kLength, 1}), view(divisors, {1, 0}),
              view(c.output(DType::f32, kRows * kLength), {kLength, 1})},
             1);
    const std::vector<float> found = run_compiled(c);
    ASSERT_EQ(found.size(), dividends.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float divisor = rows[i / kLength], want = dividends[i] / divisor;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(want))
          << dividends[i] << " / " << divisor;
    }
  });
}

TEST(CpuRowNumbers, ANaNAnywhereIsTheLargestAndTheLeast) {
  with_each_machine([](const char* name) {
    for (const Combine combine : {Combine::maximum, Combine::minimum})
      for (const std::int64_t length : {1, 15, 16, 64, 65, 300, 1030}) {
        SCOPED_TRACE(std::string(name) + ", rows of " + std::to_string(length));
        const std::int64_t rows = length + 1;  // each has it elsewhere, the last has none
        PlanCase c(Device::cpu());
        KernelBuilder b("order");
        const auto x = b.load(DType::f32);
        const int numbers = c.input(DType::f32, rows * length);
        for (std::int64_t i = 0; i < length; ++i)
          c.set(numbers, i * length + i, floating(std::numeric_limits<double>::quiet_NaN()));
        c.region(b.store(x).reduce(combine).finish(), {rows, length},
                 {view(numbers, {length, 1}), view(c.output(DType::f32, rows), {1, 0})}, 1);
        const std::vector<float> found = run_compiled(c);
        for (std::int64_t row = 0; row < rows; ++row)
          EXPECT_EQ(std::isnan(found[static_cast<std::size_t>(row)]), row < length) << row;
      }
  });
}

}  // namespace
}  // namespace caldera::testing
