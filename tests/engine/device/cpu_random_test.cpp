// The CPU's random numbers by each instruction set, beside the formulas in f64 of the words that philox.h
// makes (which tests/ops/random_test.cpp holds to the published vectors).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/device/cpu/simd/philox.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

constexpr std::uint64_t kSeed = 0x9876543210fedcba;

double number_of(ScalarOp op, bool is_wide, std::uint32_t at) {
  const auto words = cpu::philox4x32(at / 4, kSeed);
  const std::uint32_t word = words[at % 4];
  if (op == ScalarOp::philox_uniform) return is_wide ? word * 0x1p-32 : (word >> 8) * 0x1p-24;
  const std::uint32_t pair = at % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log(((words[pair] >> 8) + 1) * 0x1p-24));
  const double angle = 2 * std::numbers::pi * ((words[pair + 1] >> 8) * 0x1p-24);
  return radius * (at % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

/// Numbers of places first, first + stride and on.
template <class T>
void check(const char* instruction_set, ScalarOp op, std::uint32_t first, std::uint32_t stride,
           std::size_t n) {
  SCOPED_TRACE(::testing::Message() << instruction_set << ", " << sizeof(T) << " bytes, from " << first
                                    << " by " << stride << ", " << n);
  std::vector<std::int32_t> places;
  for (std::size_t i = 0; i < n; ++i)
    places.push_back(static_cast<std::int32_t>(first + stride * static_cast<std::uint32_t>(i)));
  std::vector<T> out(n + 1, T{-100});
  cpu::find_random_op(op, sizeof(T) == 8 ? DType::f64 : DType::f32)(out.data(), &kSeed, places.data(),
                                                                    nullptr, static_cast<std::int64_t>(n));
  EXPECT_EQ(out[n], T{-100}) << "written behind the end";
  // The logarithm and the cosine each have an error of a unit or so of f64; f32 then rounds once more.
  const double tolerance = op == ScalarOp::philox_uniform ? 0 : sizeof(T) == 8 ? 4e-15 : 3e-7;
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_NEAR(out[i], number_of(op, sizeof(T) == 8, static_cast<std::uint32_t>(places[i])), tolerance) << i;
}

TEST(CpuRandom, AreTheFormulasOfTheWordsByEachInstructionSet) {
  with_each_instruction_set([](const char* name) {
    for (const ScalarOp op : {ScalarOp::philox_uniform, ScalarOp::philox_normal})
      for (const std::uint32_t stride : {0U, 1U, 3U, 64U})
        for (const std::size_t n : {std::size_t{1}, std::size_t{31}, std::size_t{128}, std::size_t{1000}})
          for (const std::uint32_t first : {0U, 1U, 7U, 0xfffffff0U}) {
            check<float>(name, op, first, stride, n);
            check<double>(name, op, first, stride, n);
          }
  });
}

}  // namespace
}  // namespace caldera::testing
